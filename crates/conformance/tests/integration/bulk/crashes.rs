//! Worker processes that are killed at each page that they write (SQLite).
//!
//! A killed process leaves what it has written to the WAL. A limit on the file size kills the process with the write that would exceed it, so the
//! limits cover each intermediate state of the WAL in turn.

use std::time::Duration;

use futures::{StreamExt, stream};
use milepost::JobState;
use milepost_testkit::home::SqliteHome;
use milepost_testkit::process::{Process, Settings};

use crate::bulk::members::Members;

const MEMBERS: i64 = 50;
/// Size of a WAL frame: a page and its header.
const FRAME_BYTES: u64 = 4096 + 24;
const LOG_HEAD_BYTES: u64 = 32;

/// Runs a bulk job whose first worker is killed at this page. Returns whether it was killed.
async fn run_with_a_death(page: u64) -> bool {
    let members = Members::on(SqliteHome::fresh().await).await;
    members.add(0..MEMBERS).await;
    let bulk = members.notify(20);
    let job = members.start(&bulk).await;
    // The WAL is empty when the process starts.
    members.home.tamper("pragma wal_checkpoint(truncate)").await;
    // In the middle of a page, so that the page is torn, too.
    let bytes = LOG_HEAD_BYTES + page * FRAME_BYTES + 1_000;
    let settings = Settings::default().lease(Duration::from_secs(600)).bulk_rows(20).file_bytes_max(bytes);
    let mut process =
        Process::start(env!("CARGO_BIN_EXE_conformance-worker"), &members.home.address(), settings);
    let died = tokio::select! {
        status = process.exit() => { assert!(!status.success(), "{status}"); true }
        _ = members.until_state(job, JobState::Succeeded) => false,
    };
    if died {
        members.assert_never_back(job).await;
        members.rescue().await;
        members.drain(&bulk, job).await;
    }
    let view = members.view(job).await;
    assert_eq!(
        (view.state, view.counts.done),
        (JobState::Succeeded, MEMBERS as u64),
        "page {page}: {view:#?}"
    );
    members.assert_once_each(job, MEMBERS).await;
    died
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_any_page_it_writes_neither_loses_nor_doubles_a_target() {
    let deaths = stream::iter(0..400).map(run_with_a_death).buffered(4);
    let reached = deaths.take_while(|died| std::future::ready(*died)).count().await;
    // Taking over, the survey, three chunks and the end change more pages than this.
    assert!((20..400).contains(&reached), "it was killed at {reached} pages");
}

//! Execution of chunks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use milepost::JobState;
use milepost::bulk::{Definition, Sizing};
use milepost_core::retry::RetryPolicy;
use milepost_testkit::home::SqliteHome;
use milepost_testkit::notes;

use crate::bulk::members::Members;

pub(crate) async fn every_target_is_applied_once(members: Members) {
    members.add(0..1_000).await;
    let bulk = members.notify(200);
    bulk.check().await.unwrap();
    let view = members.run(&bulk).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    assert_eq!((view.counts.done, view.counts.failed), (1_000, 0));
    assert!(view.counts.chunks >= 5, "{view:#?}");
    assert_eq!(view.total.unwrap().rows, 1_000);
    members.assert_once_each(view.id, 1_000).await;
}

pub(crate) async fn a_run_that_progresses_waits_no_longer_after_each_lost_worker(members: Members) {
    members.add(0..100).await;
    let bulk = members.notify(10);
    let job = members.start(&bulk).await;
    let mut failures = Vec::new();
    for chunks in [1, 0, 2, 0] {
        let mut held = members.take(&bulk).await;
        if failures.is_empty() {
            held.survey().await;
        }
        for _ in 0..chunks {
            held.chunk(10).await;
        }
        drop(held);
        members.expire_leases().await;
        let counted = AtomicU32::new(0);
        let delay = |_: &str, attempt: u32, _: Option<&RetryPolicy>| {
            counted.store(attempt, Ordering::Relaxed);
            Duration::ZERO
        };
        members.store().rescue_expired(100, &delay).await.unwrap();
        failures.push(counted.into_inner());
    }
    assert_eq!(
        failures,
        [1, 2, 1, 4],
        "after a run without a chunk, the wait is as long as after that many failures"
    );
    assert_eq!(members.drain(&bulk, job).await.counts.done, 100);
}

pub(crate) async fn a_run_without_targets_ends_well(members: Members) {
    let view = members.run(&members.notify(200)).await;
    assert_eq!(view.state, JobState::Succeeded);
    assert_eq!((view.counts.done, view.total.unwrap().rows, view.share()), (0, 0, Some(1.0)));
    assert_eq!((view.cursor, view.upper), (None, None));
}

/// Executes a chunk, applies a change to the members, and continues the run.
async fn change_after_a_chunk(members: &Members, change: &str) -> milepost::bulk::BulkView {
    members.add(0..100).await;
    let bulk = members.notify(30);
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    held.survey().await;
    held.chunk(30).await;
    members.home.tamper(change).await;
    drop(held);
    members.rescue().await;
    let view = members.drain(&bulk, job).await;
    assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
    view
}

pub(crate) async fn targets_that_come_behind_the_last_one_later_are_not_taken(members: Members) {
    let change = "insert into public.member (id, place, name) values (1000, 'x', 'late'), (-1, 'x', 'early')";
    let view = change_after_a_chunk(&members, change).await;
    assert_eq!(view.counts.done, 100);
    members.assert_once_each(view.id, 100).await;
}

pub(crate) async fn targets_that_go_while_it_runs_do_not_stop_it(members: Members) {
    let change = "delete from public.member where id between 29 and 59 or id > 90";
    let view = change_after_a_chunk(&members, change).await;
    assert_eq!((view.counts.done, view.total.unwrap().rows), (61, 100));
    members.assert_once_each(view.id, 61).await;
}

pub(crate) async fn the_target_set_is_done_once_each_whatever_chunks_and_bad_rows_there_are(
    members: Members,
) {
    members.home.tamper("create unique index note_once on public.note (run, member)").await;
    let mut random = fastrand::Rng::with_seed(0x6d69_6c65);
    for round in 0..12 {
        let ids: std::collections::BTreeSet<i64> =
            (0..random.i64(1..400)).map(|_| random.i64(-1_000..1_000)).collect();
        let bad: Vec<i64> = ids.iter().copied().filter(|_| random.u8(..) < 12).collect();
        members.home.tamper("delete from public.member").await;
        let rows: Vec<String> = ids
            .iter()
            .map(|id| format!("({id}, 'x', '{}')", if bad.contains(id) { "bad" } else { "good" }))
            .collect();
        members
            .home
            .tamper(&format!("insert into public.member (id, place, name) values {}", rows.join(", ")))
            .await;
        let rows_max = random.u32(1..60);
        let definition = Definition {
            sizing: Sizing { rows_min: 1, rows_max, ..Sizing::default() },
            failures_max: 1_000,
            ..notes::definition(&format!("round-{round}"), rows_max)
        };
        // A note without a member violates a constraint.
        let apply = "insert into note (run, member) select :bulk_id, case name when 'bad' then null else id end from chunk";
        let bulk = members.home.bulk(definition, notes::SOURCE, &["id"], apply).unwrap();
        let view = members.run(&bulk).await;
        assert_eq!(view.state, JobState::Succeeded, "{view:#?}");
        let words: Vec<String> = bad.iter().map(i64::to_string).collect();
        assert_eq!(members.failed(view.id).await, words, "round {round}, {rows_max} rows a chunk");
        members.assert_once_each(view.id, (ids.len() - bad.len()) as i64).await;
        assert_eq!(view.counts.done + view.counts.failed, ids.len() as u64);
    }
}

/// A chunk blocks all other writers of a file, so that no default makes it larger than it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_continues_on_a_file_keeps_the_size_of_its_chunks() {
    let members = Members::on(SqliteHome::fresh().await).await;
    members.add(0..200).await;
    members.home.tamper("create table public.resumed_chunk (chunk integer primary key, rows integer)").await;
    let definition = Definition { sizing: Sizing::default(), ..notes::definition("costs", 10) };
    let apply = "insert into resumed_chunk (rows) select count(*) from chunk";
    let bulk = members.home.bulk(definition, notes::SOURCE, &["id"], apply).unwrap();
    let job = members.start(&bulk).await;
    let mut held = members.take(&bulk).await;
    held.survey().await;
    held.chunk(3).await;
    drop(held);
    members.rescue().await;
    assert_eq!(members.drain(&bulk, job).await.counts.done, 200);
    let resumed = members.home.count("select rows from public.resumed_chunk where chunk = 1").await;
    assert_eq!(resumed, 3, "the number of rows of the first chunk after the break");
}

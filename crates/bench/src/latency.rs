//! Benchmark of the latency of single jobs on an idle system.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tokio::sync::mpsc;

use super::JobsBench;
use super::report::{Percentiles, Report};
use super::target::Target;
use super::workload::{NOOP, noop, worker};

/// The maximum time until a job starts before the benchmark fails.
const START_MAX: Duration = Duration::from_secs(30);

/// Runs `--mode latency`: measures from the enqueue call to the start of the handler.
pub(super) async fn run(bench: &JobsBench, target: &Target) -> Result<Report> {
    let (sender, mut started) = mpsc::unbounded_channel();
    let worker = worker(&target.store, NOOP, move |_| {
        let _ = sender.send(Instant::now());
    })
    .await?;
    let mut from_call = Histogram::<u64>::new(3)?;
    let mut from_commit = Histogram::<u64>::new(3)?;
    for number in 0..bench.jobs() {
        // This is long enough for the worker to go back to sleep.
        tokio::time::sleep(Duration::from_millis(10 + number % 10)).await;
        let store = Arc::clone(&target.store);
        let job = noop(number, bench.payload_bytes)?;
        let called_at = Instant::now();
        store.enqueue(&job).await?;
        let committed_at = Instant::now();
        let started_at =
            tokio::time::timeout(START_MAX, started.recv()).await?.context("the worker has stopped")?;
        from_call.record(micros(started_at - called_at))?;
        from_commit.record(micros(started_at.saturating_duration_since(committed_at)))?;
    }
    worker.shutdown().await;
    let mut report = Report::new("latency", target.name, bench.jobs());
    report.start_latency_ms = Percentiles::of(&from_call);
    let from_commit = Percentiles::of(&from_commit);
    Ok(report
        .with("from_commit_p50_ms", from_commit.p50.unwrap_or_default())
        .with("from_commit_p99_ms", from_commit.p99.unwrap_or_default()))
}

/// Returns a duration in whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

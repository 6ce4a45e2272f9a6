//! One job at a time on an idle system.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use tokio::sync::mpsc;

use super::JobsBench;
use super::report::{Percentiles, Report};
use super::target::Target;
use super::workload::{NOOP, noop, worker};

/// How long a job may take to start before the bench gives up.
const START_MAX: Duration = Duration::from_secs(30);

/// `--mode latency`: from the call of enqueue to the first line of the handler.
pub(super) async fn run(bench: &JobsBench, target: &Target) -> Result<Report> {
    let (sender, mut started) = mpsc::unbounded_channel();
    let worker = worker(&target.store, NOOP, move |_| {
        let _ = sender.send(Instant::now());
    })
    .await?;
    let mut from_call = Histogram::<u64>::new(3)?;
    let mut from_commit = Histogram::<u64>::new(3)?;
    for number in 0..bench.jobs() {
        // Long enough for the worker to have gone back to sleep.
        tokio::time::sleep(Duration::from_millis(10 + number % 10)).await;
        let store = Arc::clone(&target.store);
        let job = noop(number, bench.payload_bytes)?;
        let called_at = Instant::now();
        store.enqueue(&job).await?;
        let committed_at = Instant::now();
        let started_at =
            tokio::time::timeout(START_MAX, started.recv()).await?.context("the worker has gone")?;
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

/// A duration in whole microseconds.
pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

//! Benchmark of throughput: all jobs are enqueued, then all are run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use jiff::Timestamp;

use super::JobsBench;
use super::report::{Percentiles, Report, per_s};
use super::target::Target;
use super::workload::{self, noop};

/// The result of one drain.
pub(super) struct Drained {
    pub(super) jobs: u64,
    pub(super) enqueue: Duration,
    pub(super) run: Duration,
    waited: Histogram<u64>,
}

impl Drained {
    /// Returns the jobs run per second, from the first claim.
    pub(super) fn run_per_s(&self) -> f64 {
        per_s(self.jobs, self.run.as_secs_f64())
    }

    /// Returns the jobs enqueued per second.
    pub(super) fn enqueue_per_s(&self) -> f64 {
        per_s(self.jobs, self.enqueue.as_secs_f64())
    }
}

/// Enqueues all jobs, calls a function, then runs all jobs.
pub(super) async fn drain(
    bench: &JobsBench,
    target: &Target,
    in_between: impl AsyncFnOnce() -> Result<()>,
) -> Result<Drained> {
    let (jobs, payload_bytes) = (bench.jobs(), bench.payload_bytes);
    let enqueue = workload::enqueue(bench, &target.store, jobs, move |n| noop(n, payload_bytes)).await?;
    in_between().await?;
    let waited = Arc::new(Mutex::new(Histogram::<u64>::new(3)?));
    let seen = waited.clone();
    let run = workload::run_all(&target.store, jobs, move |context| {
        let created_ms = context.job().created_at.as_millisecond();
        let waited_ms = Timestamp::now().as_millisecond().saturating_sub(created_ms);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = seen.record(waited_ms.unsigned_abs() * 1000);
    })
    .await?;
    let waited = waited.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Drained { jobs, enqueue, run, waited })
}

/// Runs `--mode throughput`.
pub(super) async fn run(bench: &JobsBench, target: &Target) -> Result<Report> {
    let logged_before = target.logged_bytes().await;
    let drained = drain(bench, target, async || Ok(())).await?;
    let logged_after = target.logged_bytes().await;

    let mut report = Report::new("throughput", target.name, drained.jobs);
    report.enqueue_per_s = Some(drained.enqueue_per_s());
    report.run_per_s = Some(drained.run_per_s());
    report.overall_per_s = Some(per_s(drained.jobs, (drained.enqueue + drained.run).as_secs_f64()));
    report.start_latency_ms = Percentiles::of(&drained.waited);
    report.wal_bytes_per_job = logged_before
        .zip(logged_after)
        .map(|(before, after)| ((after - before) / drained.jobs.max(1) as f64).round());
    Ok(report)
}

//! Benchmark of the throughput while another session holds a snapshot for a long time.

use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::Executor;

use super::JobsBench;
use super::drain::drain;
use super::report::Report;
use super::target::Target;
use super::workload::{NOOP, noop, worker};

/// The interval at which new jobs of the stream are enqueued.
const TICK: Duration = Duration::from_millis(100);

/// Runs `--mode held-snapshot`: drains, then streams jobs for a while during an open snapshot that prevents vacuum from removing dead rows,
/// then drains again during the snapshot.
pub(super) async fn run(bench: &JobsBench, target: &Target) -> Result<Report> {
    let server = target.server("held-snapshot")?;
    let before = drain(bench, target, async || Ok(())).await?;

    let mut holder = server.begin().await?;
    holder.execute("set transaction isolation level repeatable read").await?;
    holder.execute("select count(*) from milepost.live").await?;
    stream(bench, target).await?;
    let under = drain(bench, target, async || Ok(())).await?;
    holder.rollback().await?;

    let mut report = Report::new("held_snapshot", target.name, bench.jobs());
    report.enqueue_per_s = Some(under.enqueue_per_s());
    report.run_per_s = Some(under.run_per_s());
    Ok(report
        .with("seconds", bench.seconds as f64)
        .with("rate", bench.rate as f64)
        .with("without_snapshot_run_per_s", before.run_per_s())
        .with("ratio", under.run_per_s() / before.run_per_s()))
}

/// Enqueues `rate` jobs per second while a worker runs them.
async fn stream(bench: &JobsBench, target: &Target) -> Result<()> {
    let worker = worker(&target.store, NOOP, |_| {}).await?;
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < bench.seconds() {
        let due = (began.elapsed().as_secs_f64() * bench.rate as f64) as u64;
        let jobs = (sent..due).map(|n| noop(n, bench.payload_bytes)).collect::<Result<Vec<_>>>()?;
        if !jobs.is_empty() {
            target.store.enqueue_many(&jobs).await?;
        }
        sent = due;
        tokio::time::sleep(TICK).await;
    }
    while worker.stats().acknowledged < sent {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    worker.shutdown().await;
    Ok(())
}

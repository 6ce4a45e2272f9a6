//! Benchmark of a store that has been in use for days: the remaining throughput, and the cost and rate of retention.

mod fill;

use std::time::{Duration, Instant};

use anyhow::Result;
use milepost::{Keep, RetentionPolicy, Worker};
use milepost_cli_support::store::StoreAddress;
use milepost_core::retention::{Pace, Pruned};

use super::JobsBench;
use super::drain::drain;
use super::report::{Report, median, per_s};
use super::target::Target;

/// The number of measured drains of each kind, after one warm-up; the median is reported.
const ROUNDS: usize = 3;
/// The batch size of the retention that is measured separately.
const BY_HAND: Pace = Pace { limit: 500, rest: 0 };
/// The maximum time for measuring this retention.
const BY_HAND_MAX: Duration = Duration::from_secs(30);

/// Runs `--mode aged`: drains the empty store, the aged one, and the aged one while a worker deletes the older half of its jobs; then
/// deletes old jobs as fast as possible.
pub(super) async fn run(bench: &JobsBench, address: &StoreAddress) -> Result<Report> {
    let young = Target::prepare(address).await?;
    let empty = drains(bench, &young).await?;
    young.close().await;

    let target = &Target::prepare(address).await?;
    let began = Instant::now();
    fill::fill(bench, target, address).await?;
    let fill_s = began.elapsed().as_secs_f64();
    let aged = drains(bench, target).await?;

    let half = Keep::For(Duration::from_secs(bench.days * 12 * 3600));
    let policy =
        RetentionPolicy { succeeded: half, canceled: half, failed: half, ..RetentionPolicy::FOREVER };
    let policy = RetentionPolicy { keys: Keep::For(Duration::ZERO), ..policy };
    let keeper = Worker::builder(target.store.clone()).options(|options| options.retention = policy);
    let (keeper, began) = (keeper.start().await?, Instant::now());
    let pruning = drains(bench, target).await?;
    let (kept_up, took) = (keeper.stats().pruned, began.elapsed());
    keeper.shutdown().await;
    let (pruned, by_hand) = prune(target, &policy).await?;

    let mut report = Report::new("aged", target.name, bench.jobs());
    report.enqueue_per_s = Some(aged.enqueue_per_s);
    report.run_per_s = Some(aged.run_per_s);
    Ok(report
        .with("days", bench.days as f64)
        .with("per_day", bench.per_day as f64)
        .with("fill_s", fill_s)
        .with("empty_enqueue_per_s", empty.enqueue_per_s)
        .with("empty_run_per_s", empty.run_per_s)
        .with("ratio", aged.run_per_s / empty.run_per_s)
        .with("pruning_run_per_s", pruning.run_per_s)
        .with("pruning_ratio", pruning.run_per_s / empty.run_per_s)
        .with("pruned_meanwhile_jobs_per_s", per_s(kept_up, took.as_secs_f64()))
        .with("pruned_jobs_per_s", per_s(pruned.what.jobs(), by_hand.as_secs_f64()))
        .with("pruned_rows_per_s", per_s(pruned.rows, by_hand.as_secs_f64())))
}

struct Speed {
    enqueue_per_s: f64,
    run_per_s: f64,
}

async fn drains(bench: &JobsBench, target: &Target) -> Result<Speed> {
    let (mut enqueue, mut run) = (Vec::new(), Vec::new());
    drain(bench, target, async || Ok(())).await?;
    for _ in 0..ROUNDS {
        let drained = drain(bench, target, async || Ok(())).await?;
        enqueue.push(drained.enqueue_per_s());
        run.push(drained.run_per_s());
    }
    Ok(Speed { enqueue_per_s: median(enqueue), run_per_s: median(run) })
}

/// Runs retention batches without a pause.
async fn prune(target: &Target, policy: &RetentionPolicy) -> Result<(Pruned, Duration)> {
    let began = Instant::now();
    let mut sum = Pruned { more: true, ..Pruned::default() };
    while sum.more && began.elapsed() < BY_HAND_MAX {
        sum += target.store.prune(policy, BY_HAND).await?;
    }
    Ok((sum, began.elapsed()))
}

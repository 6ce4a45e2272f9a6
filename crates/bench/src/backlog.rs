//! Benchmark of the claim latency with a small and with a large backlog.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use milepost_cli_support::store::StoreAddress;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Finish};
use milepost_core::ident::WorkerId;
use milepost_core::job::{NewJob, StartAt};
use milepost_core::port::Store;
use milepost_core::worker::NewWorker;

use super::JobsBench;
use super::latency::micros;
use super::report::{Percentiles, Report, per_s, rounded};
use super::target::{QUEUE, Target};
use super::workload::{NOOP, enqueue, noop, priority};

/// The number of jobs in the small backlog.
const SMALL: u64 = 1000;
/// The number of measured claims, after some that are not measured.
const CLAIMS: u64 = 2000;
const WARM_UP: u64 = 100;
/// The number of jobs in one claim.
const BATCH: u32 = 10;
/// A kind that no worker serves.
const FOREIGN: &str = "nobody";

/// Runs `--mode backlog`. The large backlog contains several priorities, jobs of a higher priority that are not due yet, and the same
/// number of jobs of a kind that no worker serves.
pub(super) async fn run(bench: &JobsBench, address: &StoreAddress) -> Result<Report> {
    let small = Target::prepare(address).await?;
    fill(bench, &small, SMALL, 0).await?;
    let few = claims(bench, &small.store).await?;
    small.close().await;

    let large = Target::prepare(address).await?;
    let began = Instant::now();
    fill(bench, &large, bench.ready, bench.future).await?;
    let filled = per_s(bench.ready + 2 * bench.future, began.elapsed().as_secs_f64());
    let many = claims(bench, &large.store).await?;

    let mut report = Report::new("backlog", large.name, bench.ready);
    report.enqueue_per_s = Some(filled);
    report.own.insert("claim_small_ms", serde_json::to_value(Percentiles::of(&few))?);
    report.own.insert("claim_ms", serde_json::to_value(Percentiles::of(&many))?);
    let ratio = |quantile| many.value_at_quantile(quantile) as f64 / few.value_at_quantile(quantile) as f64;
    report.own.insert("ratio_p50", rounded(ratio(0.5)));
    report.own.insert("ratio_p99", rounded(ratio(0.99)));
    Ok(report.with("ready", bench.ready as f64).with("future", bench.future as f64))
}

async fn fill(bench: &JobsBench, target: &Target, ready: u64, future: u64) -> Result<()> {
    let bytes = bench.payload_bytes;
    let make = move |n: u64| -> Result<NewJob> { Ok(noop(n, bytes)?.priority(priority(2 + (n % 3) as u8))) };
    enqueue(bench, &target.store, ready, make).await?;
    let later = move |n: u64| -> Result<NewJob> {
        Ok(noop(n, bytes)?.priority(priority(1)).start(StartAt::After(Duration::from_secs(24 * 3600))))
    };
    enqueue(bench, &target.store, future, later).await?;
    let foreign = move |n: u64| -> Result<NewJob> {
        let mut job = noop(n, bytes)?.priority(priority(1));
        job.kind = FOREIGN.to_owned();
        Ok(job)
    };
    enqueue(bench, &target.store, future, foreign).await?;
    Ok(())
}

/// Measures claims. Each claim's jobs are completed and replaced by new ones, so that the size of the backlog is constant.
async fn claims(bench: &JobsBench, store: &Arc<dyn Store>) -> Result<Histogram<u64>> {
    let worker = NewWorker {
        name: "bench".to_owned(),
        queues: vec![QUEUE.to_owned()],
        kinds: vec![NOOP.to_owned()],
        lease: Duration::from_secs(600),
        ..NewWorker::default()
    };
    let worker = store.register_worker(&worker).await?;
    let mut took = Histogram::<u64>::new(3)?;
    for number in 0..WARM_UP + CLAIMS {
        let claim_id = i32::try_from(number + 1)?;
        let elapsed = claim_once(bench, store, worker, claim_id).await?;
        if number >= WARM_UP {
            took.record(micros(elapsed))?;
        }
    }
    store.retire_worker(worker).await?;
    Ok(took)
}

async fn claim_once(
    bench: &JobsBench,
    store: &Arc<dyn Store>,
    worker: WorkerId,
    claim_id: i32,
) -> Result<Duration> {
    let claim = Claim {
        worker,
        claim_id,
        queues: vec![QUEUE.to_owned()],
        kinds: vec![NOOP.to_owned()],
        limit: BATCH,
        thorough: false,
    };
    let began = Instant::now();
    let jobs = store.claim(&claim).await?;
    let elapsed = began.elapsed();
    anyhow::ensure!(jobs.len() == BATCH as usize, "a claim above a backlog returned {} jobs", jobs.len());
    let ends: Vec<Finish> = jobs
        .iter()
        .map(|job| Finish { run: job.run, end: End::Succeed { result: None }, grouped: false, task: false })
        .collect();
    store.finish_many(worker, &ends).await?;
    let back = jobs
        .iter()
        .map(|job| Ok(noop(u64::from(job.attempt), bench.payload_bytes)?.priority(job.priority)))
        .collect::<Result<Vec<NewJob>>>()?;
    store.enqueue_many(&back).await?;
    Ok(elapsed)
}

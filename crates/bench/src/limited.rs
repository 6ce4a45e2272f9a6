//! Benchmark of the cost of limits for kinds without limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use milepost::{Outcome, RetryPolicy, Worker};
use milepost_cli_support::store::StoreAddress;
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::port::Store;

use super::JobsBench;
use super::report::{Report, median, per_s};
use super::target::{QUEUE, Target};
use super::workload::{NOOP, enqueue, noop};

/// The number of rounds for each neighbour; the neighbours alternate.
const ROUNDS: usize = 3;
/// The kind of the jobs that run beside the measured ones.
const NEIGHBOUR: &str = "limited";
/// The number of groups in the class, their concurrency limit, and the duration of their jobs.
const GROUPS: u64 = 20;
const SLOTS: u32 = 3;
const GROUPED_TAKES: Duration = Duration::from_millis(100);

/// The jobs that run beside the unlimited kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nobody,
    /// A kind with a rate limit, and more jobs than the limit lets it run.
    Rate,
    /// Groups with a concurrency limit, and more jobs than the limit lets them run.
    Groups,
}

/// The result of one round.
struct Measured {
    enqueue_per_s: f64,
    run_per_s: f64,
    neighbours_per_s: f64,
}

/// Runs `--mode limited`; reports medians of alternating rounds.
pub(super) async fn run(bench: &JobsBench, address: &StoreAddress) -> Result<Report> {
    let sorts = [Beside::Nobody, Beside::Rate, Beside::Groups];
    let mut run_rates = [const { Vec::new() }; 3];
    let mut neighbour_rates = [const { Vec::new() }; 3];
    let mut enqueue_rates = Vec::new();
    let mut name = "";
    for _ in 0..ROUNDS {
        for (at, &beside) in sorts.iter().enumerate() {
            let target = Target::prepare(address).await?;
            let measured = round(bench, &target.store, beside).await?;
            run_rates[at].push(measured.run_per_s);
            neighbour_rates[at].push(measured.neighbours_per_s);
            enqueue_rates.push(measured.enqueue_per_s);
            name = target.name;
            target.close().await;
        }
    }
    let [alone, rate, groups] = run_rates.map(median);
    let [_, rate_neighbours, group_neighbours] = neighbour_rates.map(median);
    let mut report = Report::new("limited", name, bench.jobs());
    report.enqueue_per_s = Some(median(enqueue_rates));
    report.run_per_s = Some(rate.min(groups));
    Ok(report
        .with("alone_run_per_s", alone)
        .with("beside_rate_run_per_s", rate)
        .with("beside_groups_run_per_s", groups)
        .with("limited_kind_per_s", rate_neighbours)
        .with("limited_groups_per_s", group_neighbours)
        .with("ratio_rate", rate / alone)
        .with("ratio_groups", groups / alone)
        .with("ratio", rate.min(groups) / alone))
}

async fn round(bench: &JobsBench, store: &Arc<dyn Store>, beside: Beside) -> Result<Measured> {
    let (jobs, bytes) = (bench.jobs(), bench.payload_bytes);
    match beside {
        Beside::Nobody => {}
        Beside::Rate => {
            let rate = Rate::steady(bench.rate as f64);
            store.put_limit(&Limit::kind(NEIGHBOUR, rate), Source::Operator).await?;
        }
        Beside::Groups => {
            store.put_limit(&Limit::group("bench:*").slots(SLOTS), Source::Operator).await?;
        }
    }
    if beside != Beside::Nobody {
        enqueue(bench, store, jobs / 2, move |n| neighbour(n, bytes, beside)).await?;
    }
    let enqueued = enqueue(bench, store, jobs, move |n| noop(n, bytes)).await?;

    let (done, neighbours) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let worker = worker(store, beside, &done, &neighbours).await?;
    while done.load(Ordering::Relaxed) < jobs {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = began.elapsed().as_secs_f64();
    let ran = neighbours.load(Ordering::Relaxed);
    worker.shutdown().await;
    Ok(Measured {
        enqueue_per_s: per_s(jobs, enqueued.as_secs_f64()),
        run_per_s: per_s(jobs, took),
        neighbours_per_s: per_s(ran, took),
    })
}

fn neighbour(number: u64, payload_bytes: usize, beside: Beside) -> Result<NewJob> {
    let mut job = noop(number, payload_bytes)?;
    NEIGHBOUR.clone_into(&mut job.kind);
    Ok(match beside {
        Beside::Groups => job.group(format!("bench:{}", number % GROUPS)),
        Beside::Nobody | Beside::Rate => job,
    })
}

/// Starts a worker for both kinds; counts the jobs of each as they run.
async fn worker(
    store: &Arc<dyn Store>,
    beside: Beside,
    done: &Arc<AtomicU64>,
    neighbours: &Arc<AtomicU64>,
) -> Result<Worker> {
    let (done, neighbours) = (done.clone(), neighbours.clone());
    Worker::builder(store.clone())
        .handle_kind(NOOP, RetryPolicy::default(), move |_| {
            done.fetch_add(1, Ordering::Relaxed);
            async { Ok(Outcome::Done) }
        })
        .handle_kind(NEIGHBOUR, RetryPolicy::default(), move |_| {
            neighbours.fetch_add(1, Ordering::Relaxed);
            async move {
                if beside == Beside::Groups {
                    tokio::time::sleep(GROUPED_TAKES).await;
                }
                Ok(Outcome::Done)
            }
        })
        .queues([QUEUE])
        .options(|options| {
            options.concurrency = 4000;
            options.claim_batch = 1000;
        })
        .start()
        .await
        .context("cannot start the worker of the benchmark")
}

//! Benchmark of enqueueing one job per transaction from many clients, which measures the cost of wake-ups.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use futures::future::try_join_all;
use milepost_cli_support::store::StoreAddress;
use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore};

use super::JobsBench;
use super::report::{Report, median, per_s};
use super::target::Target;
use super::workload::{NOOP, noop, worker};

/// The number of pairs of rounds; rounds with and without wake-ups alternate.
const ROUNDS: usize = 5;

/// Runs `--mode single-enqueue`.
pub(super) async fn run(bench: &JobsBench, target: &Target, address: &StoreAddress) -> Result<Report> {
    target.server("single-enqueue")?;
    let StoreAddress::Postgres(url) = address else { bail!("--mode single-enqueue measures PostgreSQL") };
    let clients = bench.clients.unwrap_or(32);
    let options = || PostgresOptions {
        connections_max: u32::try_from(clients).unwrap_or(u32::MAX),
        ..PostgresOptions::default()
    };
    let separator = if url.contains('?') { '&' } else { '?' };
    let silent_url = format!("{url}{separator}options=-c%20milepost.wake%3Doff");
    let waking: Arc<dyn Store> = Arc::new(PostgresStore::connect(url, options()).await?);
    let silent: Arc<dyn Store> = Arc::new(PostgresStore::connect(&silent_url, options()).await?);

    // Idle: the listening worker does not serve these jobs. Busy: it runs them.
    let idle = ratio(bench, target, "somebody_else", &waking, &silent, clients).await?;
    let busy = ratio(bench, target, NOOP, &waking, &silent, clients).await?;
    let mut report = Report::new("single_enqueue", target.name, bench.jobs());
    report.enqueue_per_s = Some(idle.waking_per_s);
    Ok(report
        .with("idle_without_wake_per_s", idle.silent_per_s)
        .with("idle_ratio", idle.ratio)
        .with("busy_with_wake_per_s", busy.waking_per_s)
        .with("busy_without_wake_per_s", busy.silent_per_s)
        .with("busy_ratio", busy.ratio)
        .with("ratio", idle.ratio.min(busy.ratio)))
}

struct Compared {
    waking_per_s: f64,
    silent_per_s: f64,
    ratio: f64,
}

/// Returns medians of alternating rounds while a worker for `kind` listens.
async fn ratio(
    bench: &JobsBench,
    target: &Target,
    kind: &str,
    waking: &Arc<dyn Store>,
    silent: &Arc<dyn Store>,
    clients: usize,
) -> Result<Compared> {
    let listener = worker(&target.store, kind, |_| {}).await?;
    let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    // The first pair is a warm-up.
    for round in 0..=ROUNDS {
        let waking_per_s = enqueue_singly(waking, bench, clients).await?;
        let silent_per_s = enqueue_singly(silent, bench, clients).await?;
        if round > 0 {
            with.push(waking_per_s);
            without.push(silent_per_s);
            ratios.push(waking_per_s / silent_per_s);
        }
    }
    listener.shutdown().await;
    Ok(Compared { waking_per_s: median(with), silent_per_s: median(without), ratio: median(ratios) })
}

async fn enqueue_singly(store: &Arc<dyn Store>, bench: &JobsBench, clients: usize) -> Result<f64> {
    let (jobs, payload_bytes) = (bench.jobs(), bench.payload_bytes);
    let each = jobs / clients.max(1) as u64;
    let began = Instant::now();
    let callers = (0..clients).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..each {
                store.enqueue(&noop(number, payload_bytes)?).await?;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(per_s(each * clients as u64, began.elapsed().as_secs_f64()))
}

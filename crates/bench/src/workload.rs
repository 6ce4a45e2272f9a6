//! The jobs of a benchmark, the clients that enqueue them and the worker that runs them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use milepost::{Outcome, RetentionPolicy, RetryPolicy, Worker};
use milepost_core::job::{NewJob, Priority};
use milepost_core::port::Store;

use super::JobsBench;
use super::target::QUEUE;

/// The kind of jobs that do nothing.
pub(super) const NOOP: &str = "noop";
/// The maximum number of jobs in one enqueue call …
const BATCH: u64 = 1000;
/// … and the maximum number of bytes of their payloads.
const BATCH_BYTES: u64 = 4 * 1024 * 1024;

/// Creates a job that does nothing, with a payload of about this size.
pub(super) fn noop(number: u64, payload_bytes: usize) -> Result<NewJob> {
    let frame = format!("{{\"n\":{number},\"pad\":\"");
    let pad = "x".repeat(payload_bytes.saturating_sub(frame.len() + 2));
    Ok(NewJob::from_json(NOOP, format!("{frame}{pad}\"}}"))?.queue(QUEUE))
}

/// Enqueues `jobs` jobs with the configured number of clients, at most a thousand per call; returns the duration.
pub(super) async fn enqueue(
    bench: &JobsBench,
    store: &Arc<dyn Store>,
    jobs: u64,
    make: impl Fn(u64) -> Result<NewJob> + Clone + Send + Sync + 'static,
) -> Result<Duration> {
    let began = Instant::now();
    let clients = bench.clients.unwrap_or(4).max(1) as u64;
    let batch = (BATCH_BYTES / bench.payload_bytes.max(1) as u64).clamp(1, BATCH);
    let callers = (0..clients).map(|client| {
        let (store, make) = (store.clone(), make.clone());
        let numbers = jobs * client / clients..jobs * (client + 1) / clients;
        tokio::spawn(async move {
            let mut from = numbers.start;
            while from < numbers.end {
                let to = (from + batch).min(numbers.end);
                let jobs = (from..to).map(&make).collect::<Result<Vec<NewJob>>>()?;
                store.enqueue_many(&jobs).await?;
                from = to;
            }
            anyhow::Ok(())
        })
    });
    try_join_all(callers).await?.into_iter().collect::<Result<()>>()?;
    Ok(began.elapsed())
}

/// Runs all jobs of the no-op kind; returns the duration from the first claim to the acknowledgement of the last completion.
pub(super) async fn run_all(
    store: &Arc<dyn Store>,
    jobs: u64,
    started: impl Fn(&milepost::Context) + Send + Sync + 'static,
) -> Result<Duration> {
    let began = Instant::now();
    let worker = worker(store, NOOP, started).await?;
    while worker.stats().acknowledged < jobs {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = began.elapsed();
    worker.shutdown().await;
    Ok(took)
}

/// Starts a worker for no-op jobs of a kind; `started` is called at the start of each job.
pub(super) async fn worker(
    store: &Arc<dyn Store>,
    kind: &str,
    started: impl Fn(&milepost::Context) + Send + Sync + 'static,
) -> Result<Worker> {
    let worker = Worker::builder(store.clone())
        .handle_kind(kind, RetryPolicy::default(), move |context| {
            started(&context);
            async { Ok(Outcome::Done) }
        })
        .queues([QUEUE])
        .options(|options| {
            options.concurrency = 8000;
            options.claim_batch = 2000;
            options.retention = RetentionPolicy::FOREVER;
        });
    Ok(worker.start().await?)
}

/// Returns a priority by its number.
pub(super) fn priority(number: u8) -> Priority {
    Priority::try_from(number).unwrap_or_default()
}

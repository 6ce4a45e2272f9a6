//! Milepost in the protocol of bench/run: a program with its library, as an application would use it.
//!
//! It measures latency, crashes and idle cost; throughput is measured by `milepost bench jobs`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use milepost::{Context, JobError, NewJob, Outcome, RetryPolicy, Store, Worker};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

const KIND: &str = "noop";
/// Jobs that run at the same time in `work`, the same number for all systems.
const WORKERS: usize = 32;
const PORTION: u64 = 1000;

/// Returns the system's monotonic clock in microseconds: the same for all processes, and never adjusted.
fn now_us() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1000
}

/// Returns a job of about 100 bytes with the time of the enqueue call.
fn job(id: u64) -> Result<NewJob> {
    let payload = json!({ "id": id, "sent": now_us(), "pad": "x".repeat(60) });
    Ok(NewJob::from_json(KIND, payload.to_string())?)
}

/// Opens the store, and creates its schema if it does not exist.
async fn open() -> Result<Arc<dyn Store>> {
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    if let Some(path) = url.strip_prefix("sqlite:") {
        let store = SqliteStore::open(path, SqliteOptions::default())?;
        store.migrate().await?;
        return Ok(Arc::new(store));
    }
    let store = PostgresStore::connect(&url, PostgresOptions::default()).await?;
    store.migrate().await?;
    Ok(Arc::new(store))
}

async fn enqueue(jobs: u64) -> Result<Value> {
    let store = open().await?;
    let began = Instant::now();
    for first in (0..jobs).step_by(PORTION as usize) {
        let portion = (first..jobs.min(first + PORTION)).map(job).collect::<Result<Vec<_>>>()?;
        store.enqueue_many(&portion).await?;
    }
    Ok(json!({ "jobs": jobs, "seconds": began.elapsed().as_secs_f64() }))
}

/// Sends jobs at a steady rate; a call does not wait for the one before.
async fn send(rate: u64, seconds: u64) -> Result<Value> {
    let store = open().await?;
    let began = Instant::now();
    let mut calls = Vec::new();
    for n in 0..rate * seconds {
        tokio::time::sleep_until((began + Duration::from_secs_f64(n as f64 / rate as f64)).into()).await;
        let store = Arc::clone(&store);
        calls.push(tokio::spawn(async move { anyhow::Ok(store.enqueue(&job(n)?).await?) }));
    }
    let jobs = calls.len();
    for call in calls {
        call.await??;
    }
    Ok(json!({ "jobs": jobs }))
}

/// Appends a line with one write, which survives kill -9.
fn log(mut file: &File, line: &str) -> Result<(), JobError> {
    file.write_all(line.as_bytes()).map_err(|error| JobError::fatal("log", error.to_string()))
}

/// Logs "id sent started" and, if the job takes time, "id" at its end.
async fn handle(file: Arc<File>, context: Context, ms: u64) -> Result<Outcome, JobError> {
    let started_us = now_us();
    let payload: Value =
        serde_json::from_str(&context.job().payload).map_err(|e| JobError::fatal("payload", e.to_string()))?;
    log(&file, &format!("{} {} {started_us}\n", payload["id"], payload["sent"]))?;
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        log(&file, &format!("{}\n", payload["id"]))?;
    }
    Ok(Outcome::Done)
}

async fn work(path: &str, ms: u64) -> Result<Value> {
    let mut terminated = signal(SignalKind::terminate())?;
    let file = Arc::new(OpenOptions::new().append(true).create(true).open(path)?);
    let worker = Worker::builder(open().await?)
        .handle_kind(KIND, RetryPolicy::default(), move |context| handle(Arc::clone(&file), context, ms))
        .options(|options| options.concurrency = WORKERS)
        .start()
        .await?;
    terminated.recv().await;
    worker.shutdown().await;
    Ok(json!({}))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["setup"] => open().await.map(|_| json!({}))?,
        ["enqueue", jobs] => enqueue(jobs.parse()?).await?,
        ["send", rate, seconds] => send(rate.parse()?, seconds.parse()?).await?,
        ["work", path, ms] => work(path, ms.parse()?).await?,
        _ => bail!("usage: setup | enqueue JOBS | send RATE SECONDS | work LOG MS"),
    };
    println!("{result}");
    Ok(())
}

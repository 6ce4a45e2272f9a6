//! `milepost bench batch`: batches whose tasks do nothing, measured from their start to the end of the last task.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use milepost::Worker;
use milepost_cli_support::store::StoreAddress;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::BatchState;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;
use serde::Serialize;
use serde_json::{Value, json};

use super::latency::micros;
use super::process;
use super::report::{Percentiles, per_s, print, rounded};
use super::shape::{self, DAG, Shape};
use super::target::{QUEUE, Target};
use super::workload::{NOOP, worker};

/// The number of batches that are started concurrently.
const STARTERS: usize = 8;
/// The number of single-task batches that run as a warm-up.
const WARM_UP: u64 = 200;
/// The maximum time without progress before the benchmark fails.
const STILL_MAX: Duration = Duration::from_secs(60);

/// How to measure batches.
#[derive(Clone, Debug, Args)]
pub struct BatchBench {
    /// chain, fan, join, layered, heavy-tailed, or a file of edges (two keys per line, separated by a tab)
    #[arg(long, default_value = "layered")]
    shape: Shape,
    /// The number of tasks of a batch; not for a file of edges
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tasks: u64,
    /// The number of tasks per layer (layered) [default: 500, or a fifth of the tasks if that is less]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    width: Option<u64>,
    /// The number of successors of the first task (heavy-tailed) [default: three eighths of the tasks]
    #[arg(long)]
    hub: Option<u64>,
    /// The number of concurrent batches
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    batches: u64,
    /// Print one JSON object on one line
    #[arg(long)]
    pub(super) json: bool,
}

/// The JSON report. `tasks_per_s` counts from the start call to the end of the last task.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BatchReport {
    bench: &'static str,
    store: &'static str,
    batches: u64,
    tasks: u64,
    edges: u64,
    depth: u32,
    define_ms: Value,
    start_ms: Value,
    tasks_per_s: f64,
    hop_ms: Percentiles,
    wal_bytes_per_task: Option<f64>,
    peak_rss_mb: Option<f64>,
}

impl BatchReport {
    /// Prints the report as text.
    pub(super) fn print(&self) -> Result<()> {
        print(self)
    }
}

impl BatchBench {
    fn size(&self) -> shape::Size {
        shape::Size {
            tasks: self.tasks,
            width: self.width.unwrap_or((self.tasks / 5).clamp(1, 500)),
            hub: self.hub.unwrap_or(self.tasks / 8 * 3),
        }
    }
}

pub(super) async fn run(bench: &BatchBench, address: &StoreAddress) -> Result<BatchReport> {
    let dag = bench.shape.dag(bench.size())?;
    let target = Target::prepare(address).await?;
    let store = target.batches();
    let defining = Instant::now();
    store.define_dag(&dag).await?;
    let define = defining.elapsed();

    let hops = Arc::new(Hops::of(&dag, bench.batches == 1));
    let Size { tasks, edges, depth } = Size::of(&dag);
    drop(dag);
    let seen = Arc::clone(&hops);
    let worker = worker(&target.store, NOOP, move |context| seen.pass(&context.job().payload)).await?;
    warm_up(&store, &worker).await?;
    let logged_before = target.logged_bytes().await;
    let began = Instant::now();
    let started = start_all(&store, DAG, bench.batches).await?;
    let start = began.elapsed();
    let tasks = tasks * bench.batches;
    wait_for(&worker, WARM_UP + tasks).await?;
    let took = began.elapsed();
    worker.shutdown().await;
    let logged_after = target.logged_bytes().await;
    check(&store, &started).await?;
    Ok(BatchReport {
        bench: "batch",
        store: target.name,
        batches: bench.batches,
        tasks,
        edges: edges * bench.batches,
        depth,
        define_ms: rounded(define.as_secs_f64() * 1000.0),
        start_ms: rounded(start.as_secs_f64() * 1000.0),
        tasks_per_s: per_s(tasks, took.as_secs_f64()),
        hop_ms: hops.percentiles(),
        wal_bytes_per_task: logged_before
            .zip(logged_after)
            .map(|(before, after)| ((after - before) / tasks as f64).round()),
        peak_rss_mb: process::peak_rss_mb(),
    })
}

/// The size of a DAG.
struct Size {
    tasks: u64,
    edges: u64,
    depth: u32,
}

impl Size {
    fn of(dag: &Dag) -> Self {
        let graph = dag.graph();
        Self { tasks: graph.len() as u64, edges: graph.edges() as u64, depth: graph.depth() }
    }
}

/// Runs small batches, so that every connection has executed and planned the measured statements once.
async fn warm_up(store: &Arc<dyn BatchStore>, worker: &Worker) -> Result<()> {
    let mut task = Task::job(NOOP);
    task.queue = QUEUE.to_owned();
    let name = format!("{DAG}-warm-up");
    store.define_dag(&Dag::check(Definition::new(&name).task("only", task))?).await?;
    start_all(store, &name, WARM_UP).await?;
    wait_for(worker, WARM_UP).await
}

/// Waits until `tasks` tasks have ended.
async fn wait_for(worker: &Worker, tasks: u64) -> Result<()> {
    let mut moved = (0, Instant::now());
    while worker.stats().acknowledged < tasks {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let ended = worker.stats().acknowledged;
        if ended > moved.0 {
            moved = (ended, Instant::now());
        } else if moved.1.elapsed() > STILL_MAX {
            bail!("{ended} of {tasks} tasks have ended, and there is no further progress");
        }
    }
    Ok(())
}

async fn start_all(store: &Arc<dyn BatchStore>, dag: &str, batches: u64) -> Result<Vec<BatchId>> {
    let starts = stream::iter(0..batches).map(|number| async move {
        let batch = NewBatch::new(dag, &json!({}))?.key(number.to_string());
        anyhow::Ok(store.start_batch(&batch).await?.batch)
    });
    starts.buffer_unordered(STARTERS).try_collect().await
}

/// Checks that all batches are done; otherwise the measurement is invalid.
async fn check(store: &Arc<dyn BatchStore>, started: &[BatchId]) -> Result<()> {
    for &id in started {
        let batch = store.batch(id).await?.with_context(|| format!("batch {id} no longer exists"))?;
        if batch.row.state != BatchState::Done {
            bail!("batch {id} is {} after its last task has ended", batch.row.state);
        }
    }
    Ok(())
}

/// Measures how long tasks wait after the end of their last predecessor.
struct Hops {
    /// When each task ran, in µs since the beginning; 0: not yet.
    ran: Vec<AtomicU64>,
    predecessors: Vec<Vec<u32>>,
    began: Instant,
    found: Mutex<Option<Histogram<u64>>>,
}

impl Hops {
    /// Creates the measurement for the single batch of a DAG; several batches are not measured.
    fn of(dag: &Dag, measured: bool) -> Self {
        let tasks = if measured { dag.graph().len() } else { 0 };
        let number = |task: usize| u32::try_from(task).unwrap_or(u32::MAX);
        Self {
            ran: (0..tasks).map(|_| AtomicU64::new(0)).collect(),
            predecessors: (0..tasks).map(|task| dag.graph().predecessors(number(task)).to_vec()).collect(),
            began: Instant::now(),
            found: Mutex::new(Histogram::new(3).ok()),
        }
    }

    /// Records that a task runs. Its duration is neglected.
    fn pass(&self, payload: &str) {
        let Ok(n) = payload.parse::<usize>() else { return };
        let Some(ran) = self.ran.get(n) else { return };
        let now = micros(self.began.elapsed());
        let last =
            self.predecessors[n].iter().map(|&task| self.ran[task as usize].load(Ordering::Relaxed)).max();
        if let Some(last) = last
            && let Some(found) = self.found.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            let _ = found.record(now.saturating_sub(last));
        }
        ran.store(now, Ordering::Relaxed);
    }

    fn percentiles(&self) -> Percentiles {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.as_ref().map(Percentiles::of).unwrap_or_default()
    }
}

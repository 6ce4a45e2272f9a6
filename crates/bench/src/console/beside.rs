//! The content of a large store other than its jobs: created through the ports, as applications do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use milepost_cli_support::operator;
use milepost_core::batch::start::NewBatch;
use milepost_core::bulk::definition::{Definition, Labels};
use milepost_core::claim::Claim;
use milepost_core::event::{Aggregate, NewEvent};
use milepost_core::ident::{BatchId, JobId, WorkerId};
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::NewWorker;
use serde_json::json;

use super::fill::{KINDS, QUEUES};
use crate::shape::{DAG, Shape, Size};

/// The number of running jobs.
const RUNNING: u32 = 50;
/// Longer than any benchmark, so that the worker's jobs are not reclaimed.
const LEASE: Duration = Duration::from_secs(24 * 3600);
/// The number of events in the log, of events per call, and of aggregates.
const EVENTS: u64 = 5_000;
const PORTION: u64 = 500;
const AGGREGATES: u64 = 1_000;
/// The maximum number of tasks in a layer of the batch.
const WIDTH_MAX: u64 = 500;
/// Names and cron expressions of schedules.
const SCHEDULES: [(&str, &str); 4] = [
    ("nightly-report", "0 3 * * *"),
    ("sync-customers", "@every 10m"),
    ("month-end", "30 4 1 * *"),
    ("score-again", "@every 1h"),
];

/// The ids of items with a separate page.
pub(super) struct Places {
    pub(super) failed: JobId,
    pub(super) bulk: JobId,
    pub(super) batch: BatchId,
}

/// Registers the worker that has run the jobs.
pub(super) async fn register(store: &dyn Store) -> Result<WorkerId> {
    let worker = NewWorker {
        name: "bench".to_owned(),
        queues: QUEUES.map(str::to_owned).into(),
        kinds: KINDS.map(str::to_owned).into(),
        lease: LEASE,
        ..NewWorker::default()
    };
    Ok(store.register_worker(&worker).await?)
}

/// Creates all other content in a store that has its jobs.
pub(super) async fn make(tasks: u64, worker: WorkerId, store: &Arc<dyn Store>) -> Result<Places> {
    let operator = operator::acting(store.as_ref())?;
    let failed = last_failed(store.as_ref()).await?;
    claim(worker, store.as_ref()).await?;
    emit(store.as_ref()).await?;
    make_schedules(operator.as_ref()).await?;
    let bulk = start_bulk(operator.as_ref()).await?;
    let batch = start_batch(tasks, operator.as_ref()).await?;
    Ok(Places { failed, bulk, batch })
}

/// Returns the last job that failed.
async fn last_failed(store: &dyn Store) -> Result<JobId> {
    let search = JobFilter { state: Some(JobState::Failed), limit: 1, ..JobFilter::default() };
    let found = store.search_jobs(&search).await?;
    found.rows.first().map(|row| row.id).context("none of the jobs has failed")
}

/// Claims some of the jobs, which run for as long as the benchmark does.
async fn claim(worker: WorkerId, store: &dyn Store) -> Result<()> {
    let claim = Claim {
        worker,
        claim_id: 1,
        queues: QUEUES.map(str::to_owned).into(),
        kinds: KINDS.map(str::to_owned).into(),
        limit: RUNNING,
        thorough: true,
    };
    store.claim(&claim).await?;
    Ok(())
}

async fn emit(store: &dyn Store) -> Result<()> {
    for first in (0..EVENTS).step_by(PORTION as usize) {
        let events = (first..first + PORTION).map(|n| {
            let aggregate = Aggregate::new("order", (n % AGGREGATES).to_string());
            Ok(NewEvent::new(aggregate, "order.paid", &json!({ "order": n, "amount": n % 500 }))?)
        });
        let events = events.collect::<Result<Vec<NewEvent>>>()?;
        store.emit_many(&events).await?;
    }
    Ok(())
}

async fn make_schedules(store: &dyn Store) -> Result<()> {
    for (name, when) in SCHEDULES {
        let job = NewJob::new("report", &json!({ "schedule": name }))?.queue("night");
        let schedule = Schedule::new(name, Spec::parse(when, "Europe/Vienna")?, job);
        store.put_schedule(&schedule, Source::Operator).await?;
    }
    Ok(())
}

/// Starts a run that waits because no worker serves it.
async fn start_bulk(store: &dyn Store) -> Result<JobId> {
    let mut definition = Definition::new("bench_notify");
    definition.labels = Labels { r#type: Some("notification".to_owned()), category: None };
    store.put_bulk(&definition, Source::Operator).await?;
    let job = definition.direct(NewJob::new("", &json!({ "topic": 4 }))?);
    Ok(store.start_bulk(&job).await?.job)
}

/// Starts a batch of which no task has run.
async fn start_batch(tasks: u64, store: &dyn Store) -> Result<BatchId> {
    let dag = Shape::Layered.dag(Size { tasks, width: (tasks / 5).clamp(1, WIDTH_MAX), hub: 0 })?;
    store.define_dag(&dag).await?;
    Ok(store.start_batch(&NewBatch::new(DAG, &json!({}))?).await?.batch)
}

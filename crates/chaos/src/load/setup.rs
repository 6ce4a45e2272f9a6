//! What the load is about: kinds, limits, a schedule, a DAG, a bulk job, subscriptions, a consumer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use milepost::bulk::{Bulk, Definition as BulkDefinition};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::wait::Wait;
use milepost_core::event::{Begin, Changes};
use milepost_core::event_work::{JobSpec, WorkSpec, WorkTemplate};
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, Rate};
use milepost_core::port::Store;
use milepost_core::schedule::{Misfire, Schedule, Source, Spec};
use milepost_testkit::home::{self, Command, Home};
use milepost_testkit::notes;
use serde_json::json;

use super::witnessed_bulk::Witnessed;
use super::{Pace, ProcessArgs};
use crate::witness::Witness;

/// The lease of workers and publishers.
pub const LEASE: Duration = Duration::from_secs(2);
/// The queue of all jobs.
pub const QUEUE: &str = "chaos";
/// Jobs whose handlers commit an effect with their success.
pub const EFFECT: &str = "chaos.effect";
/// Jobs that succeed. Their state changes are events.
pub const PLAIN: &str = "chaos.plain";
/// Jobs that fail often.
pub const FLAKY: &str = "chaos.flaky";
/// Jobs with a limited rate.
pub const RATED: &str = "chaos.rated";
/// The rate of [`RATED`]: starts per second, and at once.
pub const RATE: (f64, u32) = (150.0, 20);
/// The groups, with the number of their slots.
pub const GROUPS: [(&str, u32); 3] = [("one", 1), ("two", 2), ("three", 3)];
/// The subscription to emitted events that all workers publish.
pub const SUBSCRIPTION: &str = "chaos";
/// The subscription to state changes of [`PLAIN`] that all workers publish.
pub const CHANGES: &str = "chaos-changes";
/// The subscription to emitted events of which each starts a job.
pub const STARTS: &str = "chaos-starts";
/// The jobs that events start. Each has the id of its event.
pub const STARTED: &str = "chaos.started";
/// The consumer of the emitted events, and the subscription with which it reads them.
pub const CONSUMER: &str = "chaos-consumer";
/// The schedule, which ticks every second.
pub const SCHEDULE: &str = "chaos";
/// The DAG of all batches.
pub const DAG: &str = "chaos";
/// The bulk job.
pub const BULK: &str = "chaos.bulk";
/// The number of its targets.
pub const TARGETS: u32 = 120;
/// The largest number of ticks that a schedule makes up for.
const MISSED_MAX: u32 = 1_000;
/// The most targets of a chunk.
const CHUNK_ROWS: u32 = 10;

/// The task of each batch that waits for a signal, and the signal.
pub const WAIT: &str = "go";

/// Returns the versions of the DAG, in the order of their numbers. `attempt_max`: the time limit of an attempt, as of all other jobs.
///
/// # Panics
/// When one is not valid.
#[must_use]
pub fn versions(attempt_max: Duration) -> [Dag; 2] {
    let (queue, timeout) = (QUEUE.to_owned(), Some(attempt_max));
    let job = |kind: &str| Task { queue: queue.clone(), timeout, ..Task::job(kind) };
    let items = Task { queue: queue.clone(), timeout, ..Task::each(PLAIN, "input.list") };
    let first = Definition::new(DAG)
        .task("begin", job(EFFECT))
        .task("flaky", job(FLAKY).after(["begin"]))
        .task("items", items.payload(json!({"item": "${ item }"})).after(["begin"]))
        .task("some", job(PLAIN).when("size(input.list) > 2").after(["begin"]))
        .task(WAIT, Task::wait(Wait::signal(WAIT)))
        .task("end", job(PLAIN).after(["flaky", "items", WAIT]));
    let second = first.clone().task("after", job(EFFECT).after(["end"]));
    [first, second].map(|definition| Dag::check(definition).expect("a valid DAG"))
}

/// Returns the work that each event of [`STARTS`] starts. `attempt_max`: the time limit of an attempt, as of all other jobs.
///
/// # Panics
/// When it is not valid.
#[must_use]
pub fn work(attempt_max: Duration) -> WorkTemplate {
    let spec = JobSpec {
        kind: STARTED.to_owned(),
        queue: Some(QUEUE.to_owned()),
        payload: Some(json!({"event": "${ event.id }"})),
        key: None,
        group: None,
        priority: None,
        max_attempts: None,
        timeout: Some(attempt_max),
    };
    WorkTemplate::compile(WorkSpec::Job(spec)).expect("valid work")
}

/// Returns the definition of the bulk job.
#[must_use]
pub fn bulk_definition() -> BulkDefinition {
    BulkDefinition { queue: QUEUE.to_owned(), ..notes::definition(BULK, CHUNK_ROWS) }
}

/// Returns the bulk job of a process, whose chunks a witness sees.
///
/// # Errors
/// When its statements are not valid.
pub fn bulk(home: &dyn Home, witness: Arc<Witness>, pace: Pace) -> Result<Bulk> {
    let definition = bulk_definition();
    let work = home.bulk_work(&definition, notes::SOURCE, &["id"], Command::Function)?;
    let witnessed = Arc::new(Witnessed::new(work, witness, pace.chunk_pause));
    Ok(Bulk::new(definition, home.intercept_work(witnessed)))
}

/// Creates the store of an experiment, with everything that the load needs.
///
/// # Errors
/// When the witness cannot write, or the store refuses something.
pub async fn run(args: ProcessArgs) -> Result<()> {
    let home = home::create(&args.store).await;
    let witness = Arc::new(args.witness()?);
    prepare(home.as_ref(), witness, Pace::REAL).await
}

/// Stores everything that the load needs.
///
/// # Errors
/// When the store refuses something.
pub async fn prepare(home: &dyn Home, witness: Arc<Witness>, pace: Pace) -> Result<()> {
    let store = home.store();
    limit(store.as_ref()).await?;
    let job = NewJob::new(PLAIN, &())?.queue(QUEUE);
    let schedule = Schedule::new(SCHEDULE, Spec::every(pace.tick_every)?, job);
    store.put_schedule(&schedule.misfire(Misfire::All { max: MISSED_MAX }), Source::Operator).await?;
    for dag in versions(pace.attempt_max) {
        store.define_dag(&dag).await?;
    }
    create_tables(home).await;
    store.put_bulk(bulk(home, witness, pace)?.definition(), Source::Operator).await?;
    for subscription in [SUBSCRIPTION, CONSUMER, CHANGES] {
        store.subscribe(subscription, Begin::Beginning).await?;
    }
    anyhow::ensure!(store.record_changes(CHANGES, &changes()).await?, "state changes are not recorded");
    Ok(())
}

/// Creates the tables of the load beside those of Milepost.
pub async fn create_tables(home: &dyn Home) {
    home.tamper(&format!(
        "create table public.member (id bigint primary key, place text not null, name text not null);
         create table public.note (run text not null, member bigint not null);
         with recursive n(id) as (select 1 union all select id + 1 from n where id < {TARGETS})
         insert into public.member (id, place, name) select id, 'here', 'member ' || id from n"
    ))
    .await;
    home.desk().await;
}

/// Returns the state changes that are recorded.
#[must_use]
pub fn changes() -> Changes {
    Changes { kinds: vec![PLAIN.to_owned()], dags: Vec::new() }
}

/// Sets the limits of groups and of a kind.
async fn limit(store: &dyn Store) -> Result<()> {
    for (group, slots) in GROUPS {
        store.put_limit(&Limit::group(group).slots(slots), Source::Operator).await?;
    }
    let (per_s, burst) = RATE;
    store.put_limit(&Limit::kind(RATED, Rate::new(per_s, burst)), Source::Operator).await?;
    Ok(())
}

//! The rows of a store, for the record.

use std::collections::{HashMap, VecDeque};

use anyhow::Result;
use milepost_core::audit::AuditFilter;
use milepost_core::batch::listing::{BatchFilter, TaskFilter};
use milepost_core::event::PageSize;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::BatchId;
use milepost_core::listing::JobRow;
use milepost_core::port::Store;
use milepost_core::search::JobFilter;
use milepost_testkit::home::Home;
use milepost_testkit::relay;
use serde_json::Value;

use crate::load::Pace;
use crate::load::setup::{
    self, CHANGES, CONSUMER, EFFECT, GROUPS, LEASE, PLAIN, RATE, RATED, SCHEDULE, STARTED, STARTS,
    SUBSCRIPTION, versions,
};
use crate::record::{Change, Effect, Job, Record, Row, Task};

/// The number of rows that are read at a time.
const PAGE: u32 = 1_000;
/// The subscription with which the log is read.
const EXPORT: &str = "chaos-export";
/// The prefix of the keys of scheduled jobs.
const OF_SCHEDULE: &str = "schedule/";
/// The prefix of the types of aggregates that are jobs.
const OF_JOBS: &str = "milepost.job.";

/// Adds everything that the checker knows about a store.
///
/// # Errors
/// When the store does not answer.
pub async fn export(home: &dyn Home, record: &mut Record) -> Result<()> {
    let store = home.store();
    let mut rows = vec![
        Row::Effectful { kind: EFFECT.to_owned() },
        Row::Recorded { kind: PLAIN.to_owned() },
        Row::Subscription { name: SUBSCRIPTION.to_owned(), changes: false },
        Row::Subscription { name: CHANGES.to_owned(), changes: true },
        Row::Consumer { name: CONSUMER.to_owned() },
        Row::Starter { name: STARTS.to_owned() },
    ];
    for (group, slots) in GROUPS {
        rows.push(Row::GroupLimit { group: group.to_owned(), slots: slots as usize });
    }
    let (per_s, burst) = RATE;
    rows.push(Row::Rate { kind: RATED.to_owned(), per_s, burst });
    jobs(store.as_ref(), &mut rows).await?;
    schedule(store.as_ref(), &mut rows).await?;
    batches(store.as_ref(), &mut rows).await?;
    audit(store.as_ref(), &mut rows).await?;
    for filter in [Vec::new(), setup::changes().aggregate_types()] {
        events(store.as_ref(), filter, &mut rows).await?;
    }
    let effects = home.effects().await.into_iter().map(|effect| Row::Effect {
        job: effect.job.to_string(),
        token: u64::from(effect.token.0.unsigned_abs()),
    });
    rows.extend(effects);
    record.effects.extend(consumed(home, &rows).await);
    record.effects.extend(targets(home).await?);
    record.rows = rows;
    Ok(())
}

async fn jobs(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let mut filter = JobFilter { limit: PAGE, ..JobFilter::default() };
    loop {
        let page = store.jobs(&filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.before = Some(last.id);
        for job in page {
            let history = store.complete_history(job.id).await?;
            rows.extend(history.into_iter().map(|entry| Row::Change(change(entry))));
            if job.kind == STARTED
                && let Some(view) = store.job(job.id).await?
            {
                let payload: Value = serde_json::from_str(view.payload.get())?;
                let event = payload["event"].as_str().unwrap_or_default().to_owned();
                rows.push(Row::Started { by: STARTS.to_owned(), event });
            }
            rows.push(Row::Job(row(job)));
        }
    }
}

fn row(job: JobRow) -> Job {
    let tick = job.key.as_deref().and_then(|key| key.strip_prefix(OF_SCHEDULE));
    Job {
        id: job.id.to_string(),
        tick: tick.map(|tick| tick.replacen('/', " ", 1)),
        kind: job.kind,
        key: job.key,
        group: job.group,
        state: job.state.to_string(),
        token: u64::from(job.token.0.unsigned_abs()),
        max_attempts: job.max_attempts,
    }
}

fn change(entry: HistoryEntry) -> Change {
    Change {
        pos: entry.pos,
        job: entry.job.to_string(),
        verb: entry.verb.to_string(),
        from: entry.from.map(|state| state.to_string()),
        to: entry.to.to_string(),
        attempt: entry.attempt,
        token: u64::from(entry.token.0.unsigned_abs()),
        at_ms: entry.at.as_millisecond(),
        ready_at_ms: entry.ready_at.map(jiff::Timestamp::as_millisecond),
        error_code: entry.error_code,
    }
}

/// Every second from the first tick to the last one was due.
async fn schedule(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let Some(view) = store.schedule(SCHEDULE).await? else { return Ok(()) };
    let made: Vec<&str> = rows
        .iter()
        .filter_map(|row| if let Row::Job(job) = row { job.tick.as_deref() } else { None })
        .filter_map(|tick| tick.split_once(' ').map(|(_, time)| time))
        .collect();
    let (Some(first), Some(last)) = (made.iter().min(), view.last_at) else { return Ok(()) };
    let mut due = Vec::new();
    let mut next: Option<jiff::Timestamp> = Some(first.parse()?);
    while let Some(at) = next.filter(|at| *at <= last) {
        due.push(at.to_string());
        next = view.schedule.spec.next_after(at);
    }
    rows.push(Row::Schedule { name: SCHEDULE.to_owned(), due });
    Ok(())
}

async fn batches(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let mut filter = BatchFilter { inner: true, limit: PAGE, ..BatchFilter::default() };
    loop {
        let page = store.batches(&filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.before = Some(last.id);
        for batch in page {
            let version = u64::from(batch.number);
            let is_outer = batch.parent.is_none();
            tasks(store, batch.id, is_outer.then_some(batch.number), rows).await?;
            rows.push(Row::Batch { id: batch.id.to_string(), state: batch.state.to_string(), version });
        }
    }
}

/// Adds the tasks of a batch. `version`: the number of its version, if it is not a batch of items.
async fn tasks(store: &dyn Store, batch: BatchId, version: Option<u32>, rows: &mut Vec<Row>) -> Result<()> {
    // Only its edges count here, which are the same with every time limit.
    let versions = versions(Pace::REAL.attempt_max);
    let dag = version.and_then(|number| versions.get(number as usize - 1));
    for task in store.batch_tasks(batch, &TaskFilter::default()).await? {
        let tasks = dag.map(|dag| dag.definition().tasks.iter());
        let definition = tasks.and_then(|mut tasks| tasks.find(|(key, _)| *key == task.key));
        rows.push(Row::Task(Task {
            batch: batch.to_string(),
            after: definition.map(|(_, task)| task.after.clone()).unwrap_or_default(),
            job: task.job.map(|job| job.to_string()),
            open_predecessors: i64::from(task.pre_cnt),
            state: task.state.to_string(),
            task: task.key,
        }));
    }
    Ok(())
}

async fn audit(store: &dyn Store, rows: &mut Vec<Row>) -> Result<()> {
    let mut filter = AuditFilter { limit: PAGE, ..AuditFilter::default() };
    loop {
        let page = store.audit_log(&filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.before = Some(last.pos);
        rows.extend(page.into_iter().filter_map(|entry| entry.why).map(|mark| Row::Audit { mark }));
    }
}

/// Adds the events of these aggregate types; without any, all that were emitted.
async fn events(store: &dyn Store, aggregate_types: Vec<String>, rows: &mut Vec<Row>) -> Result<()> {
    let subscription = format!("{EXPORT}-{}", aggregate_types.len());
    let mut publisher = relay::publisher(store, &subscription, LEASE * 100).await;
    publisher.filter.aggregate_types = aggregate_types;
    let mut reader = store.reader(publisher);
    reader.balance().await?;
    let mut changes = unmatched(rows);
    loop {
        let page = reader.page(PageSize { events_max: PAGE as usize, bytes_max: 16 * 1024 * 1024 }).await?;
        if page.events.is_empty() {
            return Ok(());
        }
        for event in page.events {
            let payload = event.payload.get().to_owned();
            let change = match event.aggregate.kind.starts_with(OF_JOBS) {
                true => Some(described(&mut changes, &event.aggregate.id, &payload)?),
                false => None,
            };
            rows.push(Row::Event {
                id: event.id.to_string(),
                aggregate: event.aggregate.to_string(),
                sequence: event.sequence.unsigned_abs(),
                payload,
                change,
            });
        }
        reader.pass();
    }
}

/// The changes of each job that no event has described yet, in the order of the log.
type Unmatched = HashMap<String, VecDeque<Change>>;

fn unmatched(rows: &[Row]) -> Unmatched {
    let mut changes: Vec<&Change> = rows
        .iter()
        .filter_map(|row| if let Row::Change(change) = row { Some(change) } else { None })
        .collect();
    changes.sort_by_key(|change| change.pos);
    let mut of_jobs = Unmatched::new();
    for change in changes {
        of_jobs.entry(change.job.clone()).or_default().push_back(change.clone());
    }
    of_jobs
}

/// The position of a change that the store does not have.
pub const NO_CHANGE: i64 = -1;

/// Returns the position of the next change of the job that an event can describe; [`NO_CHANGE`] if none does. Events have no positions.
fn described(changes: &mut Unmatched, job: &str, payload: &str) -> Result<i64> {
    let payload: Value = serde_json::from_str(payload)?;
    let Some(changes) = changes.get_mut(job) else { return Ok(NO_CHANGE) };
    let is_it = |change: &Change| {
        payload["verb"] == *change.verb
            && payload["to"] == *change.to
            && payload["attempt"] == change.attempt
            && payload["run_token"] == change.token
    };
    let Some(index) = changes.iter().position(is_it) else { return Ok(NO_CHANGE) };
    Ok(changes.remove(index).map_or(NO_CHANGE, |change| change.pos))
}

/// Returns the effects of the consumer, in their order.
async fn consumed(home: &dyn Home, rows: &[Row]) -> Vec<Effect> {
    let ids: HashMap<(&str, u64), &str> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Event { id, aggregate, sequence, .. } => Some(((&**aggregate, *sequence), &**id)),
            _ => None,
        })
        .collect();
    let effects = home.desk().await.transactions.effects().await;
    let effect = |(consumer, id, sequence): (String, String, i64)| {
        let aggregate = format!("order/{id}");
        let event = ids.get(&(&*aggregate, sequence.unsigned_abs()));
        let event = event.map_or_else(|| format!("{aggregate} {sequence}"), |id| (*id).to_owned());
        Effect::Consumed { consumer, event, in_order: true }
    };
    effects.into_iter().map(effect).collect()
}

/// Returns the effects of the bulk job, which are rows of the store's database.
async fn targets(home: &dyn Home) -> Result<Vec<Effect>> {
    let notes = home.notes().await;
    Ok(notes.into_iter().map(|(run, member)| Effect::Target { run, key: member.to_string() }).collect())
}

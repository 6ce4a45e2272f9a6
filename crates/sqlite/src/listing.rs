//! Queries that list jobs, queues and history for operators.

use std::collections::BTreeMap;

use jiff::Timestamp;
use milepost_core::event::StartedBy;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::{EventId, JobId};
use milepost_core::listing::{JobRow, JobView, KindCount, LastFailure, QueueKinds, QueueView};
use milepost_core::search::JobFilter;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::worker::Progress;
use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::error::Failure;
use crate::row::{self, Id};
use crate::waiting::waiting_for;

/// An id after every possible id.
const NEWEST: JobId = JobId(Uuid::max());

/// Returns a page of jobs, newest first.
pub(crate) fn jobs(conn: &Connection, filter: &JobFilter) -> Result<Vec<JobRow>, Failure> {
    let before = filter.before.unwrap_or(NEWEST);
    let state = filter.state.map(JobState::as_str);
    let page = (Id(&before), state, &filter.kind, &filter.queue, filter.limit);
    let rows = if let Some(key) = &filter.key {
        let mut statement = conn.prepare_cached(sql!("jobs_with_key"))?;
        let found = statement.query_map((page.0, page.1, page.2, page.3, page.4, key), read_row)?;
        row::readable("jobs", found)?
    } else {
        let mut statement = conn.prepare_cached(page_query(filter.state))?;
        let found = statement.query_map(page, read_row)?;
        row::readable("jobs", found)?
    };
    Ok(rows)
}

/// Returns the query whose index contains little else than jobs in the state.
const fn page_query(state: Option<JobState>) -> &'static str {
    use JobState::{Aborted, Blocked, Canceled, Failed, Pending, RetryWait, Running, Skipped, Succeeded};
    match state {
        None | Some(Pending | Succeeded) => sql!("jobs"),
        Some(Running) => sql!("jobs_running"),
        Some(Blocked | RetryWait | Failed | Aborted) => sql!("jobs_aside"),
        Some(Canceled | Skipped) => sql!("jobs_ended_aside"),
    }
}

pub(crate) fn read_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        id: row::job_id(row, 0)?,
        kind: row.get(1)?,
        queue: row.get(2)?,
        state: row::word(row, 3)?,
        priority: row.get(4)?,
        attempt: row.get(5)?,
        max_attempts: row.get(6)?,
        key: row.get(7)?,
        group: row.get(8)?,
        created_at: row::time(row, 9)?,
        ready_at: row::time_opt(row, 10)?,
        started_at: row::time_opt(row, 11)?,
        ended_at: row::time_opt(row, 12)?,
        worker: row::worker_opt(row, 13)?,
        token: row::token(row, 14)?,
        nominal_at: row::time_opt(row, 15)?,
    })
}

/// Returns one job, with the reason why it does not run now.
pub(crate) fn job(conn: &Connection, job: JobId) -> Result<Option<JobView>, Failure> {
    let view = conn.prepare_cached(sql!("job"))?.query_row([Id(&job)], read_view).optional()?;
    let Some(mut view) = view else {
        return Ok(None);
    };
    view.waiting_for = waiting_for(conn, &view.row, now_ms())?;
    view.started_by = started_by(conn, job.0.as_bytes())?;
    view.last_failure = last_failures(conn, &[job], i32::MAX)?.pop();
    Ok(Some(view))
}

fn read_view(row: &Row<'_>) -> rusqlite::Result<JobView> {
    Ok(JobView {
        row: read_row(row)?,
        payload: row::json(row, 16)?,
        result: row::json_opt(row, 17)?,
        progress: read_progress(row)?,
        checkpoint: row::json_opt(row, 21)?,
        stop_requested: row.get::<_, Option<String>>(22)?.is_some(),
        traceparent: row::trace_opt(row, 23)?,
        started_by: None,
        last_failure: None,
        waiting_for: None,
    })
}

/// Returns the event that started a job or a batch.
pub(crate) fn started_by(conn: &Connection, id: &[u8]) -> rusqlite::Result<Option<StartedBy>> {
    conn.prepare_cached(sql!("started_by"))?.query_row([id], read_started_by).optional()
}

fn read_started_by(row: &Row<'_>) -> rusqlite::Result<StartedBy> {
    let JobId(event) = row::job_id(row, 0)?;
    Ok(StartedBy { event: EventId(event), subscription: row.get(1)? })
}

fn read_progress(row: &Row<'_>) -> rusqlite::Result<Option<Progress>> {
    let Some(done) = row.get(18)? else {
        return Ok(None);
    };
    Ok(Some(Progress { done, total: row.get(19)?, message: row.get(20)? }))
}

/// Returns the last failures of jobs, with up to `chars` characters of each message.
pub(crate) fn last_failures(
    conn: &Connection,
    jobs: &[JobId],
    chars: i32,
) -> Result<Vec<LastFailure>, Failure> {
    let mut statement = conn.prepare_cached(sql!("last_failure"))?;
    let mut failures = Vec::new();
    for job in jobs {
        failures.extend(statement.query_row((Id(job), chars), read_failure).optional()?);
    }
    Ok(failures)
}

fn read_failure(row: &Row<'_>) -> rusqlite::Result<LastFailure> {
    Ok(LastFailure {
        job: row::job_id(row, 0)?,
        at: row::time(row, 1)?,
        code: row.get(2)?,
        message: row.get(3)?,
    })
}

/// Returns state changes of a job, oldest first.
pub(crate) fn history(
    conn: &Connection,
    job: JobId,
    part: HistoryPart,
) -> Result<Vec<HistoryEntry>, Failure> {
    let entries = match part {
        HistoryPart::After { pos, limit } => conn
            .prepare_cached(sql!("history"))?
            .query_map((Id(&job), pos, limit), read_entry)?
            .collect::<rusqlite::Result<Vec<_>>>()?,
        HistoryPart::Newest { limit } => {
            let mut newest = conn
                .prepare_cached(sql!("history_newest"))?
                .query_map((Id(&job), limit), read_entry)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            newest.reverse();
            newest
        }
    };
    Ok(entries)
}

pub(crate) fn read_entry(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    Ok(HistoryEntry {
        pos: row.get(0)?,
        job: row::job_id(row, 1)?,
        at: row::time(row, 2)?,
        verb: row::word(row, 3)?,
        from: row::word_opt(row, 4)?,
        to: row::word(row, 5)?,
        attempt: row.get(6)?,
        token: row::token(row, 7)?,
        worker: row::worker_opt(row, 8)?,
        ready_at: row::time_opt(row, 9)?,
        error_code: row.get(10)?,
        error_message: row.get(11)?,
        note: row.get(12)?,
    })
}

/// Returns every queue that has live jobs, is served or is paused.
pub(crate) fn queues(conn: &Connection) -> Result<Vec<QueueView>, Failure> {
    let mut counted = conn.prepare_cached(sql!("count_by_queue"))?;
    let counted = counted.query_map([now_ms()], |row| {
        Ok((row.get(0)?, ((row::word(row, 1)?, row.get(2)?), row::time_opt(row, 3)?)))
    })?;
    let mut counts = by_queue(counted)?;
    let known = service(conn, counts.keys())?;
    let view = |(name, Service { paused_at, workers })| {
        let (counts, due): (Vec<_>, Vec<_>) = counts.remove(&name).unwrap_or_default().into_iter().unzip();
        QueueView { name, paused_at, workers, oldest_due_at: due.into_iter().flatten().min(), counts }
    };
    Ok(known.into_iter().map(view).collect())
}

/// Returns queues with counts by kind: the `kinds_max` largest kinds, and all others added up.
pub(crate) fn queues_by_kind(conn: &Connection, kinds_max: u32) -> Result<Vec<QueueKinds>, Failure> {
    let mut counted = conn.prepare_cached(sql!("count_by_kind"))?;
    let counted = counted.query_map((kinds_max, now_ms()), |row| {
        let (kind, state) = (row.get(1)?, row::word(row, 2)?);
        let (due, oldest_due_at) = (row.get(4)?, row::time_opt(row, 5)?);
        Ok((row.get(0)?, KindCount { kind, state, jobs: row.get(3)?, due, oldest_due_at }))
    })?;
    let mut counts = by_queue(counted)?;
    let known = service(conn, counts.keys())?;
    let view = |(name, Service { paused_at, .. })| {
        let counts = counts.remove(&name).unwrap_or_default();
        QueueKinds { name, paused_at, counts }
    };
    Ok(known.into_iter().map(view).collect())
}

/// Groups counts by queue.
fn by_queue<T>(
    counted: impl Iterator<Item = rusqlite::Result<(String, T)>>,
) -> rusqlite::Result<BTreeMap<String, Vec<T>>> {
    let mut counts = BTreeMap::<String, Vec<T>>::new();
    for count in counted {
        let (queue, count) = count?;
        counts.entry(queue).or_default().push(count);
    }
    Ok(counts)
}

/// Whether a queue is paused, and how many workers serve it.
#[derive(Default)]
struct Service {
    paused_at: Option<Timestamp>,
    workers: i64,
}

/// Returns these queues and those that are served or paused.
fn service<'a>(
    conn: &Connection,
    named: impl Iterator<Item = &'a String>,
) -> Result<BTreeMap<String, Service>, Failure> {
    let mut all: BTreeMap<String, Service> = named.map(|name| (name.clone(), Service::default())).collect();
    let mut known = conn.prepare_cached(sql!("queues"))?;
    let known = known.query_map([now_ms()], |row| Ok((row.get(0)?, row::time_opt(row, 1)?, row.get(2)?)))?;
    for queue in known {
        let (name, paused_at, workers): (_, _, i64) = queue?;
        let service: &mut Service = all.entry(name).or_default();
        service.paused_at = service.paused_at.or(paused_at);
        service.workers += workers;
    }
    Ok(all)
}

/// Pauses or resumes claims from a queue.
pub(crate) fn pause_queue(conn: &Connection, queue: &str, paused: bool) -> Result<bool, Failure> {
    let changed = if paused {
        conn.prepare_cached(sql!("pause_queue"))?.execute((queue, now_ms()))?
    } else {
        conn.prepare_cached(sql!("unpause_queue"))?.execute([queue])?
    };
    Ok(changed == 1)
}

/// Counts the jobs in each state.
pub(crate) fn count_by_state(conn: &Connection) -> Result<Vec<(JobState, i64)>, Failure> {
    let mut statement = conn.prepare_cached(sql!("count_by_state"))?;
    let counts = statement.query_map((), |row| Ok((row::word(row, 0)?, row.get(1)?)))?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

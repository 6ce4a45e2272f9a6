//! Conversion of rows into types of the domain.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::claim::ClaimedJob;
use milepost_core::event::StartedBy;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::{BatchId, EventId, JobId, Run, RunToken, WorkerId};
use milepost_core::job::Priority;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target};
use milepost_core::listing::{JobRow, JobView, WaitFacts, Waiting};
use milepost_core::state::JobState;
use milepost_core::trace::Traceparent;
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, WorkerView};
use serde_json::value::RawValue;
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row, Type, ValueRef};

pub(crate) type Decoded<T> = Result<T, sqlx::Error>;

/// Returns the first column of a row; an error if there is no row.
pub(crate) fn value<T>(row: Option<PgRow>) -> Decoded<T>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    row.ok_or(sqlx::Error::RowNotFound)?.try_get(0)
}

/// Returns the first column of all rows.
pub(crate) fn values<T, C>(rows: Vec<PgRow>) -> Decoded<C>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
    C: FromIterator<T>,
{
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Decodes the rows of a list. A row that cannot be decoded can only come from another program: it is logged and left out, so that it does not
/// hide the others.
pub(crate) fn readable<T>(list: &str, rows: &[PgRow], decode: impl Fn(&PgRow) -> Decoded<T>) -> Vec<T> {
    let log = |error: &sqlx::Error| tracing::error!(list, %error, "a row cannot be read, and is left out");
    rows.iter().filter_map(|row| decode(row).inspect_err(log).ok()).collect()
}

pub(crate) fn claimed_run(row: &PgRow) -> Decoded<Run> {
    Ok(Run { job: JobId(row.try_get(0)?), token: RunToken(row.try_get(1)?) })
}

pub(crate) fn claimed_job(row: &PgRow) -> Decoded<ClaimedJob> {
    Ok(ClaimedJob {
        run: claimed_run(row)?,
        claim_id: row.try_get(2)?,
        attempt: count(row, 3)?,
        max_attempts: count(row, 4)?,
        kind: row.try_get(5)?,
        queue: row.try_get(6)?,
        priority: Priority::try_from(row.try_get::<i16, _>(7)?.unsigned_abs().min(255) as u8)
            .unwrap_or_default(),
        group: row.try_get(8)?,
        timeout: row.try_get::<Option<i64>, _>(9)?.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        created_at: row.try_get::<jiff_sqlx::Timestamp, _>(10)?.to_jiff(),
        payload: row.try_get(11)?,
        nominal_at: row.try_get::<Option<jiff_sqlx::Timestamp>, _>(12)?.map(jiff_sqlx::Timestamp::to_jiff),
        batch: row.try_get::<Option<uuid::Uuid>, _>(13)?.map(BatchId),
        traceparent: traceparent(row, 14)?,
        waited: None,
    })
}

pub(crate) fn job_row(row: &PgRow) -> Decoded<JobRow> {
    Ok(JobRow {
        id: JobId(row.try_get("id")?),
        kind: row.try_get("kind")?,
        queue: row.try_get("queue")?,
        state: named(row, "state")?,
        priority: row.try_get::<i16, _>("priority")?.unsigned_abs().min(255) as u8,
        attempt: count(row, "attempt")?,
        max_attempts: count(row, "max_attempts")?,
        key: row.try_get("key")?,
        group: row.try_get("group_key")?,
        created_at: row.try_get::<jiff_sqlx::Timestamp, _>("created_at")?.to_jiff(),
        nominal_at: time(row, "nominal_at")?,
        ready_at: time(row, "ready_at")?,
        started_at: time(row, "started_at")?,
        ended_at: time(row, "ended_at")?,
        worker: row.try_get::<Option<i32>, _>("worker_id")?.map(WorkerId),
        token: RunToken(row.try_get("token")?),
    })
}

pub(crate) fn job_view(row: &PgRow) -> Decoded<JobView> {
    let progress = match row.try_get::<Option<i64>, _>("done")? {
        Some(done) => Some(Progress { done, total: row.try_get("total")?, message: row.try_get("message")? }),
        None => None,
    };
    let job = job_row(row)?;
    Ok(JobView {
        waiting_for: waiting(row, &job)?,
        row: job,
        payload: json(row, "payload")?.unwrap_or_default(),
        result: json(row, "result")?,
        progress,
        checkpoint: json(row, "checkpoint")?,
        traceparent: traceparent(row, "traceparent")?,
        started_by: started_by(row)?,
        last_failure: None,
        stop_requested: row.try_get("stop_requested")?,
    })
}

pub(crate) fn started_by(row: &PgRow) -> Decoded<Option<StartedBy>> {
    let Some(event) = row.try_get::<Option<uuid::Uuid>, _>("started_by")? else { return Ok(None) };
    Ok(Some(StartedBy { event: EventId(event), subscription: row.try_get("subscription")? }))
}

fn waiting(row: &PgRow, job: &JobRow) -> Decoded<Option<Waiting>> {
    if !matches!(job.state, JobState::Blocked | JobState::Pending | JobState::RetryWait) {
        return Ok(None);
    }
    let is_later = row.try_get::<Option<bool>, _>("in_future")? == Some(true);
    let due_at = job.ready_at.map_or_else(|| time(row, "due_at"), |at| Ok(Some(at)))?;
    let facts = WaitFacts {
        due_at: due_at.filter(|_| is_later),
        group_opens_at: time(row, "group_opens_at")?,
        group_reserved: row
            .try_get::<Option<i32>, _>("group_reserved")?
            .map_or(0, |jobs| u32::try_from(jobs).unwrap_or(0)),
        group_holder: row.try_get::<Option<uuid::Uuid>, _>("group_holder")?.map(JobId),
        group_taken: row
            .try_get::<Option<i64>, _>("group_taken")?
            .map_or(0, |taken| u32::try_from(taken).unwrap_or(u32::MAX)),
        queue_paused: row.try_get::<Option<bool>, _>("paused")?.unwrap_or(false),
        served: row.try_get::<Option<bool>, _>("served")?.unwrap_or(false),
        kind_opens_at: time(row, "kind_opens_at")?,
    };
    Ok(Waiting::of(job, facts))
}

pub(crate) fn history_entry(row: &PgRow) -> Decoded<HistoryEntry> {
    Ok(HistoryEntry {
        pos: row.try_get("pos")?,
        job: JobId(row.try_get("job_id")?),
        at: row.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff(),
        verb: named(row, "verb")?,
        from: if row.try_get_raw("from_state")?.is_null() { None } else { Some(named(row, "from_state")?) },
        to: named(row, "to_state")?,
        attempt: count(row, "attempt")?,
        token: RunToken(row.try_get("token")?),
        worker: row.try_get::<Option<i32>, _>("worker_id")?.map(WorkerId),
        ready_at: time(row, "ready_at")?,
        error_code: row.try_get("error_code")?,
        error_message: row.try_get("error_message")?,
        note: row.try_get("note")?,
    })
}

pub(crate) fn worker_view(row: &PgRow) -> Decoded<WorkerView> {
    Ok(WorkerView {
        id: WorkerId(row.try_get("id")?),
        name: row.try_get("name")?,
        queues: row.try_get("queues")?,
        kinds: row.try_get("kinds")?,
        started_at: row.try_get::<jiff_sqlx::Timestamp, _>("started_at")?.to_jiff(),
        heartbeat_at: row.try_get::<jiff_sqlx::Timestamp, _>("heartbeat_at")?.to_jiff(),
        lease_expired: row.try_get("lease_expired")?,
        ended_at: time(row, "ended_at")?,
        died: row.try_get("died")?,
        running: row.try_get("running")?,
        slots: row.try_get::<Option<i32>, _>("slots")?.map(i32::cast_unsigned),
    })
}

pub(crate) fn limit_view(row: &PgRow) -> Decoded<LimitView> {
    let name: String = row.try_get("name")?;
    let target =
        if row.try_get::<&str, _>("target")? == "kind" { Target::Kind(name) } else { Target::Group(name) };
    let rate = match row.try_get::<Option<f64>, _>("per_second")? {
        Some(per_second) => Some(Rate::new(per_second, count(row, "burst")?)),
        None => None,
    };
    let slots = row.try_get::<Option<i32>, _>("slots")?.map(i32::unsigned_abs);
    Ok(LimitView {
        limit: Limit { target, slots, rate },
        source: named::<Source>(row, "source")?,
        tokens: row.try_get("tokens")?,
        holders: row.try_get("holders")?,
        waiting: row.try_get("waiting")?,
    })
}

/// Parses a name that the database stores as text.
pub(crate) fn named<T>(row: &PgRow, column: &str) -> Decoded<T>
where
    T: std::str::FromStr<Err = milepost_core::named::UnknownName>,
{
    let name: &str = row.try_get(column)?;
    name.parse().map_err(|e| sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(e) })
}

/// Parses the verb that a running job was asked to stop with.
pub(crate) fn stop_verb(row: &PgRow, column: &str) -> Decoded<Option<Verb>> {
    if row.try_get_raw(column)?.is_null() { Ok(None) } else { named(row, column).map(Some) }
}

/// Parses a trace context; an invalid one, written by hand, counts as none.
fn traceparent<I: sqlx::ColumnIndex<PgRow>>(row: &PgRow, column: I) -> Decoded<Option<Traceparent>> {
    Ok(row.try_get::<Option<&str>, _>(column)?.and_then(|text| text.parse().ok()))
}

pub(crate) fn time(row: &PgRow, column: &str) -> Decoded<Option<Timestamp>> {
    Ok(row.try_get::<Option<jiff_sqlx::Timestamp>, _>(column)?.map(jiff_sqlx::Timestamp::to_jiff))
}

pub(crate) fn json(row: &PgRow, column: &str) -> Decoded<Option<Box<RawValue>>> {
    let Some(text) = row.try_get::<Option<String>, _>(column)? else {
        return Ok(None);
    };
    RawValue::from_string(text)
        .map(Some)
        .map_err(|e| sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(e) })
}

pub(crate) fn count<I: sqlx::ColumnIndex<PgRow>>(row: &PgRow, column: I) -> Decoded<u32> {
    Ok(row.try_get::<i32, _>(column)?.unsigned_abs())
}

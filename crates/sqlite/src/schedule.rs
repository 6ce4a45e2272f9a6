//! Schedules and their ticks.

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::audit::{AuditedAction, made_batch, made_jobs};
use milepost_core::batch::start::Started;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::job::{Enqueued, Priority};
use milepost_core::port::{ScheduleStore, StoreResult, check_kind_of_ticks};
use milepost_core::precedence::{Over, Put};
use milepost_core::schedule::{
    Clock, JobTemplate, Made, Makes, Misfire, Order, Refusal, Schedule, ScheduleView, Source, Spec, Tick,
    Ticked,
};
use milepost_core::sql;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction};

use crate::batch;
use crate::bulk::definition_of;
use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::{Failure, defect};
use crate::store::SqliteStore;
use crate::{enqueue, row};

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn clock(&self) -> StoreResult<Clock> {
        self.read("clock", clock).await
    }

    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let name = name.map(str::to_owned);
        let page = move |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("schedules"))?;
            let found = statement.query_map((None::<&str>, None::<i64>, limit, name, true), view)?;
            Ok(row::readable("schedules", found)?)
        };
        self.read("schedules", page).await
    }

    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>> {
        let all = |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("schedules"))?;
            let found =
                statement.query_map((None::<&str>, None::<i64>, u32::MAX, None::<&str>, false), view)?;
            Ok(row::readable("schedules", found)?)
        };
        self.read("schedules", all).await
    }

    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>> {
        let name = name.to_owned();
        let found = self.read("schedule", move |conn| select(conn, Some(&name), None, 1, view)).await?;
        Ok(found.into_iter().next())
    }

    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let due = move |conn: &Connection| select(conn, None, Some(now_ms()), limit, readable);
        Ok(self.read("due_schedules", due).await?.into_iter().flatten().collect())
    }

    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
        over: Over,
    ) -> StoreResult<Put> {
        let (action, schedule) = (AuditedAction::put_schedule(&schedule.name), schedule.clone());
        self.act("write_schedule", Hint::NONE, action, move |tx| write(tx, &schedule, source, next_at, over))
            .await
    }

    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool> {
        let (action, name) = (AuditedAction::remove_schedule(name), name.to_owned());
        self.act("remove_schedule", Hint::NONE, action, move |tx| {
            Ok(tx.prepare_cached(sql!("remove_schedule"))?.execute((&name, source.as_str()))? == 1)
        })
        .await
    }

    async fn pause_schedule(&self, name: &str) -> StoreResult<bool> {
        let (action, name) = (AuditedAction::pause_schedule(name), name.to_owned());
        self.act("pause_schedule", Hint::NONE, action, move |tx| {
            Ok(tx.prepare_cached(sql!("pause_schedule"))?.execute((&name, now_ms()))? == 1)
        })
        .await
    }

    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool> {
        let (action, name) = (AuditedAction::resume_schedule(name), name.to_owned());
        let next_at_ms = next_at.map(Timestamp::as_millisecond);
        self.act("unpause_schedule", Hint::NONE, action, move |tx| {
            Ok(tx.prepare_cached(sql!("unpause_schedule"))?.execute((&name, version, next_at_ms))? == 1)
        })
        .await
    }

    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made> {
        let action = AuditedAction::run_schedule(schedule);
        match order.clone() {
            Order::Job(job) => {
                enqueue::check(std::slice::from_ref(&job), self.options().payload_bytes_max)?;
                let asked = job.clone();
                let make = move |tx: &Transaction<'_>| {
                    let made = enqueue::insert_of_schedule(tx, std::slice::from_ref(&job))?;
                    Ok(*made.first().ok_or(StoreError::NoSuchJob(job.id))?)
                };
                let tell = move |made: &Enqueued| made_jobs(&[asked], &[*made]);
                self.act_telling("enqueue", Hint::READY, action, make, tell).await.map(Made::Job)
            }
            Order::Batch(batch) => {
                batch.check(self.options().payload_bytes_max)?;
                let dag = batch.dag.clone();
                let make = move |tx: &Transaction<'_>| batch::start(tx, &batch);
                let tell = move |made: &Started| made_batch(&dag, *made);
                self.act_telling("start_batch", Hint::READY, action, make, tell).await.map(Made::Batch)
            }
        }
    }

    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>> {
        let bytes_max = self.options().payload_bytes_max;
        enqueue::check(&tick.jobs, bytes_max)?;
        tick.batch.iter().try_for_each(|batch| batch.check(bytes_max))?;
        let tick = tick.clone();
        self.write("tick_schedule", Hint::READY, move |tx| move_on(tx, &tick)).await
    }
}

fn clock(conn: &Connection) -> Result<Clock, Failure> {
    let next_at = conn.prepare_cached(sql!("next_tick"))?.query_row((), |row| row::time_opt(row, 0))?;
    let now = Timestamp::from_millisecond(now_ms()).map_err(|e| defect("clock", e.to_string()))?;
    Ok(Clock { now, next_at })
}

fn select<T>(
    conn: &Connection,
    name: Option<&str>,
    due_ms: Option<i64>,
    limit: u32,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Failure> {
    let mut statement = conn.prepare_cached(sql!("schedules"))?;
    let found = statement.query_map((name, due_ms, limit, None::<&str>, true), read)?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

fn write(
    conn: &Connection,
    schedule: &Schedule,
    source: Source,
    next_at: Option<Timestamp>,
    over: Over,
) -> Result<Put, Failure> {
    let Schedule { name, spec, makes, misfire, misfire_grace } = schedule;
    let (dag, job) = makes.columns();
    check_kind_of_ticks(schedule, definition_of(conn, &job.kind)?.as_ref())?;
    let written = conn.prepare_cached(sql!("write_schedule"))?.execute(rusqlite::params![
        name,
        spec.to_string(),
        spec.zone_name(),
        job.kind,
        job.queue,
        job.payload.get(),
        job.priority.get(),
        job.max_attempts,
        job.group,
        job.timeout.map(whole_ms),
        misfire.as_str(),
        misfire.max(),
        whole_ms(*misfire_grace),
        source.as_str(),
        next_at.map(Timestamp::as_millisecond),
        now_ms() * 1000,
        dag,
        over.version(),
    ])?;
    Ok(over.put(written == 1))
}

fn move_on(conn: &Connection, tick: &Tick) -> Result<Option<Ticked>, Failure> {
    // Checks whether the batch can start before moving the schedule, in the same transaction.
    let fit = tick.batch.as_ref().map(|batch| batch::fit(conn, batch)).transpose();
    let (version, refused) = match fit {
        Ok(version) => (version, tick.refused.clone()),
        Err(Failure::Told(StoreError::Batch(invalid))) => (None, Some(invalid)),
        Err(failure) => return Err(failure),
    };
    let made = tick.jobs.len() + usize::from(version.is_some());
    let moved = conn.prepare_cached(sql!("tick_schedule"))?.execute((
        &tick.schedule,
        tick.version,
        tick.next_at.map(Timestamp::as_millisecond),
        tick.last_at.filter(|_| made > 0).map(Timestamp::as_millisecond),
        i64::try_from(made).unwrap_or(i64::MAX),
        tick.dropped + u32::from(refused.is_some()),
        tick.last_at.filter(|_| refused.is_some()).map(Timestamp::as_millisecond),
        refused.as_ref().map(ToString::to_string),
    ))?;
    if moved == 0 {
        return Ok(None);
    }
    let mut made: Vec<Made> =
        enqueue::insert_of_schedule(conn, &tick.jobs)?.into_iter().map(Made::Job).collect();
    if let Some((batch, version)) = tick.batch.as_ref().zip(version) {
        made.push(Made::Batch(batch::put(conn, batch, version)?));
    }
    Ok(Some(Ticked { made, refused }))
}

/// Reads a schedule; `None` if its row contains values that this binary does not know.
fn readable(row: &Row<'_>) -> rusqlite::Result<Option<ScheduleView>> {
    let name: String = row.get(0)?;
    Ok(view(row)
        .inspect_err(|error| {
            tracing::error!(schedule = name, %error, "the schedule cannot be read and does not tick");
        })
        .ok())
}

fn view(row: &Row<'_>) -> rusqlite::Result<ScheduleView> {
    Ok(ScheduleView {
        schedule: schedule(row)?,
        source: row::word(row, 13)?,
        version: row.get(14)?,
        paused_at: row::time_opt(row, 15)?,
        next_at: row::time_opt(row, 16)?,
        last_at: row::time_opt(row, 17)?,
        fired: row.get(18)?,
        dropped: row.get(19)?,
        refused: refusal(row)?,
    })
}

fn refusal(row: &Row<'_>) -> rusqlite::Result<Option<Refusal>> {
    let at = row::time_opt(row, 21)?;
    Ok(at.zip(row.get(22)?).map(|(at, why)| Refusal { at, why }))
}

fn schedule(row: &Row<'_>) -> rusqlite::Result<Schedule> {
    let (spec, zone): (String, String) = (row.get(1)?, row.get(2)?);
    let misfire: String = row.get(10)?;
    let job = JobTemplate {
        kind: row.get(3)?,
        queue: row.get(4)?,
        payload: row::json(row, 5)?,
        priority: Priority::try_from(row.get::<_, u8>(6)?).map_err(|e| row::odd(6, Type::Integer, e))?,
        max_attempts: row.get(7)?,
        group: row.get(8)?,
        timeout: row::duration_opt(row, 9)?,
    };
    Ok(Schedule {
        name: row.get(0)?,
        spec: Spec::parse(&spec, &zone).map_err(|e| row::odd(1, Type::Text, e))?,
        makes: Makes::of_columns(row.get(20)?, job),
        misfire: Misfire::named(&misfire, row.get(11)?).map_err(|e| row::odd(10, Type::Text, e))?,
        misfire_grace: row::duration_opt(row, 12)?.unwrap_or_default(),
    })
}

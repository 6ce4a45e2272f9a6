//! Schedules and their ticks.

use std::slice;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::dag::version::Version;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::job::Priority;
use milepost_core::port::{BulkStore, ScheduleStore, StoreResult, check_kind_of_ticks};
use milepost_core::precedence::{Over, Put};
use milepost_core::schedule::{
    Clock, JobTemplate, Made, Makes, Misfire, Order, Refusal, Schedule, ScheduleView, Source, Spec, Tick,
    Ticked,
};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::batch::fit;
use crate::enqueue;
use crate::error::enqueue_error;
use crate::row::{self, Decoded, count, named};
use crate::session::{Query, Repeatable, Sessions};
use crate::store::PostgresStore;

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn clock(&self) -> StoreResult<Clock> {
        let row = self.inner.hot.row(sqlx::query(sql!("clock"))).await;
        let clock = row.and_then(|row| clock(&row.ok_or(sqlx::Error::RowNotFound)?));
        clock.map_err(|e| self.fail("clock", e))
    }

    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let query = sqlx::query(sql!("schedules")).bind(None::<&str>).bind(false).bind(i64::from(limit));
        let rows = self.inner.calm.rows(query.bind(name.map(str::to_owned)).bind(true)).await;
        self.listed("schedules", rows, view)
    }

    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>> {
        let query = sqlx::query(sql!("schedules")).bind(None::<&str>).bind(false).bind(i64::from(u32::MAX));
        let rows = self.inner.calm.rows(query.bind(None::<&str>).bind(false)).await;
        self.listed("schedules", rows, view)
    }

    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>> {
        let rows = rows(&self.inner.calm, Some(name), false, 1).await;
        rows.and_then(|rows| rows.first().map(view).transpose()).map_err(|e| self.fail("schedule", e))
    }

    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let rows = rows(&self.inner.hot, None, true, i64::from(limit)).await;
        let rows = rows.map_err(|e| self.fail("due_schedules", e))?;
        Ok(rows.iter().filter_map(readable).collect())
    }

    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<jiff::Timestamp>,
        over: Over,
    ) -> StoreResult<Put> {
        let Schedule { name, spec, makes, misfire, misfire_grace } = schedule;
        let (dag, job) = makes.columns();
        check_kind_of_ticks(schedule, self.bulk_definition(&job.kind).await?.as_ref())?;
        let query = sqlx::query(sql!("write_schedule"))
            .bind(name.clone())
            .bind(spec.to_string())
            .bind(spec.zone_name().to_owned())
            .bind(job.kind)
            .bind(job.queue)
            .bind(job.payload.get().to_owned())
            .bind(i16::from(job.priority.get()))
            .bind(job.max_attempts.cast_signed())
            .bind(job.group)
            .bind(job.timeout.map(whole_ms))
            .bind(misfire.as_str())
            .bind(misfire.max().map(u32::cast_signed))
            .bind(whole_ms(*misfire_grace))
            .bind(source.as_str())
            .bind(next_at.map(jiff_sqlx::Timestamp::from))
            .bind(dag.map(str::to_owned))
            .bind(over.version());
        let written =
            self.change_schedule("write_schedule", &AuditedAction::put_schedule(name), query).await?;
        Ok(over.put(written))
    }

    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool> {
        let query = sqlx::query(sql!("remove_schedule")).bind(name.to_owned()).bind(source.as_str());
        self.change_schedule("remove_schedule", &AuditedAction::remove_schedule(name), query).await
    }

    async fn pause_schedule(&self, name: &str) -> StoreResult<bool> {
        let query = sqlx::query(sql!("pause_schedule")).bind(name.to_owned());
        self.change_schedule("pause_schedule", &AuditedAction::pause_schedule(name), query).await
    }

    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<jiff::Timestamp>,
    ) -> StoreResult<bool> {
        let query = sqlx::query(sql!("unpause_schedule"))
            .bind(name.to_owned())
            .bind(version)
            .bind(next_at.map(jiff_sqlx::Timestamp::from));
        self.change_schedule("unpause_schedule", &AuditedAction::resume_schedule(name), query).await
    }

    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made> {
        let action = AuditedAction::run_schedule(schedule);
        match order {
            Order::Job(job) => {
                let made = self.store_jobs(&action, slice::from_ref(job)).await?;
                made.first().copied().map(Made::Job).ok_or(StoreError::NoSuchJob(job.id))
            }
            Order::Batch(batch) => self.start(&action, batch).await.map(Made::Batch),
        }
    }

    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>> {
        let Some(batch) = &tick.batch else { return self.tick_jobs(tick, tick.refused.clone()).await };
        match self.fitting(batch).await? {
            Ok(version) => self.tick_batch(tick, batch, version).await,
            Err(refused) => self.tick_jobs(tick, Some(refused)).await,
        }
    }
}

impl PostgresStore {
    /// Changes one schedule; returns whether it did.
    async fn change_schedule(
        &self,
        verb: &'static str,
        action: &AuditedAction,
        query: Query,
    ) -> StoreResult<bool> {
        let query = Repeatable::of(query);
        let changed =
            self.act(&self.inner.intake, action, async |session| session.execute(query).await).await;
        changed.map(|rows| rows == 1).map_err(|e| self.fail(verb, e))
    }

    /// Stores a tick that enqueues jobs, or nothing if its batch was refused.
    async fn tick_jobs(&self, tick: &Tick, refused: Option<InvalidBatch>) -> StoreResult<Option<Ticked>> {
        enqueue::check(&tick.jobs, self.inner.options.payload_bytes_max)?;
        let last_at = tick.last_at.map(jiff_sqlx::Timestamp::from);
        let query = enqueue::bind(sqlx::query(sql!("tick_schedule")), &tick.jobs)
            .bind(&tick.schedule)
            .bind(tick.version)
            .bind(tick.next_at.map(jiff_sqlx::Timestamp::from))
            .bind(last_at.filter(|_| refused.is_none()))
            .bind(i64::from(tick.dropped) + i64::from(refused.is_some()))
            .bind(last_at.filter(|_| refused.is_some()))
            .bind(refused.as_ref().map(ToString::to_string));
        // Once: an open transaction that holds a key delays this schedule only, and no other one.
        let rows =
            self.inner.hot.once().rows(query).await.map_err(|e| enqueue_error(&self.inner.place, e))?;
        let made = if tick.jobs.is_empty() { &rows[..0] } else { &rows[..] };
        let made: Decoded<Vec<Made>> = made.iter().map(|row| enqueue::enqueued(row).map(Made::Job)).collect();
        let made = made.map_err(|e| self.fail("tick_schedule", e))?;
        Ok((!rows.is_empty()).then_some(Ticked { made, refused }))
    }

    /// Returns the version that the batch of a tick will have, or the reason why it cannot start.
    async fn fitting(&self, batch: &NewBatch) -> StoreResult<Result<Version, InvalidBatch>> {
        batch.check(self.inner.options.payload_bytes_max)?;
        let fit = self.inner.hot.run(async |session| fit(session, batch).await).await;
        match fit.map_err(|e| self.fail("tick_schedule", e))? {
            Ok(version) => Ok(Ok(version)),
            Err(StoreError::Batch(refused)) => Ok(Err(refused)),
            Err(error) => Err(error),
        }
    }

    /// Stores a tick that starts a batch. Maintenance evaluates its first due tasks, and is woken for that.
    async fn tick_batch(
        &self,
        tick: &Tick,
        batch: &NewBatch,
        version: Version,
    ) -> StoreResult<Option<Ticked>> {
        let query = sqlx::query(sql!("tick_batch"))
            .bind(&tick.schedule)
            .bind(tick.version)
            .bind(tick.next_at.map(jiff_sqlx::Timestamp::from))
            .bind(batch.dag.clone())
            .bind(version.to_string())
            .bind(batch.key.clone())
            .bind(batch.input.get().to_owned())
            .bind(batch.id.0)
            .bind(batch.nominal.as_ref().map(|nominal| jiff_sqlx::Timestamp::from(nominal.at)))
            .bind(i64::from(tick.dropped))
            .bind(batch.traceparent.map(|it| it.to_string()))
            .bind(batch.nominal.as_ref().map(|nominal| nominal.zone.clone()));
        let row = self.inner.hot.once().row(query).await;
        let started = row.and_then(|row| row.as_ref().map(started).transpose());
        let started = started.map_err(|e| self.fail("tick_schedule", e))?;
        Ok(started.map(|started| Ticked { made: vec![Made::Batch(started)], refused: None }))
    }
}

fn started(row: &PgRow) -> Decoded<Started> {
    Ok(Started { batch: BatchId(row.try_get(0)?), duplicate: row.try_get(1)? })
}

fn refusal(row: &PgRow) -> Decoded<Option<Refusal>> {
    let at = row::time(row, "refused_at")?;
    let why: Option<String> = row.try_get("refusal")?;
    Ok(at.zip(why).map(|(at, why)| Refusal { at, why }))
}

async fn rows(sessions: &Sessions, name: Option<&str>, due: bool, limit: i64) -> Decoded<Vec<PgRow>> {
    sessions
        .rows(sqlx::query(sql!("schedules")).bind(name).bind(due).bind(limit).bind(None::<&str>).bind(true))
        .await
}

fn clock(row: &PgRow) -> Decoded<Clock> {
    let now: jiff_sqlx::Timestamp = row.try_get(0)?;
    let next_at: Option<jiff_sqlx::Timestamp> = row.try_get(1)?;
    Ok(Clock { now: now.to_jiff(), next_at: next_at.map(jiff_sqlx::Timestamp::to_jiff) })
}

/// Decodes a schedule; `None` if its row contains something that this binary does not know.
fn readable(row: &PgRow) -> Option<ScheduleView> {
    view(row)
        .inspect_err(|error| {
            let name: String = row.try_get("name").unwrap_or_default();
            tracing::error!(schedule = name, %error, "the schedule cannot be read and does not tick");
        })
        .ok()
}

fn view(row: &PgRow) -> Decoded<ScheduleView> {
    Ok(ScheduleView {
        schedule: schedule(row)?,
        source: named(row, "source")?,
        paused_at: row::time(row, "paused_at")?,
        next_at: row::time(row, "next_at")?,
        last_at: row::time(row, "last_at")?,
        fired: row.try_get("fired")?,
        dropped: row.try_get("dropped")?,
        refused: refusal(row)?,
        version: row.try_get("version")?,
    })
}

fn schedule(row: &PgRow) -> Decoded<Schedule> {
    let ms = |ms: i64| Duration::from_millis(ms.unsigned_abs());
    let max = row.try_get::<Option<i32>, _>("misfire_max")?.map(i32::unsigned_abs);
    Ok(Schedule {
        name: row.try_get("name")?,
        spec: Spec::parse(row.try_get("spec")?, row.try_get("time_zone")?).map_err(|e| odd("spec", e))?,
        makes: Makes::of_columns(row.try_get("dag")?, template(row)?),
        misfire: Misfire::named(row.try_get("misfire")?, max).map_err(|e| odd("misfire", e))?,
        misfire_grace: ms(row.try_get("misfire_grace_ms")?),
    })
}

fn template(row: &PgRow) -> Decoded<JobTemplate> {
    let priority = row.try_get::<i16, _>("priority")?;
    Ok(JobTemplate {
        kind: row.try_get("kind")?,
        queue: row.try_get("queue")?,
        payload: row::json(row, "payload")?.unwrap_or_default(),
        priority: Priority::try_from(u8::try_from(priority).unwrap_or(0)).map_err(|e| odd("priority", e))?,
        max_attempts: count(row, "max_attempts")?,
        group: row.try_get("group_key")?,
        timeout: row
            .try_get::<Option<i64>, _>("timeout_ms")?
            .map(|ms| Duration::from_millis(ms.unsigned_abs())),
    })
}

fn odd(column: &str, cause: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(cause) }
}

//! Enqueueing of jobs, through the SQL functions that clients in all languages use.

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditedAction};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::duplicate::EnqueueOutcome;
use milepost_core::job::{Enqueued, KeyHolder, NewJob, PAYLOAD_BYTES_MAX, StartAt};
use milepost_core::port::{IntakeStore, StoreResult, check_together};
use milepost_core::sql;
use sqlx::postgres::PgRow;
use sqlx::{Column, PgConnection, Row};
use uuid::Uuid;

use crate::error::{enqueue_error, is_lock_timeout, is_repeated_id};
use crate::row::{self, Decoded};
use crate::session::{Query, Repeatable, Session};
use crate::store::PostgresStore;

/// Enqueues one job in the caller's transaction: the job exists exactly when that transaction commits. Behind a transaction
/// pooler use [`pooled::enqueue`](crate::pooled::enqueue).
///
/// # Errors
/// [`Invalid`](StoreError::Invalid) describes the problem with the job. The caller's transaction is aborted only if the
/// error came from the database, not if it came from the check before.
pub async fn enqueue(connection: &mut PgConnection, job: &NewJob) -> StoreResult<Enqueued> {
    enqueue_in(Session::lasting(connection), job).await
}

/// Enqueues jobs in the caller's transaction, all or none, and returns the results in the same order. Behind a transaction
/// pooler use [`pooled::enqueue_many`](crate::pooled::enqueue_many).
///
/// # Errors
/// [`Invalid`](StoreError::Invalid) names the first job that cannot be accepted.
pub async fn enqueue_many(connection: &mut PgConnection, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
    enqueue_many_in(Session::lasting(connection), jobs).await
}

pub(crate) async fn enqueue_in(session: Session<'_>, job: &NewJob) -> StoreResult<Enqueued> {
    let enqueued = enqueue_many_in(session, std::slice::from_ref(job)).await?;
    enqueued.into_iter().next().ok_or(StoreError::NoSuchJob(job.id))
}

/// Enqueues the checked job of a bulk job's run in the transaction of a verb.
pub(crate) async fn insert_run(session: &mut Session<'_>, job: &NewJob) -> Decoded<Enqueued> {
    session.execute(sqlx::query(sql!("bulk/starts")).bind("on")).await?;
    let row = session.row(insert(std::slice::from_ref(job))).await?;
    session.execute(sqlx::query(sql!("bulk/starts")).bind("off")).await?;
    enqueued(&row.ok_or(sqlx::Error::RowNotFound)?)
}

pub(crate) async fn enqueue_many_in(mut session: Session<'_>, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
    check(jobs, PAYLOAD_BYTES_MAX)?;
    let rows = session.rows(insert(jobs)).await;
    rows.and_then(all_enqueued).map_err(|e| enqueue_error("the caller's connection", e))
}

#[async_trait]
impl IntakeStore for PostgresStore {
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        self.store_jobs(&AuditedAction::create_jobs(jobs), jobs).await
    }

    async fn enqueue_unless_held(&self, jobs: &[NewJob]) -> StoreResult<Option<Vec<Enqueued>>> {
        check(jobs, self.inner.options.payload_bytes_max)?;
        let query = self.insert_as_actor(&AuditedAction::create_jobs(jobs), jobs);
        match self.inner.intake.once().rows(query).await {
            Err(error) if is_lock_timeout(&error) => Ok(None),
            rows => self.stored(jobs, rows).await.map(Some),
        }
    }

    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>> {
        if together.is_empty() {
            return self.enqueue_many(jobs).await;
        }
        check(jobs, self.inner.options.payload_bytes_max)?;
        let fail = |e| enqueue_error(&self.inner.place, e);
        let query = self.insert_as_actor(&AuditedAction::create_jobs(jobs), jobs);
        let query = Repeatable::of(query);
        let stored = self.inner.intake.atomically(async |session| {
            let made = session.rows(query).await.and_then(all_enqueued)?;
            let checked = check_together(&made, together);
            if checked.is_err() {
                // The transaction that is committed then is empty.
                session.script("rollback; begin").await?;
            }
            Ok(checked.map(|()| made))
        });
        let stored = stored.await.map_err(fail)?;
        if stored.is_err() {
            // The refusal is because of jobs of earlier commits, and nothing was committed here that has waited for them.
            self.confirm_replication().await?;
        }
        stored
    }

    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>> {
        let query = sqlx::query(sql!("key_holders"))
            .bind(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(|job| job.key.as_deref()).collect::<Vec<_>>());
        let holders = self.inner.intake.rows(query).await;
        let holder = |(row, asked): (PgRow, &&NewJob)| key_holder(&row, asked);
        let holders = holders.and_then(|rows| rows.into_iter().zip(jobs).map(holder).collect());
        holders.map_err(|e| enqueue_error(&self.inner.place, e))
    }
}

impl PostgresStore {
    /// Stores jobs, with an audit entry if there is an actor.
    pub(crate) async fn store_jobs(
        &self,
        action: &AuditedAction,
        jobs: &[NewJob],
    ) -> StoreResult<Vec<Enqueued>> {
        check(jobs, self.inner.options.payload_bytes_max)?;
        let rows = self.inner.intake.rows(self.insert_as_actor(action, jobs)).await;
        self.stored(jobs, rows).await
    }

    /// Returns the results of a statement that stores these jobs.
    async fn stored(
        &self,
        jobs: &[NewJob],
        rows: Result<Vec<PgRow>, sqlx::Error>,
    ) -> StoreResult<Vec<Enqueued>> {
        match rows.and_then(all_enqueued) {
            // The response to an earlier call with the same jobs was lost after it had committed.
            Err(error) if is_repeated_id(&error) => self.enqueued_before(jobs, error).await,
            outcome => outcome.map_err(|e| enqueue_error(&self.inner.place, e)),
        }
    }

    fn insert_as_actor(&self, action: &AuditedAction, jobs: &[NewJob]) -> Query {
        match &self.actor {
            None => insert(jobs),
            Some(actor) => insert_noted(jobs, action, actor),
        }
    }

    /// Returns the result of an earlier call that committed; an error if only some of its jobs exist.
    async fn enqueued_before(&self, jobs: &[NewJob], error: sqlx::Error) -> StoreResult<Vec<Enqueued>> {
        let ids: Vec<Uuid> = jobs.iter().map(|job| job.id.0).collect();
        let query = sqlx::query(sql!("jobs_of_call"))
            .bind(&ids)
            .bind(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(|job| job.key.as_deref()).collect::<Vec<_>>());
        let known = self.inner.intake.rows(query).await.and_then(row::values);
        let known: Vec<Option<Uuid>> = known.map_err(|e| self.fail("enqueue_many", e))?;
        let all: Option<Vec<Enqueued>> =
            known.into_iter().map(|job| job.map(|job| Enqueued::kept(JobId(job)))).collect();
        all.ok_or_else(|| self.fail("enqueue_many", error))
    }
}

pub(crate) fn check(jobs: &[NewJob], bytes_max: usize) -> StoreResult<()> {
    for (index, job) in jobs.iter().enumerate() {
        job.check(bytes_max).map_err(|invalid| StoreError::Invalid { index, invalid })?;
    }
    Ok(())
}

fn has_rules(jobs: &[NewJob]) -> bool {
    jobs.iter().any(|job| job.on_duplicate.is_some())
}

pub(crate) fn insert(jobs: &[NewJob]) -> Query {
    if has_rules(jobs) {
        return bind_rules(bind(sqlx::query(sql!("enqueue_many_by_key")), jobs), jobs);
    }
    bind(sqlx::query(sql!("enqueue_many")), jobs)
}

/// Enqueues jobs and writes an audit row in the same round trip.
fn insert_noted(jobs: &[NewJob], action: &AuditedAction, actor: &Actor) -> Query {
    let query = if has_rules(jobs) {
        bind_rules(bind(sqlx::query(sql!("enqueue_many_by_key_noted")), jobs), jobs)
    } else {
        bind(sqlx::query(sql!("enqueue_many_noted")), jobs)
    };
    query
        .bind(actor.who().to_owned())
        .bind(action.what)
        .bind(action.subject.name())
        .bind(actor.why().map(str::to_owned))
}

/// Binds what happens to the jobs that hold the keys, as documents.
fn bind_rules(query: Query, jobs: &[NewJob]) -> Query {
    let rule = |job: &NewJob| job.on_duplicate.map(|rule| serde_json::json!(rule).to_string());
    query.bind(jobs.iter().map(rule).collect::<Vec<_>>())
}

/// Binds the first 13 parameters of a statement that enqueues jobs.
pub(crate) fn bind(query: Query, jobs: &[NewJob]) -> Query {
    let each = |value: fn(&NewJob) -> &str| jobs.iter().map(value).collect::<Vec<_>>();
    query
        .bind(each(|job| &job.kind))
        .bind(each(|job| job.payload.get()))
        .bind(some_of(jobs, |job| job.key.as_deref()))
        .bind(each(|job| &job.queue))
        .bind(jobs.iter().map(|job| i32::from(job.priority.get())).collect::<Vec<_>>())
        .bind(some_of(jobs, |job| job.group.as_deref()))
        .bind(some_of(jobs, |job| match job.start {
            StartAt::At(at) => Some(jiff_sqlx::Timestamp::from(at)),
            _ => None,
        }))
        .bind(some_of(jobs, |job| match job.start {
            StartAt::After(delay) => Some(whole_ms(delay)),
            _ => None,
        }))
        .bind(jobs.iter().map(|job| job.max_attempts.cast_signed()).collect::<Vec<_>>())
        .bind(some_of(jobs, |job| job.timeout.map(whole_ms)))
        .bind(jobs.iter().map(|job| job.id.0).collect::<Vec<_>>())
        .bind(some_of(jobs, |job| job.nominal_at.map(jiff_sqlx::Timestamp::from)))
        .bind(some_of(jobs, |job| job.traceparent.map(|it| it.to_string())))
}

/// Collects an option of every job; `None` if no job has it, which is common.
fn some_of<'a, T>(jobs: &'a [NewJob], option: impl Fn(&'a NewJob) -> Option<T>) -> Option<Vec<Option<T>>> {
    let values: Vec<Option<T>> = jobs.iter().map(option).collect();
    values.iter().any(Option::is_some).then_some(values)
}

pub(crate) fn all_enqueued(rows: Vec<PgRow>) -> Decoded<Vec<Enqueued>> {
    rows.iter().map(enqueued).collect()
}

fn key_holder(row: &PgRow, asked: &NewJob) -> Decoded<Option<KeyHolder>> {
    let Some(job) = row.try_get("job_id")? else { return Ok(None) };
    let queue: Option<&str> = row.try_get("queue")?;
    let is_same = match queue {
        None => None,
        Some(queue) => Some(asked.is_same(queue, row.try_get("group_key")?, row.try_get("payload")?)),
    };
    Ok(Some(KeyHolder { job: JobId(job), is_same }))
}

/// Reads the result of one job: its id, and whether it is a duplicate or, if jobs of the call have rules, the outcome.
pub(crate) fn enqueued(row: &PgRow) -> Decoded<Enqueued> {
    let job = JobId(row.try_get(0)?);
    if row.column(1).name() == "outcome" {
        return Ok(Enqueued::of(job, row::named::<EnqueueOutcome>(row, "outcome")?));
    }
    let is_duplicate: bool = row.try_get(1)?;
    Ok(if is_duplicate { Enqueued::kept(job) } else { Enqueued::created(job) })
}

//! Implementation of the operators' port for bulk jobs.

use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_jobs, made_run};
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::operation::COUNTED_MAX;
use milepost_core::bulk::run::TargetFailure;
use milepost_core::bulk::settings::SettingsChange;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkStaging, BulkStore, StoreResult};
use milepost_core::precedence::{Put, Scope, Synced};
use milepost_core::schedule::Source;
use milepost_core::sql;
use milepost_core::state::JobState;
use serde_json::json;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::staging::Staging;
use super::{progress, row};
use crate::row::named;
use crate::session::{Query, Repeatable, Session};
use crate::store::PostgresStore;
use crate::{enqueue, row::Decoded};

/// How often a run can end or be resumed while its row is looked for.
const MOVES_MAX: usize = 3;

#[async_trait]
impl BulkStore for PostgresStore {
    async fn put_bulk(&self, definition: &Definition, source: Source) -> StoreResult<Put> {
        let (action, query) = (AuditedAction::put_bulk(&definition.name), put(definition, source));
        let query = Repeatable::of(query);
        let written =
            self.act(&self.inner.intake, &action, async |session| session.execute(query).await).await;
        let written = written.map_err(|e| self.fail("put_bulk", e))?;
        Ok(if written == 1 { Put::Stands } else { Put::Foreign })
    }

    async fn sync_bulks(&self, configured: &[Definition], scope: &Scope) -> StoreResult<Synced> {
        let mut synced = Synced::default();
        for definition in configured {
            if self.put_bulk(definition, Source::Config).await? == Put::Foreign {
                synced.foreign.push(definition.name.clone());
            }
        }
        for (definition, source) in self.definitions(None).await? {
            let named = configured.iter().any(|its| its.name == definition.name);
            if source == Source::Config && scope.has(&definition.name) && !named {
                let query = sqlx::query(sql!("bulk/remove_definition")).bind(definition.name.clone());
                let action = AuditedAction::remove_bulk(&definition.name);
                let query = Repeatable::of(query);
                let removed =
                    self.act(&self.inner.intake, &action, async |session| session.execute(query).await);
                removed.await.map_err(|e| self.fail("sync_bulks", e))?;
                synced.removed.push(definition.name);
            }
        }
        Ok(synced)
    }

    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>> {
        Ok(self.definitions(Some(name)).await?.into_iter().next().map(|(definition, _)| definition))
    }

    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>> {
        Ok(self.definitions(None).await?.into_iter().map(|(definition, _)| definition).collect())
    }

    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued> {
        enqueue::check(std::slice::from_ref(job), self.inner.options.payload_bytes_max)?;
        self.begin_run(&AuditedAction::start_bulk(job.id), job, None).await
    }

    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>> {
        Ok(Box::new(Staging::begin(self, name).await?))
    }

    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>> {
        let query = sqlx::query(sql!("bulk/bulks"))
            .bind(filter.job.map(|job| job.0))
            .bind(filter.name.clone())
            .bind(filter.state.map(JobState::as_str))
            .bind(filter.group.clone())
            .bind(filter.r#type.clone())
            .bind(filter.category.clone())
            .bind(i64::from(filter.limit))
            .bind(filter.before.map(|job| job.0));
        let rows = self.inner.calm.rows(query).await;
        self.listed("bulks", rows, row::view)
    }

    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>> {
        let query = sqlx::query(sql!("bulk/failures")).bind(job.0).bind(after).bind(i64::from(limit));
        let rows = self.inner.calm.rows(query).await;
        rows.and_then(|rows| rows.iter().map(row::failure).collect())
            .map_err(|e| self.fail("bulk_failures", e))
    }

    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>> {
        let query = sqlx::query(sql!("bulk/operated")).bind(run.0).bind(i64::from(COUNTED_MAX));
        let rows = self.inner.calm.rows(query).await;
        let count = |row: &PgRow| Ok((named(row, "state")?, row.try_get("jobs")?));
        rows.and_then(|rows| rows.iter().map(count).collect()).map_err(|e| self.fail("operated_jobs", e))
    }

    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()> {
        let SettingsChange { as_defined, settings, priority } = *change;
        settings.check()?;
        let rows = |rows: Option<u32>| rows.map(u32::cast_signed);
        let query = sqlx::query(sql!("bulk/set"))
            .bind(job.0)
            .bind(settings.rows_per_s)
            .bind(settings.duty)
            .bind(settings.chunk_ms.map(u64::cast_signed))
            .bind(rows(settings.chunk_rows_min))
            .bind(rows(settings.chunk_rows_max))
            .bind(as_defined);
        let query = Repeatable::of(query);
        let set = async |session: &mut Session<'_>| {
            let known = session.row(query).await?.is_some();
            if let (true, Some(priority)) = (known, priority) {
                let query = sqlx::query(sql!("bulk/set_priority"));
                session.row(query.bind(job.0).bind(i16::from(priority.get()))).await?;
            }
            Ok(known)
        };
        let action = AuditedAction::set_bulk(job);
        let set = async |session: &mut Session<'_>| self.noted(session, &action, set, |_| None).await;
        match self.inner.intake.atomically(set).await.map_err(|e| self.fail("set_bulk", e))? {
            true => Ok(()),
            false => Err(InvalidBulk::NotBulk { job }.into()),
        }
    }

    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued> {
        let query = sqlx::query(sql!("bulk/template")).bind(job.0);
        let row = self.inner.calm.row(query).await.map_err(|e| self.fail("retry_bulk_failures", e))?;
        let Some(row) = row else { return Err(InvalidBulk::NotBulk { job }.into()) };
        let again = template(&row).map_err(|e| self.fail("retry_bulk_failures", e))??;
        self.begin_run(&AuditedAction::retry_bulk_failures(job), &again, Some(job)).await
    }

    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool> {
        let query = sqlx::query(sql!("bulk/interrupt")).bind(job.0);
        let query = Repeatable::of(query);
        let interrupt = async |session: &mut Session<'_>| match session.row(query).await? {
            Some(row) => row.try_get(0),
            None => Ok(false),
        };
        let tell = |stopped: &bool| stopped.then(|| json!({ "interrupted": true }));
        let action = AuditedAction::interrupt_bulk(job);
        let stopped = self.act_telling(&self.inner.calm, &action, interrupt, tell).await;
        stopped.map_err(|e| self.fail("interrupt_bulk", e))
    }
}

impl PostgresStore {
    async fn definitions(&self, name: Option<&str>) -> StoreResult<Vec<(Definition, Source)>> {
        let query = sqlx::query(sql!("bulk/definitions")).bind(name.map(str::to_owned));
        let read = |row: &PgRow| Ok((row::definition(row)?, named(row, "source")?));
        let rows = self.inner.calm.rows(query).await;
        rows.and_then(|rows| rows.iter().map(read).collect()).map_err(|e| self.fail("bulk_definition", e))
    }

    /// Enqueues a job and registers it as a bulk job, over the failures of `retry_of` if given, in one commit.
    async fn begin_run(
        &self,
        action: &AuditedAction,
        job: &NewJob,
        retry_of: Option<JobId>,
    ) -> StoreResult<Enqueued> {
        let begin = async |session: &mut Session<'_>| {
            if let Some(parent) = retry_of {
                // Retention skips the run from here on; otherwise, it would leave the rows that are added after its deletion.
                if !keep(session, parent).await? {
                    return Ok(Err(InvalidBulk::NotBulk { job: parent }));
                }
                // Before the job is made: another caller may have assigned the failures while this one waited for it.
                if give(session, parent, job.id).await? == 0 {
                    return Ok(Err(InvalidBulk::NoFailures { job: parent }));
                }
            }
            progress::start(session, job, retry_of).await.map(Ok)
        };
        let tell = |made: &Result<Enqueued, InvalidBulk>| {
            let made = *made.as_ref().ok()?;
            if retry_of.is_some() { made_run(made) } else { made_jobs(std::slice::from_ref(job), &[made]) }
        };
        let begin = async |session: &mut Session<'_>| self.noted(session, action, begin, tell).await;
        let begun = self
            .inner
            .intake
            .atomically(begin)
            .await
            .map_err(|e| crate::error::enqueue_error(&self.inner.place, e))?;
        Ok(begun?)
    }
}

/// Locks the row of a run against retention. Returns whether the run exists.
async fn keep(session: &mut Session<'_>, run: JobId) -> Decoded<bool> {
    // The row moves when the run ends or is resumed; a statement that has waited for that does not see it in its new table.
    for _ in 0..MOVES_MAX {
        if session.row(sqlx::query(sql!("bulk/keep_run")).bind(run.0)).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn give(session: &mut Session<'_>, from: JobId, to: JobId) -> Decoded<u64> {
    session.execute(sqlx::query(sql!("bulk/give_failures")).bind(from.0).bind(to.0)).await
}

fn put(definition: &Definition, source: Source) -> Query {
    let its = definition.clone();
    sqlx::query(sql!("bulk/put_definition"))
        .bind(its.name)
        .bind(its.labels.r#type)
        .bind(its.labels.category)
        .bind(its.group)
        .bind(its.queue)
        .bind(i16::from(its.priority.get()))
        .bind(its.max_attempts.cast_signed())
        .bind(whole_ms(its.sizing.target))
        .bind(its.sizing.rows_min.cast_signed())
        .bind(its.sizing.rows_max.cast_signed())
        .bind(its.load.rows_per_s)
        .bind(its.load.duty)
        .bind(its.failures_max.cast_signed())
        .bind(its.then)
        .bind(its.effects.as_str())
        .bind(its.fingerprint)
        .bind(source.as_str())
        .bind(its.columns.map(|columns| json!(columns).to_string()))
        .bind(its.place)
        .bind(its.statements.map(|statements| statements.to_json()))
}

/// Builds a new job like the one that the row describes.
fn template(row: &PgRow) -> Decoded<Result<NewJob, StoreError>> {
    let (kind, payload): (String, String) = (row.try_get("kind")?, row.try_get("payload")?);
    let group: Option<String> = row.try_get("group_key")?;
    let queue: String = row.try_get("queue")?;
    let attempts = row.try_get::<i32, _>("max_attempts")?.unsigned_abs();
    let priority = row::priority(row)?;
    let job = NewJob::from_json(kind, payload).map_err(|invalid| StoreError::Invalid { index: 0, invalid });
    Ok(job.map(|job| NewJob { group, ..job.queue(queue).priority(priority).max_attempts(attempts) }))
}

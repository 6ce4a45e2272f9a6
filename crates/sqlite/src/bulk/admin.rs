//! The port for operators of bulk jobs.

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditedAction, made_jobs, made_run};
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::operation::COUNTED_MAX;
use milepost_core::bulk::run::TargetFailure;
use milepost_core::bulk::settings::SettingsChange;
use milepost_core::bulk::statements::Statements;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkStaging, BulkStore, StoreResult};
use milepost_core::precedence::{Put, Scope, Synced};
use milepost_core::schedule::Source;
use milepost_core::sql;
use milepost_core::state::JobState;
use rusqlite::{Connection, OptionalExtension, Transaction};
use serde_json::json;

use super::staging::Staging;
use super::{progress, row, run};
use crate::audit::noted;
use crate::clock::now_ms;
use crate::command::Hint;
use crate::enqueue;
use crate::error::Failure;
use crate::row::{Id, readable, word};
use crate::store::SqliteStore;

#[async_trait]
impl BulkStore for SqliteStore {
    async fn put_bulk(&self, definition: &Definition, source: Source) -> StoreResult<Put> {
        let (action, definition) = (AuditedAction::put_bulk(&definition.name), definition.clone());
        self.act("put_bulk", Hint::NONE, action, move |tx| put(tx, &definition, source)).await
    }

    async fn sync_bulks(&self, configured: &[Definition], scope: &Scope) -> StoreResult<Synced> {
        let (actor, configured, scope) = (self.actor(), configured.to_vec(), scope.clone());
        self.write("sync_bulks", Hint::NONE, move |tx| sync(tx, &configured, &scope, actor.as_deref())).await
    }

    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>> {
        let name = name.to_owned();
        self.read("bulk_definition", move |conn| Ok(definition_of(conn, &name)?)).await
    }

    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>> {
        let list = |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("bulk/definitions"))?;
            let rows = statement.query_map([None::<String>], row::definition)?;
            let definitions = rows.map(|row| row.map(|(definition, _)| definition));
            Ok(definitions.collect::<rusqlite::Result<_>>()?)
        };
        self.read("bulk_definitions", list).await
    }

    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued> {
        enqueue::check(std::slice::from_ref(job), self.options().payload_bytes_max)?;
        let (action, asked, job) = (AuditedAction::start_bulk(job.id), job.clone(), job.clone());
        let start = move |tx: &Transaction<'_>| progress::start(tx, &job, None);
        let tell = move |made: &Enqueued| made_jobs(&[asked], &[*made]);
        self.act_telling("start_bulk", Hint::READY, action, start, tell).await
    }

    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>> {
        Ok(Box::new(Staging::begin(self, name).await?))
    }

    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>> {
        let filter = filter.clone();
        let list = move |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("bulk/bulks"))?;
            let values = (
                filter.job.as_ref().map(Id),
                &filter.name,
                filter.state.map(JobState::as_str),
                &filter.group,
                &filter.r#type,
                &filter.category,
                filter.limit,
                now_ms(),
                filter.before.as_ref().map(Id),
            );
            Ok(readable("bulks", statement.query_map(values, row::view)?)?)
        };
        self.read("bulks", list).await
    }

    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>> {
        let list = move |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("bulk/failures"))?;
            let rows = statement.query_map((Id(&job), after, limit), row::failure)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.read("bulk_failures", list).await
    }

    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>> {
        let count = move |conn: &Connection| {
            let mut statement = conn.prepare_cached(sql!("bulk/operated"))?;
            let counts =
                statement.query_map((Id(&run), COUNTED_MAX), |row| Ok((word(row, 0)?, row.get(1)?)))?;
            Ok(counts.collect::<rusqlite::Result<_>>()?)
        };
        self.read("operated_jobs", count).await
    }

    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()> {
        change.settings.check()?;
        let change = *change;
        let action = AuditedAction::set_bulk(job);
        self.act("set_bulk", Hint::NONE, action, move |tx| set(tx, job, change)).await
    }

    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued> {
        let retry = move |tx: &Transaction<'_>| {
            let found = tx.prepare_cached(sql!("bulk/template"))?.query_row([Id(&job)], run::template);
            let not_bulk = || StoreError::from(InvalidBulk::NotBulk { job });
            let (kind, queue, payload, group, priority, attempts) = found.optional()?.ok_or_else(not_bulk)?;
            let again = NewJob::from_json(kind, payload)
                .map_err(|invalid| StoreError::Invalid { index: 0, invalid })?;
            let again = again.queue(queue).priority(priority).max_attempts(attempts);
            progress::start(tx, &NewJob { group, ..again }, Some(job))
        };
        let tell = |made: &Enqueued| made_run(*made);
        let action = AuditedAction::retry_bulk_failures(job);
        self.act_telling("retry_bulk_failures", Hint::READY, action, retry, tell).await
    }

    /// A chunk takes only milliseconds on SQLite, and cannot be interrupted from another process.
    async fn interrupt_bulk(&self, _: JobId) -> StoreResult<bool> {
        Ok(false)
    }
}

/// Returns the definition of a bulk job.
pub(crate) fn definition_of(conn: &Connection, name: &str) -> rusqlite::Result<Option<Definition>> {
    let mut statement = conn.prepare_cached(sql!("bulk/definitions"))?;
    Ok(statement.query_row([name], row::definition).optional()?.map(|(definition, _)| definition))
}

fn put(tx: &Transaction<'_>, its: &Definition, source: Source) -> Result<Put, Failure> {
    let written = tx.prepare_cached(sql!("bulk/put_definition"))?.execute(rusqlite::params![
        its.name,
        its.labels.r#type,
        its.labels.category,
        its.group,
        its.queue,
        its.priority.get(),
        its.max_attempts,
        whole_ms(its.sizing.target),
        its.sizing.rows_min,
        its.sizing.rows_max,
        its.load.rows_per_s,
        its.load.duty,
        its.failures_max.cast_signed(),
        its.then,
        its.effects.as_str(),
        its.fingerprint,
        source.as_str(),
        its.columns.as_ref().map(|columns| json!(columns).to_string()),
        now_ms(),
        its.place,
        its.statements.as_ref().map(Statements::to_json),
    ])?;
    Ok(if written == 1 { Put::Stands } else { Put::Foreign })
}

fn sync(
    tx: &Transaction<'_>,
    configured: &[Definition],
    scope: &Scope,
    actor: Option<&Actor>,
) -> Result<Synced, Failure> {
    let mut synced = Synced::default();
    for definition in configured {
        let (action, put) =
            (AuditedAction::put_bulk(&definition.name), || put(tx, definition, Source::Config));
        if noted(tx, actor, &action, put, |_| None)? == Put::Foreign {
            synced.foreign.push(definition.name.clone());
        }
    }
    let mut statement = tx.prepare_cached(sql!("bulk/definitions"))?;
    let stored =
        statement.query_map([None::<&str>], row::definition)?.collect::<rusqlite::Result<Vec<_>>>()?;
    for (definition, source) in stored {
        let named = configured.iter().any(|its| its.name == definition.name);
        if source == Source::Config && scope.has(&definition.name) && !named {
            let remove =
                || Ok(tx.prepare_cached(sql!("bulk/remove_definition"))?.execute([&definition.name])?);
            noted(tx, actor, &AuditedAction::remove_bulk(&definition.name), remove, |_| None)?;
            synced.removed.push(definition.name);
        }
    }
    Ok(synced)
}

fn set(tx: &Transaction<'_>, job: JobId, change: SettingsChange) -> Result<(), Failure> {
    let SettingsChange { as_defined, settings, priority } = change;
    let set = tx.prepare_cached(sql!("bulk/set"))?.execute((
        Id(&job),
        settings.rows_per_s,
        settings.duty,
        settings.chunk_ms.map(u64::cast_signed),
        settings.chunk_rows_min,
        settings.chunk_rows_max,
        now_ms(),
        as_defined,
    ))?;
    if set == 0 {
        return Err(Failure::Told(InvalidBulk::NotBulk { job }.into()));
    }
    if let Some(priority) = priority {
        tx.prepare_cached(sql!("bulk/set_priority"))?.execute((Id(&job), priority.get()))?;
    }
    Ok(())
}

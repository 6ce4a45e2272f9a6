//! Audit log: each change by an actor adds a row in the transaction of the change.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditEntry, AuditFilter, AuditedAction, Note, Subject};
use milepost_core::inbox::listing::LetterId;
use milepost_core::limit::Target;
use milepost_core::port::{AuditStore, Store, StoreResult};
use milepost_core::sql;
use rusqlite::types::{Type, Value as Column};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params_from_iter};
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::row;
use crate::store::SqliteStore;

#[async_trait]
impl AuditStore for SqliteStore {
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(self.with_actor(actor))
    }

    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>> {
        let filter = filter.clone();
        self.read("audit_log", move |conn| {
            let before = filter.before.unwrap_or(i64::MAX);
            let page = (filter.who, filter.what, filter.subject, before, filter.limit);
            let mut statement = conn.prepare_cached(sql!("audit/log"))?;
            Ok(statement.query_map(page, entry)?.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }
}

impl SqliteStore {
    /// Returns the store for a repair. A repair always has an actor; without one it is [`Actor::nobody`].
    pub(crate) fn or_nobody(&self) -> Self {
        if self.actor().is_some() { self.clone() } else { self.with_actor(Actor::nobody()) }
    }

    /// Runs an operator's verb. If there is an actor and the verb changes anything, an audit row is written.
    pub(crate) async fn act<T, F>(
        &self,
        verb: &'static str,
        hint: Hint,
        action: AuditedAction,
        work: F,
    ) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    {
        self.act_telling(verb, hint, action, work, |_| None).await
    }

    /// As [`act`](Self::act), with details from the answer that cannot be read from the subject.
    pub(crate) async fn act_telling<T, F, G>(
        &self,
        verb: &'static str,
        hint: Hint,
        action: AuditedAction,
        work: F,
        tell: G,
    ) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
        G: FnOnce(&T) -> Option<Value> + Send + 'static,
    {
        let actor = self.actor();
        self.write(verb, hint, move |tx| noted(tx, actor.as_deref(), &action, || work(tx), tell)).await
    }
}

/// Runs a verb in the caller's transaction, and writes its audit row if there is an actor.
pub(crate) fn noted<T>(
    conn: &Connection,
    actor: Option<&Actor>,
    action: &AuditedAction,
    work: impl FnOnce() -> Result<T, Failure>,
    tell: impl FnOnce(&T) -> Option<Value>,
) -> Result<T, Failure> {
    let Some(actor) = actor else { return work() };
    let before = look(conn, &action.subject)?;
    let answer = work()?;
    let after = look(conn, &action.subject)?;
    if let Some(note) = action.note(before, after, tell(&answer)) {
        write(conn, actor, &note)?;
    }
    Ok(answer)
}

pub(crate) fn write(conn: &Connection, actor: &Actor, note: &Note) -> rusqlite::Result<()> {
    let Note { what, subject, detail } = note;
    let row = (now_ms(), actor.who(), what, subject, actor.why(), detail.to_string());
    conn.prepare_cached(sql!("audit/note"))?.execute(row).map(drop)
}

/// Returns the subject's state for the audit row; `None`: it does not exist, or it has no state to record.
fn look(conn: &Connection, subject: &Subject) -> Result<Option<Value>, Failure> {
    let Some((sql, values)) = question(subject) else { return Ok(None) };
    let mut statement = conn.prepare_cached(sql)?;
    let seen = statement.query_row(params_from_iter(values), |row| {
        let text = row.get_ref(0)?.as_str()?;
        serde_json::from_str::<Value>(text).map_err(|e| row::odd(0, Type::Text, e))
    });
    Ok(seen.optional()?.filter(|seen| seen.as_array().is_none_or(|rows| !rows.is_empty())))
}

/// Returns the query that reads the subject's state, with its parameters.
fn question(subject: &Subject) -> Option<(&'static str, Vec<Column>)> {
    let text = |text: &String| Column::Text(text.clone());
    let id = |id: uuid::Uuid| Column::Blob(id.into_bytes().to_vec());
    Some(match subject {
        Subject::Job(job) => (sql!("audit/look_at_job"), vec![id(job.0)]),
        Subject::Queue(name) => (sql!("audit/look_at_queue"), vec![text(name)]),
        Subject::Limit(Target::Kind(kind)) => (sql!("audit/look_at_kind_limit"), vec![text(kind)]),
        Subject::Limit(Target::Group(name)) => (sql!("audit/look_at_group_limit"), vec![text(name)]),
        Subject::Retention(of) => {
            (sql!("audit/look_at_retention"), vec![Column::Text(of.as_str().to_owned())])
        }
        Subject::Alert(key) => {
            let rule = Column::Text(key.rule.as_str().to_owned());
            (sql!("audit/look_at_alert"), vec![rule, text(&key.subject)])
        }
        Subject::Schedule(name) => (sql!("audit/look_at_schedule"), vec![text(name)]),
        Subject::Bulk(name) => (sql!("audit/look_at_bulk"), vec![text(name)]),
        Subject::BulkSettings(job) => (sql!("audit/look_at_bulk_setting"), vec![id(job.0)]),
        Subject::Dag(name) => (sql!("audit/look_at_dag"), vec![text(name)]),
        Subject::Batch(batch) => (sql!("audit/look_at_batch"), vec![id(batch.0)]),
        Subject::Subscription(name) => (sql!("audit/look_at_subscription"), vec![text(name)]),
        Subject::Parked(name, of) => {
            (sql!("audit/look_at_parked"), vec![text(name), text(&of.kind), text(&of.id)])
        }
        Subject::DeadEvent(name, event) => (sql!("audit/look_at_dead_event"), vec![text(name), id(event.0)]),
        Subject::Consumer(name) => (sql!("audit/look_at_consumer"), vec![text(name)]),
        Subject::Checkpoint(name, of) => {
            (sql!("audit/look_at_checkpoint"), vec![text(name), text(&of.kind), text(&of.id)])
        }
        Subject::Letters(letters) => (sql!("audit/look_at_letters"), vec![Column::Text(list(letters))]),
        Subject::NewJob(_)
        | Subject::NewBatch(_)
        | Subject::Tick(_)
        | Subject::Aggregate(_)
        | Subject::Check(_)
        | Subject::Store => return None,
    })
}

fn list(letters: &[LetterId]) -> String {
    json!(letters).to_string()
}

fn entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        pos: row.get(0)?,
        at: row::time(row, 1)?,
        who: row.get(2)?,
        what: row.get(3)?,
        subject: row.get(4)?,
        why: row.get(5)?,
        detail: serde_json::from_str(row.get_ref(6)?.as_str()?).map_err(|e| row::odd(6, Type::Text, e))?,
    })
}

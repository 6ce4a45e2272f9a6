//! Entries of the audit, written in the transaction of the change.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditEntry, AuditFilter, AuditedAction, Note, Subject};
use milepost_core::limit::Target;
use milepost_core::port::{AuditStore, Store, StoreResult};
use milepost_core::sql;
use serde_json::{Value, json};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::error::database_error;
use crate::row::Decoded;
use crate::session::{Query, Session, Sessions};
use crate::store::PostgresStore;

#[async_trait]
impl AuditStore for PostgresStore {
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(self.with_actor(actor))
    }

    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>> {
        let query = sqlx::query(sql!("audit/log"))
            .bind(filter.who.clone())
            .bind(filter.what.clone())
            .bind(filter.subject.clone())
            .bind(filter.before.unwrap_or(i64::MAX))
            .bind(i64::from(filter.limit));
        self.listed("audit_log", self.inner.calm.rows(query).await, entry)
    }
}

impl PostgresStore {
    /// Runs the statements of an operator's action. With an actor, they commit together with an entry of the audit if they change
    /// anything. If they change nothing, or are refused, because of an earlier commit, a synchronous standby has that commit when this returns.
    pub(crate) async fn act<T>(
        &self,
        sessions: &Sessions,
        audited: &AuditedAction,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T> + Clone,
    ) -> Decoded<T> {
        self.act_telling(sessions, audited, verb, |_| None).await
    }

    /// Like `act`, for actions whose result contains details that the subject does not show.
    pub(crate) async fn act_telling<T>(
        &self,
        sessions: &Sessions,
        audited: &AuditedAction,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T> + Clone,
        tell: impl FnOnce(&T) -> Option<Value> + Clone,
    ) -> Decoded<T> {
        self.act_confirming(sessions, audited, verb, tell, |_| false).await
    }

    /// Like `act_telling`, for frequent actions whose answer shows whether all of it is new (`is_new`): the commit of the action itself has
    /// then waited for the standby.
    pub(crate) async fn act_confirming<T>(
        &self,
        sessions: &Sessions,
        audited: &AuditedAction,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T> + Clone,
        tell: impl FnOnce(&T) -> Option<Value> + Clone,
        is_new: impl FnOnce(&T) -> bool,
    ) -> Decoded<T> {
        let acted = match &self.actor {
            None => sessions.run(verb).await,
            Some(_) => sessions.atomically(async |tx| self.noted(tx, audited, verb, tell).await).await,
        };
        // With an actor, a change is known from its entry in the audit, and confirmed with it.
        if acted.as_ref().map_or_else(is_refusal, |answer| self.actor.is_none() && !is_new(answer)) {
            sessions.run(confirm_replication).await?;
        }
        acted
    }

    /// Runs an action in a transaction, with an entry of the audit if there is an actor.
    pub(crate) async fn noted<T>(
        &self,
        tx: &mut Session<'_>,
        audited: &AuditedAction,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T>,
        tell: impl FnOnce(&T) -> Option<Value>,
    ) -> Decoded<T> {
        let Some(actor) = &self.actor else { return verb(tx).await };
        hold(tx, &audited.subject).await?;
        let before = look(tx, &audited.subject).await?;
        let answer = verb(tx).await?;
        let after = look(tx, &audited.subject).await?;
        match audited.note(before, after, tell(&answer)) {
            Some(note) => tx.execute(write(actor, note)).await.map(drop)?,
            None => confirm_replication(tx).await?,
        }
        Ok(answer)
    }

    /// Returns the store with an actor, which a repair always has: the current one, or [`Actor::nobody`].
    pub(crate) fn or_nobody(&self) -> Self {
        if self.actor.is_some() { self.clone() } else { self.with_actor(Actor::nobody()) }
    }
}

/// Makes the commit of this session wait for the commits that it has seen.
pub(crate) async fn confirm_replication(session: &mut Session<'_>) -> Decoded<()> {
    session.execute(sqlx::query(sql!("confirm_replication"))).await.map(drop)
}

/// Returns whether a function of the schema refused the action, for example because of the state of a job.
fn is_refusal(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|error| error.code().starts_with("MP"))
}

fn write(actor: &Actor, note: Note) -> Query {
    sqlx::query(sql!("audit/note"))
        .bind(actor.who().to_owned())
        .bind(note.what)
        .bind(note.subject)
        .bind(actor.why().map(str::to_owned))
        .bind(note.detail.to_string())
}

/// Locks the subject, so that its state before the change is the one that is changed.
async fn hold(tx: &mut Session<'_>, subject: &Subject) -> Decoded<()> {
    if let Subject::Job(job) = subject {
        tx.row(sqlx::query(sql!("audit/hold_job")).bind(job.0)).await?;
    } else if question(subject).is_some() {
        tx.row(sqlx::query(sql!("audit/hold")).bind(subject.to_string())).await?;
    }
    Ok(())
}

/// Returns the state of the subject; `None` if it does not exist or has no state.
async fn look(tx: &mut Session<'_>, subject: &Subject) -> Decoded<Option<Value>> {
    let Some(question) = question(subject) else { return Ok(None) };
    let Some(row) = tx.row(question).await? else { return Ok(None) };
    let seen: Value = json(&row, 0)?;
    Ok(Some(seen).filter(|seen| seen.as_array().is_none_or(|rows| !rows.is_empty())))
}

/// Returns the query for the state of a subject.
fn question(subject: &Subject) -> Option<Query> {
    let named = |sql: &'static str, name: &String| sqlx::query(sql).bind(name.clone());
    let numbered = |sql: &'static str, id: uuid::Uuid| sqlx::query(sql).bind(id);
    Some(match subject {
        Subject::Job(job) => numbered(sql!("audit/look_at_job"), job.0),
        Subject::Queue(name) => named(sql!("audit/look_at_queue"), name),
        Subject::Limit(Target::Kind(kind)) => named(sql!("audit/look_at_kind_limit"), kind),
        Subject::Limit(Target::Group(name)) => named(sql!("audit/look_at_group_limit"), name),
        Subject::Retention(of) => sqlx::query(sql!("audit/look_at_retention")).bind(of.as_str()),
        Subject::Alert(key) => {
            named(sql!("audit/look_at_alert"), &key.rule.as_str().to_owned()).bind(key.subject.clone())
        }
        Subject::Schedule(name) => named(sql!("audit/look_at_schedule"), name),
        Subject::Bulk(name) => named(sql!("audit/look_at_bulk"), name),
        Subject::BulkSettings(job) => numbered(sql!("audit/look_at_bulk_setting"), job.0),
        Subject::Dag(name) => named(sql!("audit/look_at_dag"), name),
        Subject::Batch(batch) => numbered(sql!("audit/look_at_batch"), batch.0),
        Subject::Subscription(name) => named(sql!("audit/look_at_subscription"), name),
        Subject::Parked(name, of) => {
            named(sql!("audit/look_at_parked"), name).bind(of.kind.clone()).bind(of.id.clone())
        }
        Subject::DeadEvent(name, event) => named(sql!("audit/look_at_dead_event"), name).bind(event.0),
        Subject::Consumer(name) => named(sql!("audit/look_at_consumer"), name),
        Subject::Checkpoint(name, of) => {
            named(sql!("audit/look_at_checkpoint"), name).bind(of.kind.clone()).bind(of.id.clone())
        }
        Subject::Letters(letters) => {
            let letters: Vec<i64> = letters.iter().map(|letter| letter.0).collect();
            sqlx::query(sql!("audit/look_at_letters")).bind(letters)
        }
        Subject::NewJob(_)
        | Subject::NewBatch(_)
        | Subject::Tick(_)
        | Subject::Aggregate(_)
        | Subject::Check(_)
        | Subject::Store => return None,
    })
}

fn json(row: &PgRow, column: usize) -> Decoded<Value> {
    serde_json::from_str(row.try_get(column)?).map_err(|e| sqlx::Error::Decode(Box::new(e)))
}

fn entry(row: &PgRow) -> Decoded<AuditEntry> {
    Ok(AuditEntry {
        pos: row.try_get("pos")?,
        at: row.try_get::<jiff_sqlx::Timestamp, _>("at")?.to_jiff(),
        who: row.try_get("who")?,
        what: row.try_get("what")?,
        subject: row.try_get("subject")?,
        why: row.try_get("why")?,
        // An unreadable entry, which only a superuser can write, must not hide the others.
        detail: json(row, 6).unwrap_or_else(|error| json!({ "unreadable": error.to_string() })),
    })
}

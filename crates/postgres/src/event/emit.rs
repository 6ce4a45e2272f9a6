//! Emission of events, through the SQL function that clients in all languages use.

use std::collections::BTreeMap;

use milepost_core::audit::{AuditedAction, made_events};
use milepost_core::error::StoreError;
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::job::PAYLOAD_BYTES_MAX;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use serde_json::json;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::error::emit_error;
use crate::row::Decoded;
use crate::session::{Query, Repeatable, Session};
use crate::store::PostgresStore;

/// Place that errors name for a caller's transaction.
const CALLERS: &str = "the caller's connection";

/// Emits one event in the caller's transaction: the event is in the log exactly when that transaction commits. Until then,
/// other transactions that emit for its aggregate wait, so emit late in a transaction. Behind a transaction pooler use
/// [`pooled::emit`](crate::pooled::emit).
///
/// # Errors
/// [`Event`](StoreError::Event) describes the problem with the event. The caller's transaction is aborted only if the
/// error came from the database, not if it came from the check before.
pub async fn emit(connection: &mut PgConnection, event: &NewEvent) -> StoreResult<Emitted> {
    emit_in(Session::lasting(connection), event).await
}

/// Emits events in the caller's transaction, all or none, and returns the results in the same order. The events of one
/// aggregate are numbered in that order. Several calls in one transaction can deadlock with those of another transaction:
/// emit all events in one call. Behind a transaction pooler use [`pooled::emit_many`](crate::pooled::emit_many).
///
/// # Errors
/// [`Event`](StoreError::Event) names the first event that cannot be emitted.
pub async fn emit_many(connection: &mut PgConnection, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
    emit_many_in(Session::lasting(connection), events).await
}

pub(crate) async fn emit_in(session: Session<'_>, event: &NewEvent) -> StoreResult<Emitted> {
    let emitted = emit_many_in(session, std::slice::from_ref(event)).await?;
    let unanswered = || StoreError::Database { verb: "emit", cause: "no result was returned".into() };
    emitted.into_iter().next().ok_or_else(unanswered)
}

pub(crate) async fn emit_many_in(mut session: Session<'_>, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
    NewEvent::check_all(events, PAYLOAD_BYTES_MAX)?;
    let rows = session.rows(insert(events)).await;
    rows.and_then(all_emitted).map_err(|e| emit_error(CALLERS, events, e))
}

impl PostgresStore {
    pub(super) async fn emit_events(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        NewEvent::check_all(events, self.inner.options.payload_bytes_max)?;
        let query = insert(events);
        let query = Repeatable::of(query);
        let emit = async |session: &mut Session<'_>| session.rows(query).await.and_then(all_emitted);
        let tell = |emitted: &Vec<Emitted>| made_events(events, emitted);
        let is_new = |emitted: &Vec<Emitted>| emitted.iter().all(|its| !its.duplicate);
        let emitted =
            self.act_confirming(&self.inner.intake, &AuditedAction::emit(events), emit, tell, is_new).await;
        emitted.map_err(|e| emit_error(&self.inner.place, events, e))
    }
}

fn insert(events: &[NewEvent]) -> Query {
    let each = |value: fn(&NewEvent) -> &str| events.iter().map(value).collect::<Vec<_>>();
    sqlx::query(sql!("event/emit_many"))
        .bind(each(|event| &event.aggregate.kind))
        .bind(each(|event| &event.aggregate.id))
        .bind(each(|event| &event.event_type))
        .bind(each(|event| event.payload.get()))
        .bind(events.iter().map(|event| event.id.0).collect::<Vec<_>>())
        .bind(some_of(events, |event| event.sequence))
        .bind(some_of(events, |event| headers_text(&event.headers)))
        .bind(some_of(events, |event| event.gap_allowed.then_some(true)))
}

/// Collects an option of every event; `None` if no event has it.
fn some_of<T>(events: &[NewEvent], option: impl Fn(&NewEvent) -> Option<T>) -> Option<Vec<Option<T>>> {
    let values: Vec<Option<T>> = events.iter().map(option).collect();
    values.iter().any(Option::is_some).then_some(values)
}

/// Returns headers as JSON text, if there are any.
pub(crate) fn headers_text(headers: &BTreeMap<String, String>) -> Option<String> {
    (!headers.is_empty()).then(|| json!(headers).to_string())
}

fn all_emitted(rows: Vec<PgRow>) -> Decoded<Vec<Emitted>> {
    rows.iter().map(|row| Ok(Emitted { sequence: row.try_get(0)?, duplicate: row.try_get(1)? })).collect()
}

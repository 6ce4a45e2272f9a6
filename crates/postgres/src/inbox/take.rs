//! Receipt of events, through the SQL functions that clients in all languages use.

use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::{Received, check_consumer, check_position, check_received};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::{inbox_error, kept_event, odd};
use crate::event::headers_text;
use crate::row::{self, Decoded};
use crate::session::{Query, Session};

/// Place that errors name for a caller's transaction.
const CALLERS: &str = "the caller's connection";

/// Records that a consumer processes this event, in the caller's transaction, and returns whether it is the first time. If
/// the transaction rolls back, the record is gone. Waits for another transaction that records the same event. Does not check
/// the order. Behind a transaction pooler use [`pooled::once`](crate::pooled::once).
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the name.
pub async fn once(connection: &mut PgConnection, consumer: &str, event: EventId) -> StoreResult<bool> {
    once_in(Session::lasting(connection), consumer, event).await
}

/// Receives an event in the caller's transaction, if it is the next one of its aggregate. Other transactions that receive
/// events of this aggregate for this consumer wait until the transaction ends: receive events of one aggregate per
/// transaction, or sort them. After a result with [`more`](Received::more), receive the kept events with [`next_parked`].
/// Behind a transaction pooler use [`pooled::receive`](crate::pooled::receive).
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the event or the name.
pub async fn receive(connection: &mut PgConnection, consumer: &str, event: &Event) -> StoreResult<Received> {
    receive_in(Session::lasting(connection), consumer, event).await
}

/// Receives the kept event that follows the last received one of an aggregate, in the caller's transaction; `None` if there
/// is no such event. Behind a transaction pooler use [`pooled::next_parked`](crate::pooled::next_parked).
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with a name.
pub async fn next_parked(
    connection: &mut PgConnection,
    consumer: &str,
    aggregate: &Aggregate,
) -> StoreResult<Option<Event>> {
    next_parked_in(Session::lasting(connection), consumer, aggregate).await
}

/// Sets the first sequence number of an aggregate that a consumer receives, in the caller's transaction; earlier events
/// count as duplicates. Never moves backwards; returns whether anything changed. Kept events may now be next: call
/// [`next_parked`]. Behind a transaction pooler use [`pooled::expect_from`](crate::pooled::expect_from).
///
/// # Errors
/// [`Inbox`](milepost_core::error::StoreError::Inbox) describes the problem with the sequence or a name.
pub async fn expect_from(
    connection: &mut PgConnection,
    consumer: &str,
    aggregate: &Aggregate,
    sequence: i64,
) -> StoreResult<bool> {
    expect_from_in(Session::lasting(connection), consumer, aggregate, sequence).await
}

pub(crate) async fn once_in(mut session: Session<'_>, consumer: &str, event: EventId) -> StoreResult<bool> {
    check_consumer(consumer)?;
    let query = sqlx::query(sql!("inbox/once")).bind(consumer.to_owned()).bind(event.0);
    let first = session.row(query).await.and_then(row::value);
    first.map_err(|e| inbox_error(CALLERS, "once", e))
}

pub(crate) async fn receive_in(
    mut session: Session<'_>,
    consumer: &str,
    event: &Event,
) -> StoreResult<Received> {
    check_received(consumer, event)?;
    let query = sqlx::query(sql!("inbox/receive"))
        .bind(consumer.to_owned())
        .bind(event.aggregate.kind.clone())
        .bind(event.aggregate.id.clone())
        .bind(event.sequence)
        .bind(event.id.0)
        .bind(event.event_type.clone())
        .bind(event.payload.get().to_owned())
        .bind(headers_text(&event.headers))
        .bind(jiff_sqlx::Timestamp::from(event.emitted_at));
    let row = session.row(query).await;
    let verdict = row.and_then(|row| received(&row.ok_or(sqlx::Error::RowNotFound)?));
    verdict.map_err(|e| inbox_error(CALLERS, "receive", e))
}

pub(crate) async fn next_parked_in(
    mut session: Session<'_>,
    consumer: &str,
    aggregate: &Aggregate,
) -> StoreResult<Option<Event>> {
    check_position(consumer, aggregate, 1)?;
    let query = sqlx::query(sql!("inbox/next_parked"))
        .bind(consumer.to_owned())
        .bind(aggregate.kind.clone())
        .bind(aggregate.id.clone());
    let row = session.row(query).await;
    let event = row.and_then(|row| row.map(|row| kept_event(&row, aggregate.clone())).transpose());
    event.map_err(|e| inbox_error(CALLERS, "next_parked", e))
}

pub(crate) async fn expect_from_in(
    mut session: Session<'_>,
    consumer: &str,
    aggregate: &Aggregate,
    sequence: i64,
) -> StoreResult<bool> {
    let query = expectation(consumer, aggregate, sequence)?;
    let changed = session.row(query).await.and_then(row::value);
    changed.map_err(|e| inbox_error(CALLERS, "expect_from", e))
}

/// Returns the query that sets the first sequence number of an aggregate that a consumer receives.
pub(super) fn expectation(consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<Query> {
    check_position(consumer, aggregate, sequence)?;
    Ok(sqlx::query(sql!("inbox/expect_from"))
        .bind(consumer.to_owned())
        .bind(aggregate.kind.clone())
        .bind(aggregate.id.clone())
        .bind(sequence))
}

fn received(row: &PgRow) -> Decoded<Received> {
    let more = row.try_get("more")?;
    match row.try_get("verdict")? {
        "apply" => Ok(Received::Apply { more }),
        "duplicate" => Ok(Received::Duplicate),
        "parked" => Ok(Received::Parked { more }),
        "late" => Ok(Received::Late),
        other => Err(odd(std::io::Error::other(format!("unknown verdict {other:?}")))),
    }
}

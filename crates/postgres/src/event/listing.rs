//! Listings of the event log for operators.

use std::collections::BTreeMap;

use milepost_core::event::listing::{AggregatePlace, EventFilter, EventPage, LoggedEvent};
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use serde_json::value::RawValue;
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::row::Decoded;
use crate::session::Query;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(super) async fn list_events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        let (sql, of_aggregate, bound) = match filter.page {
            EventPage::Before(before) => {
                (sql!("event/newest"), sql!("event/newest_of_aggregate"), before.unwrap_or(i64::MAX))
            }
            EventPage::After(after) => (sql!("event/after"), sql!("event/after_of_aggregate"), after),
        };
        let query = sqlx::query(if filter.aggregate.is_some() { of_aggregate } else { sql })
            .bind(bound)
            .bind(filter.event_type.clone())
            .bind(i64::from(filter.limit));
        let query = match &filter.aggregate {
            Some(aggregate) => query.bind(aggregate.kind.clone()).bind(aggregate.id.clone()),
            None => query,
        };
        // A filter by type may have to scan, and must not delay claims.
        self.listed("events", self.inner.calm.rows(query).await, logged_event)
    }
}

fn logged_event(row: &PgRow) -> Decoded<LoggedEvent> {
    Ok(LoggedEvent { pos: row.try_get("pos")?, event: read_event(row)? })
}

/// Binds a position as the next four parameters of the query, null if none is given.
pub(crate) fn after_place(query: Query, place: Option<&AggregatePlace>) -> Query {
    query
        .bind(place.map(|place| jiff_sqlx::Timestamp::from(place.at)))
        .bind(place.map(|place| place.of.clone()))
        .bind(place.map(|place| place.aggregate.kind.clone()))
        .bind(place.map(|place| place.aggregate.id.clone()))
}

pub(crate) fn read_event(row: &PgRow) -> Decoded<Event> {
    read_event_with(row, row.try_get("payload")?)
}

/// Decodes the event of a row, with the given payload. An error names the event.
pub(crate) fn read_event_with(row: &PgRow, payload: String) -> Decoded<Event> {
    let id: Uuid = row.try_get("event_id")?;
    decode(row, EventId(id), payload).map_err(|error| {
        let words = format!("the row of event {id} in the log cannot be read; correct or delete it: {error}");
        sqlx::Error::Decode(words.into())
    })
}

fn decode(row: &PgRow, id: EventId, payload: String) -> Decoded<Event> {
    let headers: Option<&str> = row.try_get("headers")?;
    let headers = headers.map_or(Ok(BTreeMap::new()), serde_json::from_str).map_err(odd)?;
    Ok(Event {
        id,
        aggregate: Aggregate { kind: row.try_get("aggregate_type")?, id: row.try_get("aggregate_id")? },
        sequence: row.try_get("aggregate_seq")?,
        event_type: row.try_get("event_type")?,
        payload: RawValue::from_string(payload).map_err(odd)?,
        headers,
        emitted_at: row.try_get::<jiff_sqlx::Timestamp, _>("emitted_at")?.to_jiff(),
    })
}

fn odd(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

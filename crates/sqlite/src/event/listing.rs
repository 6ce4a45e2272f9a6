//! Queries that list the event log.

use std::collections::BTreeMap;

use milepost_core::event::listing::{AggregatePlace, EventFilter, EventPage, LoggedEvent};
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::{EventId, JobId};
use milepost_core::sql;
use rusqlite::types::Type;
use rusqlite::{Connection, Row};

use crate::error::Failure;
use crate::row::{self, odd};

/// Returns a page of the log.
pub(super) fn events(conn: &Connection, filter: &EventFilter) -> Result<Vec<LoggedEvent>, Failure> {
    let (sql, of_aggregate, bound) = match filter.page {
        EventPage::Before(before) => {
            (sql!("event/newest"), sql!("event/newest_of_aggregate"), before.unwrap_or(i64::MAX))
        }
        EventPage::After(after) => (sql!("event/after"), sql!("event/after_of_aggregate"), after),
    };
    let (kind, limit) = (&filter.event_type, filter.limit);
    let events = match &filter.aggregate {
        Some(Aggregate { kind: of, id }) => conn
            .prepare_cached(of_aggregate)?
            .query_map((bound, kind, limit, of, id), read_event)?
            .collect::<rusqlite::Result<_>>()?,
        None => conn
            .prepare_cached(sql)?
            .query_map((bound, kind, limit), read_event)?
            .collect::<rusqlite::Result<_>>()?,
    };
    Ok(events)
}

/// Converts a key of lists by time to columns; without one, returns values before all rows.
pub(crate) fn after_place(place: Option<&AggregatePlace>) -> (i64, String, String, String) {
    match place.cloned() {
        Some(AggregatePlace { at, of, aggregate }) => (at.as_millisecond(), of, aggregate.kind, aggregate.id),
        None => (i64::MIN, String::new(), String::new(), String::new()),
    }
}

pub(crate) fn read_event(row: &Row<'_>) -> rusqlite::Result<LoggedEvent> {
    let headers = match row.get_ref(7)?.as_str_or_null()? {
        Some(text) => serde_json::from_str(text).map_err(|e| odd(7, Type::Text, e))?,
        None => BTreeMap::new(),
    };
    let JobId(id) = row::job_id(row, 1)?;
    Ok(LoggedEvent {
        pos: row.get(0)?,
        event: Event {
            id: EventId(id),
            aggregate: Aggregate { kind: row.get(2)?, id: row.get(3)? },
            sequence: row.get(4)?,
            event_type: row.get(5)?,
            payload: row::json(row, 6)?,
            headers,
            emitted_at: row::time(row, 8)?,
        },
    })
}

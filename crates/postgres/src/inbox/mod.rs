//! Inbox: consumers receive events, and operators handle those that could not be processed.

mod operate;
mod take;

use std::collections::BTreeMap;

use milepost_core::error::StoreError;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::InvalidInbox;
use milepost_core::inbox::listing::LetterId;
use serde_json::value::RawValue;
use sqlx::Row;
use sqlx::postgres::PgRow;

pub use take::{expect_from, next_parked, once, receive};
pub(crate) use take::{expect_from_in, next_parked_in, once_in, receive_in};

use crate::error::{database_error, store_error};
use crate::row::Decoded;

/// SQLSTATE of a call that cannot be accepted.
const INVALID: &str = "MP018";
/// SQLSTATE of an operation that a dead letter does not allow.
const LETTER: &str = "MP019";

/// Converts an error of a verb of the inbox.
fn inbox_error(place: &str, verb: &'static str, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else { return store_error(place, verb, error) };
    let why = database.message().to_owned();
    match database.code() {
        INVALID => InvalidInbox::Refused { why }.into(),
        LETTER => match letter(database.detail().unwrap_or_default()) {
            Some(invalid) => invalid.into(),
            None => InvalidInbox::Refused { why }.into(),
        },
        _ => store_error(place, verb, error),
    }
}

/// Parses `detail`, such as `past 4`, of an error about a dead letter.
fn letter(detail: &str) -> Option<InvalidInbox> {
    let (word, id) = detail.split_once(' ')?;
    let id = LetterId(id.parse().ok()?);
    match word {
        "missing" => Some(InvalidInbox::NoSuchLetter(id)),
        "past" => Some(InvalidInbox::Past(id)),
        _ => None,
    }
}

/// Decodes the event of a row that was kept for an aggregate.
fn kept_event(row: &PgRow, aggregate: Aggregate) -> Decoded<Event> {
    let headers: Option<&str> = row.try_get("headers")?;
    Ok(Event {
        id: EventId(row.try_get("event_id")?),
        aggregate,
        sequence: row.try_get("aggregate_seq")?,
        event_type: row.try_get("event_type")?,
        payload: RawValue::from_string(row.try_get("payload")?).map_err(odd)?,
        headers: headers.map_or(Ok(BTreeMap::new()), serde_json::from_str).map_err(odd)?,
        emitted_at: row.try_get::<jiff_sqlx::Timestamp, _>("emitted_at")?.to_jiff(),
    })
}

fn odd(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(error))
}

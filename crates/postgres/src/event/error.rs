//! Conversion of errors of `sql/events.sql` into errors of the domain.

use milepost_core::error::StoreError;
use milepost_core::event::{InvalidEvent, NewEvent};
use milepost_core::job::error::InvalidJob;

use crate::error::{database_error, index_in, store_error};

/// SQLSTATE of an event that cannot be accepted as it is.
const INVALID: &str = "MP015";
/// SQLSTATE of a sequence number that does not follow the previous one.
const SEQUENCE: &str = "MP016";
/// SQLSTATE of an id that belongs to an event with other content.
const OTHER_CONTENT: &str = "MP017";

/// Converts an error of emitting these events.
pub(super) fn emit_error(place: &str, events: &[NewEvent], error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else { return store_error(place, "emit_many", error) };
    let why = database.message().to_owned();
    let index = index_in(&why);
    let invalid = match (database.code(), events.get(index)) {
        (INVALID, _) => InvalidEvent::Refused { why },
        (SEQUENCE, Some(event)) => match out_of_sequence(event, database.detail().unwrap_or_default()) {
            Some(invalid) => invalid,
            None => InvalidEvent::Refused { why },
        },
        (OTHER_CONTENT, Some(event)) => InvalidEvent::OtherContent { id: event.id },
        ("22003", _) => InvalidEvent::Refused { why },
        ("22P02" | "22P05", _) => InvalidEvent::Payload(InvalidJob::NotJson { why }),
        _ => return store_error(place, "emit_many", error),
    };
    StoreError::Event { index, invalid }
}

/// Parses `detail`, such as `gap 4`, of an error about an event's sequence number.
fn out_of_sequence(event: &NewEvent, detail: &str) -> Option<InvalidEvent> {
    let (word, last) = detail.split_once(' ')?;
    let (aggregate, sequence, last) = (event.aggregate.clone(), event.sequence?, last.parse().ok()?);
    match word {
        "repeated" => Some(InvalidEvent::Repeated { aggregate, sequence, last }),
        "gap" => Some(InvalidEvent::Gap { aggregate, sequence, last }),
        _ => None,
    }
}

//! Errors of events and subscriptions.

use thiserror::Error;

use super::{Aggregate, HEADER_BYTES_MAX, HEADERS_MAX, RESERVED, SEQUENCE_MAX};
use crate::ident::EventId;
use crate::job::error::InvalidJob;

/// An event that cannot be emitted. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// The aggregate's type or id, or the event's type, is invalid.
    #[error("{0}")]
    Name(InvalidJob),
    /// The type of the aggregate is reserved for state changes.
    #[error(
        "the type of the aggregate {0:?} begins with {RESERVED:?}, which is kept for state changes; use another type"
    )]
    Reserved(String),
    /// The payload is invalid.
    #[error("{0}")]
    Payload(InvalidJob),
    /// A header is invalid.
    #[error("the header {name:?} {why}")]
    Header {
        /// Its name, shortened.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// There are too many headers, or they are too large.
    #[error(
        "{count} headers with {bytes} bytes are too much: an event has at most {HEADERS_MAX} headers with {HEADER_BYTES_MAX} bytes"
    )]
    Headers {
        /// The number of headers.
        count: usize,
        /// Their total size in bytes.
        bytes: usize,
    },
    /// The sequence is not from 1 to [`SEQUENCE_MAX`].
    #[error("the sequence {0} is not a number from 1 to {SEQUENCE_MAX}")]
    Sequence(i64),
    /// The aggregate already has this sequence or later ones.
    #[error("{aggregate} is at sequence {last} already: {sequence} cannot follow")]
    Repeated {
        /// The aggregate.
        aggregate: Aggregate,
        /// The given sequence.
        sequence: i64,
        /// The last sequence of the aggregate.
        last: i64,
    },
    /// Events between the aggregate's last one and this one are missing.
    #[error(
        "{aggregate} is at sequence {last}: {sequence} would leave a gap; emit the missing events, or allow gaps"
    )]
    Gap {
        /// The aggregate.
        aggregate: Aggregate,
        /// The given sequence.
        sequence: i64,
        /// The last sequence of the aggregate.
        last: i64,
    },
    /// Another event has the same id.
    #[error("event {id} exists with other content: an id identifies one event permanently")]
    OtherContent {
        /// The id.
        id: EventId,
    },
    /// The database rejected the values for another reason.
    #[error("the database rejected the event: {why}")]
    Refused {
        /// The database's message.
        why: String,
    },
}

/// An operation on a subscription that is not possible. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The subscription does not exist.
    #[error("there is no subscription {0:?}")]
    NoSuchSubscription(String),
    /// The database is not the one in which the position was stored. Its transaction numbers are different, so the
    /// position does not identify the published events.
    #[error(
        "the database was restored or copied to another server since the subscription {0:?} stored its position: run `milepost events reseed`"
    )]
    Restored(String),
    /// No events of this aggregate are parked.
    #[error("no events of {aggregate} are parked for the subscription {subscription:?}")]
    NotParked {
        /// The subscription.
        subscription: String,
        /// The aggregate.
        aggregate: Aggregate,
    },
    /// Another event of the aggregate is the first one.
    #[error(
        "{event} is not the first parked event of {aggregate} for the subscription {subscription:?}; nothing was changed: list the parked events again"
    )]
    NotFirst {
        /// The subscription.
        subscription: String,
        /// The aggregate.
        aggregate: Aggregate,
        /// The event that the operator named.
        event: EventId,
    },
    /// The event is not a dead letter of the subscription.
    #[error("the event {event} is not a dead letter of the subscription {subscription:?}")]
    NotDead {
        /// The subscription.
        subscription: String,
        /// The event.
        event: EventId,
    },
    /// Events to be replayed are no longer in the log.
    #[error("the log contains the events of {aggregate} only from sequence {first} on; replay from there")]
    BeforeRetention {
        /// The aggregate.
        aggregate: Aggregate,
        /// The sequence of its first event in the log.
        first: i64,
    },
    /// There are no events of this aggregate.
    #[error("the log has no events of {0}")]
    NoEvents(Aggregate),
    /// The new payload of an event is invalid.
    #[error("{0}")]
    Payload(InvalidJob),
    /// A publisher is active that must be stopped first.
    #[error("{0} is publishing; stop all relays first")]
    InUse(String),
}

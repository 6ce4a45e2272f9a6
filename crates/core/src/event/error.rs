//! What is wrong with events.

use thiserror::Error;

use super::{Aggregate, HEADER_BYTES_MAX, HEADERS_MAX, RESERVED, SEQUENCE_MAX};
use crate::error::InvalidJob;
use crate::ident::EventId;

/// An event that cannot be emitted. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// A name: the aggregate's type or id, or the event's type.
    #[error("{0}")]
    Name(InvalidJob),
    /// The type of the aggregate is one of those whose events are state changes.
    #[error(
        "the type of the aggregate {0:?} begins with {RESERVED:?}, which is kept for state changes; give it another"
    )]
    Reserved(String),
    /// The payload.
    #[error("{0}")]
    Payload(InvalidJob),
    /// A header.
    #[error("the header {name:?} {why}")]
    Header {
        /// Its name, shortened.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// There are too many headers, or too large ones.
    #[error(
        "{count} headers with {bytes} bytes are too much: an event has at most {HEADERS_MAX} headers with {HEADER_BYTES_MAX} bytes"
    )]
    Headers {
        /// How many there are.
        count: usize,
        /// How many bytes they have.
        bytes: usize,
    },
    /// The sequence is not from 1 to [`SEQUENCE_MAX`].
    #[error("the sequence {0} is not a number from 1 to {SEQUENCE_MAX}")]
    Sequence(i64),
    /// The aggregate has this sequence, or later ones, already.
    #[error("{aggregate} is at sequence {last} already: {sequence} cannot follow")]
    Repeated {
        /// The aggregate.
        aggregate: Aggregate,
        /// What was given.
        sequence: i64,
        /// Where the aggregate stands.
        last: i64,
    },
    /// Events between the aggregate's last one and this one are missing.
    #[error(
        "{aggregate} is at sequence {last}: {sequence} would leave a gap; emit what is missing, or allow gaps"
    )]
    Gap {
        /// The aggregate.
        aggregate: Aggregate,
        /// What was given.
        sequence: i64,
        /// Where the aggregate stands.
        last: i64,
    },
    /// Another event has this id.
    #[error("event {id} exists with other content: an id belongs to one event for ever")]
    OtherContent {
        /// The id.
        id: EventId,
    },
    /// The database refused the values for a reason of its own.
    #[error("the database refused the event: {why}")]
    Refused {
        /// The database's words.
        why: String,
    },
}

/// What was asked of a subscription, and cannot be done. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// There is no such subscription.
    #[error("there is no subscription {0:?}")]
    NoSuchSubscription(String),
    /// The database is not the one in which the position was kept: transactions are numbered anew, and what was published
    /// cannot be told by them.
    #[error(
        "the database was restored or copied to another server since the subscription {0:?} kept its position: run `milepost events reseed`"
    )]
    Restored(String),
    /// Nothing of this aggregate is parked.
    #[error("nothing of {aggregate} is parked for the subscription {subscription:?}")]
    NotParked {
        /// The subscription.
        subscription: String,
        /// The aggregate.
        aggregate: Aggregate,
    },
    /// The event was not given up.
    #[error("the event {event} is not among those that the subscription {subscription:?} has given up")]
    NotDead {
        /// The subscription.
        subscription: String,
        /// The event.
        event: EventId,
    },
    /// What is to be published again is not in the log any more.
    #[error("the log has the events of {aggregate} from sequence {first} on; replay from there")]
    BeforeRetention {
        /// The aggregate.
        aggregate: Aggregate,
        /// The first of its events that is there.
        first: i64,
    },
    /// There are no events of this aggregate.
    #[error("the log has no events of {0}")]
    NoEvents(Aggregate),
    /// The payload that an event is to get cannot be one.
    #[error("{0}")]
    Payload(InvalidJob),
    /// Somebody publishes who must not.
    #[error("{0} publishes: stop all relays first")]
    InUse(String),
}

//! What is wrong with calls of the inbox.

use thiserror::Error;

use super::{HEADER_BYTES_MAX, PARKED_MAX_LIMIT};
use crate::error::InvalidJob;
use crate::event::SEQUENCE_MAX;
use crate::inbox::listing::LetterId;

/// A call that the inbox cannot do. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidInbox {
    /// A name: the consumer's, the aggregate's type or id, or the event's type.
    #[error("{0}")]
    Name(InvalidJob),
    /// The sequence is not from 1 to [`SEQUENCE_MAX`].
    #[error("the sequence {0} is not a number from 1 to {SEQUENCE_MAX}")]
    Sequence(i64),
    /// The payload of the event.
    #[error("{0}")]
    Payload(InvalidJob),
    /// The headers of the event: so many bytes.
    #[error("the headers of the event have {0} bytes; at most {HEADER_BYTES_MAX} are possible")]
    Headers(usize),
    /// Events are to wait for too long.
    #[error(
        "events of the consumer wait for longer than a hundred years for one that is missing; give it a shorter gap_wait"
    )]
    GapWait,
    /// Too many events of an aggregate are to wait, or none.
    #[error("{0} events of an aggregate wait at most (parked_max); it must be from 1 to {PARKED_MAX_LIMIT}")]
    ParkedMax(u32),
    /// There is no such dead letter.
    #[error("there is no dead letter {0} of an inbox")]
    NoSuchLetter(LetterId),
    /// The consumer has gone on past the event of a dead letter.
    #[error(
        "dead letter {0} cannot wait again: its consumer has gone on past it; apply by hand what it says, then drop it"
    )]
    Past(LetterId),
    /// The database refused the values for a reason of its own.
    #[error("the database refused what the inbox was given: {why}")]
    Refused {
        /// The database's words.
        why: String,
    },
}

//! Errors of the inbox.

use thiserror::Error;

use super::{HEADER_BYTES_MAX, PARKED_MAX_LIMIT};
use crate::event::SEQUENCE_MAX;
use crate::inbox::listing::LetterId;
use crate::job::error::InvalidJob;

/// A call that the inbox rejects. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidInbox {
    /// The consumer's name, the aggregate's type or id, or the event's type is invalid.
    #[error("{0}")]
    Name(InvalidJob),
    /// The sequence is not from 1 to [`SEQUENCE_MAX`].
    #[error("the sequence {0} is not a number from 1 to {SEQUENCE_MAX}")]
    Sequence(i64),
    /// The payload of the event is invalid.
    #[error("{0}")]
    Payload(InvalidJob),
    /// The headers of the event have too many bytes.
    #[error("the headers of the event have {0} bytes; at most {HEADER_BYTES_MAX} are allowed")]
    Headers(usize),
    /// The waiting time for missing events is too long.
    #[error("the gap_wait of the consumer is longer than a hundred years; use a shorter one")]
    GapWait,
    /// The maximum number of waiting events of an aggregate is out of range.
    #[error("parked_max is {0}; it must be from 1 to {PARKED_MAX_LIMIT}")]
    ParkedMax(u32),
    /// The dead letter does not exist.
    #[error("there is no dead letter {0} of an inbox")]
    NoSuchLetter(LetterId),
    /// The consumer has already passed the event of a dead letter.
    #[error(
        "dead letter {0} cannot be retried: another event has its sequence, or its consumer has passed it; apply its content by hand, then drop it"
    )]
    Past(LetterId),
    /// The database rejected the values for another reason.
    #[error("the database rejected the values for the inbox: {why}")]
    Refused {
        /// The database's message.
        why: String,
    },
}

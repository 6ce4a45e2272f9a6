//! The inbox: how consumers take each event in once, in the order of its aggregate.
//!
//! A consumer is a name, as `billing`: whoever takes events in under the same name shares what it has taken in. The inbox lies
//! in the consumer's own database, so that an event is taken in exactly when what it brought about is committed.

mod consumer;
mod error;
pub mod listing;

use serde::{Deserialize, Serialize};

pub use consumer::{Consumer, GAP_WAIT_DEFAULT, GapPolicy, PARKED_MAX_DEFAULT, PARKED_MAX_LIMIT};
pub use error::InvalidInbox;

use crate::event::Aggregate;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX, check_name};

/// What becomes of an event that reached a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Received {
    /// It is the next one: do what it wants, in the same transaction.
    Apply {
        /// Whether events that were kept may follow now: the caller takes them in, too, until there is none.
        more: bool,
    },
    /// It was taken in before: nothing is to be done.
    Duplicate,
    /// One before it is missing. It is kept until that comes: nothing is to be done now.
    Parked {
        /// Whether kept events may follow all the same, since a gap was given up.
        more: bool,
    },
    /// The consumer went on without it. It is kept among the dead letters, for a person.
    Late,
}

impl Received {
    /// Whether kept events may follow now.
    #[must_use]
    pub const fn more(self) -> bool {
        matches!(self, Self::Apply { more: true } | Self::Parked { more: true })
    }
}

/// Where an event stands to what its consumer has taken in of the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the next one.
    Next,
    /// It is behind.
    Behind,
    /// One before it is missing.
    Ahead,
}

impl Place {
    /// The place of the event with this sequence when `last` was the last one; `None`: the consumer saw none of the aggregate yet.
    #[must_use]
    pub const fn of(sequence: i64, last: Option<i64>, begins_anywhere: bool) -> Self {
        match last {
            None if begins_anywhere || sequence == 1 => Self::Next,
            None => Self::Ahead,
            Some(last) if sequence <= last => Self::Behind,
            Some(last) if sequence - 1 == last => Self::Next,
            Some(_) => Self::Ahead,
        }
    }
}

/// Checks what a call says of a consumer and a place among the events of an aggregate.
///
/// # Errors
/// [`InvalidInbox`] says what is wrong.
pub fn check_call(consumer: &str, sequence: i64) -> Result<(), InvalidInbox> {
    check_name("name of the consumer", consumer, NAME_BYTES_MAX).map_err(InvalidInbox::Name)?;
    if sequence < 1 { Err(InvalidInbox::Sequence(sequence)) } else { Ok(()) }
}

/// Checks what a call says of a consumer and the event of an aggregate that it is to begin with.
///
/// # Errors
/// [`InvalidInbox`] says what is wrong.
pub fn check_expected(consumer: &str, aggregate: &Aggregate, sequence: i64) -> Result<(), InvalidInbox> {
    check_call(consumer, sequence)?;
    let name = |field, value, bytes_max| check_name(field, value, bytes_max).map_err(InvalidInbox::Name);
    name("type of the aggregate", &aggregate.kind, NAME_BYTES_MAX)?;
    name("id of the aggregate", &aggregate.id, KEY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_next_behind_or_ahead() {
        assert_eq!(Place::of(1, None, false), Place::Next);
        assert_eq!(Place::of(2, None, false), Place::Ahead);
        assert_eq!(Place::of(7, None, true), Place::Next);
        assert_eq!(Place::of(8, Some(7), false), Place::Next);
        assert_eq!(Place::of(7, Some(7), true), Place::Behind);
        assert_eq!(Place::of(9, Some(7), true), Place::Ahead);
        assert_eq!(Place::of(i64::MAX, Some(i64::MAX), false), Place::Behind);
    }

    #[test]
    fn a_consumer_without_a_name_and_a_sequence_before_the_first_are_refused() {
        assert!(check_call("", 1).unwrap_err().to_string().contains("name of the consumer"));
        assert!(check_call("billing", 0).unwrap_err().to_string().contains("the sequence 0"));
        assert_eq!(check_call("billing", 1), Ok(()));
    }
}

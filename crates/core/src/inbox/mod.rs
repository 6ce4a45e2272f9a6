//! The inbox: consumers process each event once and in the order of its aggregate.
//!
//! A consumer is a name, such as `billing`; all processes with the same consumer name share its state. The inbox is in the
//! consumer's own database, so that an event is recorded as processed exactly when its effects are committed.

mod consumer;
mod error;
pub mod listing;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use consumer::{Consumer, GAP_WAIT_DEFAULT, GapPolicy, PARKED_MAX_DEFAULT, PARKED_MAX_LIMIT};
pub use error::InvalidInbox;

use crate::event::{Aggregate, Event, SEQUENCE_MAX};
use crate::ident::EventId;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX, check_key, check_name};
use crate::json::check_payload;

/// The maximum size of the payload of a received event, in bytes.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The maximum total size of the header names and values of a received event, in bytes. Brokers add headers to those it was emitted with.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;

/// What a consumer must do with a received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Received {
    /// It is the next one: process it in the same transaction.
    Apply {
        /// Whether parked events may follow now. The caller processes them too, until none is left.
        more: bool,
    },
    /// It was processed before: do nothing.
    Duplicate,
    /// An event before it is missing. It is parked until that one arrives: do nothing now.
    Parked {
        /// Whether parked events may follow nevertheless, because a gap was skipped.
        more: bool,
    },
    /// The consumer has already continued without it, or another event has its sequence. It is kept as a dead letter for an operator.
    Late,
}

impl Received {
    /// Returns whether parked events may follow now.
    #[must_use]
    pub const fn more(self) -> bool {
        matches!(self, Self::Apply { more: true } | Self::Parked { more: true })
    }
}

/// The position of an event relative to the last one that its consumer has processed of the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    /// It is the next one.
    Next,
    /// It is not after the last one.
    Behind,
    /// An event before it is missing.
    Ahead,
}

impl SequencePosition {
    /// Returns the position of the event with this sequence, where `last` is the last processed sequence; `None`: the consumer has
    /// not processed any event of the aggregate.
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

/// How much the clocks of a log of events and of an inbox may differ.
const CLOCKS_DIFFER_MAX: SignedDuration = SignedDuration::from_secs(10);
/// Why an event is a dead letter: its consumer skipped it.
pub const SEQUENCE_PASSED: &str = "it arrived after its consumer had passed its sequence";
/// Another event had its sequence.
pub const SEQUENCE_USED: &str = "another event with its sequence was processed before; perhaps its log was restored to an earlier time, or a clock is wrong";
/// Another event has its sequence.
pub const SEQUENCE_PROCESSED: &str = "another event with its sequence was processed";
/// Another event with its sequence waits for an earlier one.
pub const SEQUENCE_WAITS: &str = "another event with its sequence waits";

/// The event that waited with its sequence was dropped, so that this one can follow.
pub const SEQUENCE_FREED: &str = "the event that waited with its sequence was dropped";

/// The last event of an aggregate that a consumer has processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastEvent {
    /// Its sequence; 0 before the first one.
    pub sequence: i64,
    /// When it was processed, if that is known.
    pub applied_at: Option<Timestamp>,
    /// Its id, if that is known.
    pub id: Option<EventId>,
}

impl LastEvent {
    /// Returns whether an event with a sequence up to this one is another one than the event that was processed with that sequence. Ids of
    /// earlier events are not kept, but an event that was emitted after this one was processed cannot be one of them.
    #[must_use]
    pub fn is_before_another(&self, event: &Event) -> bool {
        if event.sequence == self.sequence && self.id.is_some() {
            return self.id != Some(event.id);
        }
        self.applied_at.is_some_and(|at| event.emitted_at.duration_since(at) > CLOCKS_DIFFER_MAX)
    }
}

/// Checks the name of a consumer.
///
/// # Errors
/// [`InvalidInbox::Name`].
pub fn check_consumer(consumer: &str) -> Result<(), InvalidInbox> {
    check_name("name of the consumer", consumer, NAME_BYTES_MAX).map_err(InvalidInbox::Name)
}

/// Checks the consumer, the aggregate and the sequence of a call.
///
/// # Errors
/// [`InvalidInbox::Name`] or [`InvalidInbox::Sequence`].
pub fn check_position(consumer: &str, aggregate: &Aggregate, sequence: i64) -> Result<(), InvalidInbox> {
    check_consumer(consumer)?;
    check_name("type of the aggregate", &aggregate.kind, NAME_BYTES_MAX)
        .and_then(|()| check_key("id of the aggregate", &aggregate.id, KEY_BYTES_MAX))
        .map_err(InvalidInbox::Name)?;
    if (1..=SEQUENCE_MAX).contains(&sequence) { Ok(()) } else { Err(InvalidInbox::Sequence(sequence)) }
}

/// Checks an event that a consumer receives.
///
/// # Errors
/// [`InvalidInbox::Name`], [`InvalidInbox::Sequence`], [`InvalidInbox::Payload`] or [`InvalidInbox::Headers`].
pub fn check_received(consumer: &str, event: &Event) -> Result<(), InvalidInbox> {
    check_position(consumer, &event.aggregate, event.sequence)?;
    check_name("type of the event", &event.event_type, NAME_BYTES_MAX).map_err(InvalidInbox::Name)?;
    let header_bytes = event.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if header_bytes > HEADER_BYTES_MAX {
        return Err(InvalidInbox::Headers(header_bytes));
    }
    check_payload(event.payload.get(), EVENT_BYTES_MAX).map_err(InvalidInbox::Payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_next_behind_or_ahead() {
        assert_eq!(SequencePosition::of(1, None, false), SequencePosition::Next);
        assert_eq!(SequencePosition::of(2, None, false), SequencePosition::Ahead);
        assert_eq!(SequencePosition::of(7, None, true), SequencePosition::Next);
        assert_eq!(SequencePosition::of(8, Some(7), false), SequencePosition::Next);
        assert_eq!(SequencePosition::of(7, Some(7), true), SequencePosition::Behind);
        assert_eq!(SequencePosition::of(9, Some(7), true), SequencePosition::Ahead);
        assert_eq!(SequencePosition::of(i64::MAX, Some(i64::MAX), false), SequencePosition::Behind);
    }

    #[test]
    fn a_consumer_without_a_name_and_a_sequence_before_the_first_are_refused() {
        let order = Aggregate::new("order", "17");
        assert!(check_consumer("").unwrap_err().to_string().contains("name of the consumer"));
        for wrong in [0, SEQUENCE_MAX + 1, i64::MAX] {
            let refused = check_position("billing", &order, wrong).unwrap_err();
            assert_eq!(refused, InvalidInbox::Sequence(wrong));
        }
        for right in [1, SEQUENCE_MAX] {
            assert_eq!(check_position("billing", &order, right), Ok(()));
        }
    }
}

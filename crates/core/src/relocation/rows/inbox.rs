//! Rows of inboxes.

use jiff::Timestamp;

use super::{Position, Row};
use crate::event::{Aggregate, Event};
use crate::ident::EventId;
use crate::inbox::Consumer;
use crate::inbox::listing::DeadLetter;

impl Row for Consumer {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The id of an event that a consumer has processed.
#[derive(Clone, Debug)]
pub struct ProcessedEvent {
    /// The consumer.
    pub consumer: String,
    /// The event.
    pub event: EventId,
    /// The time.
    pub at: Timestamp,
}

impl Row for ProcessedEvent {
    fn position(&self) -> Position {
        Position::Taken(self.consumer.clone(), self.event)
    }
}

/// The position of a consumer in an aggregate.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The consumer.
    pub consumer: String,
    /// The aggregate.
    pub aggregate: Aggregate,
    /// The sequence of the last processed event.
    pub last: i64,
    /// The number of parked events.
    pub parked: i32,
    /// The number of dead letters that could still be processed.
    pub dead: i32,
    /// Whether the next event may be among these.
    pub ready: bool,
    /// The deadline of the gap.
    pub gives_up_at: Option<Timestamp>,
}

impl Row for Checkpoint {
    fn position(&self) -> Position {
        Position::Seat(self.consumer.clone(), self.aggregate.kind.clone(), self.aggregate.id.clone())
    }
}

/// An event that arrived before its predecessor.
#[derive(Clone, Debug)]
pub struct ParkedEvent {
    /// Its position.
    pub pos: i64,
    /// The consumer.
    pub consumer: String,
    /// The event.
    pub event: Event,
    /// When it was parked.
    pub parked_at: Timestamp,
}

impl Row for ParkedEvent {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.event.payload.get().len()
    }
}

impl Row for DeadLetter {
    fn position(&self) -> Position {
        Position::Number(self.id.0)
    }

    fn bytes(&self) -> usize {
        self.event.as_ref().map_or(0, |event| event.payload.get().len())
    }
}

/// The number of duplicates that a consumer has detected.
#[derive(Clone, Debug)]
pub struct InboxTally {
    /// The consumer.
    pub consumer: String,
    /// The number.
    pub duplicates: i64,
}

impl Row for InboxTally {
    fn position(&self) -> Position {
        Position::Name(self.consumer.clone())
    }
}

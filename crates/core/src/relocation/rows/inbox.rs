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

/// An event that a consumer took in by its id.
#[derive(Clone, Debug)]
pub struct ProcessedEvent {
    /// Who.
    pub consumer: String,
    /// Which.
    pub event: EventId,
    /// When.
    pub at: Timestamp,
}

impl Row for ProcessedEvent {
    fn position(&self) -> Position {
        Position::Taken(self.consumer.clone(), self.event)
    }
}

/// How far a consumer is in an aggregate.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Who.
    pub consumer: String,
    /// In which aggregate.
    pub aggregate: Aggregate,
    /// The last event that was taken in.
    pub last: i64,
    /// How many wait.
    pub parked: i32,
    /// How many given up ones could still follow.
    pub dead: i32,
    /// Whether the next one may be among them.
    pub ready: bool,
    /// When they are given up that wait.
    pub gives_up_at: Option<Timestamp>,
}

impl Row for Checkpoint {
    fn position(&self) -> Position {
        Position::Seat(self.consumer.clone(), self.aggregate.kind.clone(), self.aggregate.id.clone())
    }
}

/// An event that came too early.
#[derive(Clone, Debug)]
pub struct ParkedEvent {
    /// Its place.
    pub pos: i64,
    /// Who keeps it.
    pub consumer: String,
    /// The event.
    pub event: Event,
    /// Since when.
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

/// How many duplicates of a consumer were caught.
#[derive(Clone, Debug)]
pub struct InboxTally {
    /// Whose.
    pub consumer: String,
    /// How many.
    pub duplicates: i64,
}

impl Row for InboxTally {
    fn position(&self) -> Position {
        Position::Name(self.consumer.clone())
    }
}

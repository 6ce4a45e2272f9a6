//! Rows of subscriptions. Who publishes for them is not carried: nobody does while a store moves.

use jiff::Timestamp;

use super::{Position, Row};
use crate::event::Aggregate;
use crate::ident::EventId;

/// How far a subscription is, in a log that is one slot.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// Whether it is paused.
    pub paused: Option<Pause>,
    /// All up to there has its answer.
    pub pos: i64,
    /// When that was last written down.
    pub advanced_at: Option<Timestamp>,
    /// The token under which it was last held.
    pub token: i64,
}

/// Why a subscription stands still.
#[derive(Clone, Debug)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

impl Row for Subscription {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// An aggregate of which an event failed.
#[derive(Clone, Debug)]
pub struct ParkedAggregate {
    /// For whom.
    pub subscription: String,
    /// Which.
    pub aggregate: Aggregate,
    /// Since when.
    pub parked_at: Timestamp,
    /// How many attempts its first event has had.
    pub deliveries: i32,
    /// When that is tried again; `None`: it waits for a person.
    pub next_delivery_at: Option<Timestamp>,
    /// What the sink said.
    pub why: String,
}

impl Row for ParkedAggregate {
    fn position(&self) -> Position {
        Position::Seat(self.subscription.clone(), self.aggregate.kind.clone(), self.aggregate.id.clone())
    }

    fn bytes(&self) -> usize {
        self.why.len()
    }
}

/// An event of such an aggregate.
#[derive(Clone, Debug)]
pub struct HeldEvent {
    /// For whom.
    pub subscription: String,
    /// Of which aggregate.
    pub aggregate: Aggregate,
    /// Its place in the log.
    pub pos: i64,
    /// Which event.
    pub event: EventId,
    /// What is published instead of its payload, JSON.
    pub edited: Option<String>,
}

impl Row for HeldEvent {
    fn position(&self) -> Position {
        let Aggregate { kind, id } = &self.aggregate;
        Position::Held(self.subscription.clone(), kind.clone(), id.clone(), self.pos)
    }

    fn bytes(&self) -> usize {
        self.edited.as_ref().map_or(0, String::len)
    }
}

/// An event that was given up.
#[derive(Clone, Debug)]
pub struct DeadEvent {
    /// By whom.
    pub subscription: String,
    /// Which event.
    pub event: EventId,
    /// Its place in the log.
    pub pos: i64,
    /// When.
    pub dead_at: Timestamp,
    /// How many attempts it had.
    pub deliveries: i32,
    /// What the sink said.
    pub why: String,
    /// Whether it was passed over because somebody wanted that.
    pub skipped: bool,
    /// What was to be published instead of its payload, JSON.
    pub edited: Option<String>,
}

impl Row for DeadEvent {
    fn position(&self) -> Position {
        Position::Taken(self.subscription.clone(), self.event)
    }

    fn bytes(&self) -> usize {
        self.why.len() + self.edited.as_ref().map_or(0, String::len)
    }
}

/// A kind of jobs or a DAG whose changes a subscription wants.
#[derive(Clone, Debug)]
pub struct ChangeSource {
    /// `kind` or `dag`.
    pub what: String,
    /// Its name.
    pub name: String,
    /// Who wants them.
    pub subscription: String,
}

impl Row for ChangeSource {
    fn position(&self) -> Position {
        Position::Seat(self.what.clone(), self.name.clone(), self.subscription.clone())
    }
}

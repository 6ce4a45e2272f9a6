//! Rows of subscriptions. Publishers are not transferred: none is active during a move.

use jiff::Timestamp;
use uuid::Uuid;

use super::{Position, Row};
use crate::event::Aggregate;
use crate::ident::EventId;

/// The position of a subscription, in a log with a single slot.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub made_at: Timestamp,
    /// The pause, if it is paused.
    pub paused: Option<Pause>,
    /// The position up to which all events have been handled.
    pub pos: i64,
    /// When the position was last written.
    pub advanced_at: Option<Timestamp>,
    /// The token under which it was last held.
    pub token: i64,
}

/// The pause of a subscription.
#[derive(Clone, Debug)]
pub struct Pause {
    /// When it began.
    pub at: Timestamp,
    /// The reason.
    pub why: String,
}

impl Row for Subscription {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// An aggregate with a failed event.
#[derive(Clone, Debug)]
pub struct ParkedAggregate {
    /// The subscription.
    pub subscription: String,
    /// The aggregate.
    pub aggregate: Aggregate,
    /// When it was parked.
    pub parked_at: Timestamp,
    /// The number of attempts of its first event so far.
    pub deliveries: i32,
    /// When the first event is retried; `None` when it waits for an operator.
    pub next_delivery_at: Option<Timestamp>,
    /// The sink's error message.
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

/// An event of a parked aggregate.
#[derive(Clone, Debug)]
pub struct HeldEvent {
    /// The subscription.
    pub subscription: String,
    /// The aggregate.
    pub aggregate: Aggregate,
    /// Its position in the log.
    pub pos: i64,
    /// The event.
    pub event: EventId,
    /// The payload that is published instead of the original one, JSON.
    pub edited: Option<String>,
    /// Whether an operator publishes it again.
    pub replayed: bool,
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

/// A dead letter of a subscription.
#[derive(Clone, Debug)]
pub struct DeadEvent {
    /// The subscription.
    pub subscription: String,
    /// The event.
    pub event: EventId,
    /// Its position in the log.
    pub pos: i64,
    /// When it became a dead letter.
    pub dead_at: Timestamp,
    /// The number of attempts it had.
    pub deliveries: i32,
    /// The sink's error message.
    pub why: String,
    /// Whether it was skipped, by an operator or by the subscription's policy.
    pub skipped: bool,
    /// The payload that was to be published instead of the original one, JSON.
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

/// An event that has started work.
#[derive(Clone, Debug)]
pub struct EventWork {
    /// The event.
    pub event: EventId,
    /// The subscription.
    pub subscription: String,
    /// What it started: `job`, `batch` or `signal`.
    pub work: String,
    /// The job or the batch.
    pub work_id: Uuid,
    /// When it started.
    pub started_at: Timestamp,
}

impl Row for EventWork {
    fn position(&self) -> Position {
        Position::Taken(self.subscription.clone(), self.event)
    }
}

/// A kind or a DAG whose state changes a subscription receives.
#[derive(Clone, Debug)]
pub struct ChangeSource {
    /// `kind` or `dag`.
    pub what: String,
    /// Its name.
    pub name: String,
    /// The subscription.
    pub subscription: String,
}

impl Row for ChangeSource {
    fn position(&self) -> Position {
        Position::Seat(self.what.clone(), self.name.clone(), self.subscription.clone())
    }
}

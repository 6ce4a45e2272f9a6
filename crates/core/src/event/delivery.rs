//! How the log is handed to publishers, and what they say became of it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Aggregate, Event, SubscriptionFilter, Undelivered};
use crate::ident::{EventId, PublisherId};

/// Who publishes for a subscription: one loop in one process incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Its id.
    pub id: PublisherId,
    /// What it is called for people, as `host:4711`.
    pub label: String,
    /// The subscription's name.
    pub subscription: String,
    /// Which events that has.
    pub filter: SubscriptionFilter,
    /// How long it may be silent before others take its slots.
    pub lease: Duration,
}

/// Where in the log a subscription begins that is seen for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// With the oldest event that is there.
    #[default]
    Beginning,
    /// With what is committed from now on.
    Now,
}

/// What a publisher holds after it has [looked around](crate::port::LogReader::balance).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// How many slots it holds now.
    pub slots: usize,
    /// How many of them it took from a publisher whose lease had run out.
    pub taken_over: usize,
    /// Aggregates of slots that are new to it which are parked: nothing of them may go out but by way of
    /// [`due`](crate::port::RelayStore::due).
    pub parked: Vec<Aggregate>,
    /// Why the subscription is paused, if it is; then nothing is held.
    pub paused: Option<String>,
}

/// How much is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// At most about this many events; one of each slot at least.
    pub events_max: usize,
    /// At most about this many bytes of payloads, as they are stored; one event of each slot at least.
    pub bytes_max: usize,
}

/// The next events of the slots that a publisher holds.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// In the order of each aggregate.
    pub events: Vec<Event>,
    /// Whether there is more of the log to be read at once.
    pub more: bool,
    /// What else was gone past.
    pub left_out: LeftOut,
}

/// Events that the filter of a subscription leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many.
    pub events: u64,
    /// The types of some of them, of the aggregate and of the event.
    pub types: BTreeSet<(String, String)>,
}

impl LeftOut {
    /// Of so many types the names are kept.
    pub const TYPES_MAX: usize = 10;

    /// One more event of these types.
    pub fn add(&mut self, aggregate_type: &str, event_type: &str) {
        self.events += 1;
        let known = self
            .types
            .iter()
            .any(|(aggregate, event)| (&**aggregate, &**event) == (aggregate_type, event_type));
        if !known && self.types.len() < Self::TYPES_MAX {
            self.types.insert((aggregate_type.to_owned(), event_type.to_owned()));
        }
    }

    /// These, too.
    pub fn join(&mut self, others: Self) {
        self.events += others.events;
        let room = Self::TYPES_MAX.saturating_sub(self.types.len());
        let new: Vec<_> = others.types.difference(&self.types).take(room).cloned().collect();
        self.types.extend(new);
    }
}

/// What became of a page, but for what was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events that were not delivered and will not be tried again in this page.
    pub failures: Vec<Failure>,
    /// Events whose aggregates are parked: they wait behind.
    pub behind: Vec<EventId>,
    /// Events that nobody tried: they come again.
    pub untried: Vec<EventId>,
}

/// An event that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which one.
    pub event: EventId,
    /// How many attempts it has had.
    pub deliveries: u32,
    /// What the sink said, shortened.
    pub why: String,
    /// What becomes of it.
    pub then: Undelivered,
}

/// Parked events whose time has come.
#[derive(Clone, Debug, Default)]
pub struct DueEvents {
    /// By aggregate.
    pub aggregates: Vec<DueAggregate>,
    /// When nothing is due: how soon something will be.
    pub next_in: Option<Duration>,
}

/// The first events of a parked aggregate.
#[derive(Clone, Debug)]
pub struct DueAggregate {
    /// Which one.
    pub aggregate: Aggregate,
    /// Its slot.
    pub slot: i16,
    /// The token under which that is held.
    pub token: i64,
    /// How many attempts the first event has had.
    pub deliveries: u32,
    /// In order; at least one.
    pub events: Vec<Event>,
}

/// What became of the events of a parked aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retried {
    /// Which one.
    pub aggregate: Aggregate,
    /// Its slot.
    pub slot: i16,
    /// The token under which that was held.
    pub token: i64,
    /// Events that were delivered.
    pub delivered: Vec<EventId>,
    /// Events that were not: those that are given up, and at last perhaps one that is tried again or waits for a person.
    pub failures: Vec<Failure>,
}

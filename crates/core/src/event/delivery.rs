//! Delivery of the log to publishers, and the results that publishers report.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::{Aggregate, Event, SubscriptionFilter, Undelivered};
use crate::ident::{EventId, PublisherId};

/// A publisher: one loop in one process incarnation that publishes for one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Its id.
    pub id: PublisherId,
    /// A label for operators, such as `host:4711`.
    pub label: String,
    /// The subscription's name.
    pub subscription: String,
    /// The subscription's filter.
    pub filter: SubscriptionFilter,
    /// How long it may be silent before other publishers take over its slots.
    pub lease: Duration,
}

/// The position at which a new subscription starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// The oldest event in the log.
    #[default]
    Beginning,
    /// Events that are committed from now on.
    Now,
}

impl Begin {
    /// Returns its name in settings and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Beginning => "beginning",
            Self::Now => "now",
        }
    }
}

/// The slots of a publisher after [`balance`](crate::port::LogReader::balance).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// The number of slots it holds.
    pub slots: usize,
    /// The number of these that it took over from a publisher whose lease had expired.
    pub taken_over: usize,
    /// Parked aggregates in slots that it has just acquired. Their events may be published only through
    /// [`due`](crate::port::RelayStore::due).
    pub parked: Vec<Aggregate>,
    /// The reason for the pause if the subscription is paused; no slots are held then.
    pub paused: Option<String>,
}

/// The size of a page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// The approximate maximum number of events; at least one event per slot is read.
    pub events_max: usize,
    /// The approximate maximum size of the stored payloads, in bytes; at least one event per slot is read.
    pub bytes_max: usize,
}

/// The next events of the slots that a publisher holds.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The events; those of one aggregate are in order.
    pub events: Vec<Event>,
    /// Whether the next page can be read immediately.
    pub more: bool,
    /// The events in this range that the filter excludes.
    pub left_out: LeftOut,
}

/// Events that the filter of a subscription excludes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of events.
    pub events: u64,
    /// Aggregate type and event type of some of them.
    pub types: BTreeSet<(String, String)>,
}

impl LeftOut {
    /// The maximum number of stored type pairs.
    pub const TYPES_MAX: usize = 10;

    /// Adds an event of these types.
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

    /// Adds the events of another value.
    pub fn join(&mut self, others: Self) {
        self.events += others.events;
        let room = Self::TYPES_MAX.saturating_sub(self.types.len());
        let new: Vec<_> = others.types.difference(&self.types).take(room).cloned().collect();
        self.types.extend(new);
    }
}

/// The results of a page, except successful deliveries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events that were not delivered and will not be retried within this page.
    pub failures: Vec<Failure>,
    /// Events of parked aggregates, which are parked behind the failed event.
    pub behind: Vec<EventId>,
    /// Events without an attempt, which will be read again.
    pub untried: Vec<EventId>,
}

/// An event that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The event.
    pub event: EventId,
    /// The number of attempts so far.
    pub deliveries: u32,
    /// The sink's error message, shortened.
    pub why: String,
    /// What happens to the event next.
    pub then: Undelivered,
}

/// Parked events that are due for a retry.
#[derive(Clone, Debug, Default)]
pub struct DueEvents {
    /// The events, by aggregate.
    pub aggregates: Vec<DueAggregate>,
    /// The time until the next retry, when nothing is due.
    pub next_in: Option<Duration>,
}

/// The first events of a parked aggregate.
#[derive(Clone, Debug)]
pub struct DueAggregate {
    /// The aggregate.
    pub aggregate: Aggregate,
    /// Its slot.
    pub slot: i16,
    /// The token under which the slot is held.
    pub token: i64,
    /// The number of attempts of the first event so far.
    pub deliveries: u32,
    /// Since when it was due.
    pub due_at: Timestamp,
    /// The events in order; at least one.
    pub events: Vec<Event>,
    /// Those of them that an operator publishes again. They are sent only if the subscription selects them; for the others, that was decided
    /// when they were read.
    pub replayed: Vec<EventId>,
}

/// The results of a parked aggregate's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retried {
    /// The aggregate.
    pub aggregate: Aggregate,
    /// Its slot.
    pub slot: i16,
    /// The token under which the slot was held.
    pub token: i64,
    /// Since when it was due when its events were read. If it is due at another time by now, an operator has changed it: failures then do not
    /// count, and an event with a new payload is sent again.
    pub due_at: Timestamp,
    /// Events that were delivered.
    pub delivered: Vec<EventId>,
    /// Undelivered events: those that became dead letters or were skipped; the last one may be an event that is retried or halted.
    pub failures: Vec<Failure>,
}

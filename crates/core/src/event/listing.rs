//! The log as people read it.

use jiff::Timestamp;
use serde::Serialize;

use super::{Aggregate, Event};
use crate::ident::EventId;

/// Which events to list.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only of this aggregate.
    pub aggregate: Option<Aggregate>,
    /// Only of this type.
    pub event_type: Option<String>,
    /// Which part of the log.
    pub page: EventPage,
    /// At most this many.
    pub limit: u32,
}

/// A page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPage {
    /// Newest first: those before this position, the last of the page before; `None`: from the newest on.
    Before(Option<i64>),
    /// Oldest first: those after this position.
    After(i64),
}

impl Default for EventPage {
    fn default() -> Self {
        Self::Before(None)
    }
}

/// An event with its place in the log.
///
/// Positions are given out when events are emitted and seen when these are committed: of different aggregates a lower one
/// may come into sight later. Within one aggregate they rise with the sequence.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoggedEvent {
    /// Its position.
    pub pos: i64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Where an aggregate stands in a list in the order of time: the last of a page, after which the next one goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatePlace {
    /// The time by which it stands there.
    pub at: Timestamp,
    /// Whose it is there: a consumer, or a subscription.
    pub of: String,
    /// The aggregate.
    pub aggregate: Aggregate,
}

/// Where an event that a subscription gave up stands in the list of these: the last of a page, before which the next one goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadPlace {
    /// When it was given up.
    pub at: Timestamp,
    /// The event.
    pub event: EventId,
    /// The subscription.
    pub subscription: String,
}

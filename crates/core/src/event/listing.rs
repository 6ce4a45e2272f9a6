//! Listings of the event log.

use jiff::Timestamp;
use serde::Serialize;

use super::{Aggregate, Event};
use crate::ident::EventId;

/// A filter for events.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Only of this aggregate.
    pub aggregate: Option<Aggregate>,
    /// Only of this type.
    pub event_type: Option<String>,
    /// The part of the log.
    pub page: EventPage,
    /// The maximum number of results.
    pub limit: u32,
}

/// A page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPage {
    /// Newest first: events before this position, which is the last one of the previous page; `None`: from the newest event on.
    Before(Option<i64>),
    /// Oldest first: events after this position.
    After(i64),
}

impl Default for EventPage {
    fn default() -> Self {
        Self::Before(None)
    }
}

/// An event with its position in the log.
///
/// Positions are assigned when events are emitted, but events become visible when they are committed: an event of another
/// aggregate with a lower position may become visible later. Within one aggregate, positions rise with the sequence.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LoggedEvent {
    /// Its position.
    pub pos: i64,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The position of an aggregate in a list that is ordered by time: the last entry of a page, after which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggregatePlace {
    /// The time by which the list is ordered.
    pub at: Timestamp,
    /// The consumer or subscription that the entry belongs to.
    pub of: String,
    /// The aggregate.
    pub aggregate: Aggregate,
}

/// The position of a dead letter in the list of a store's dead letters: the last entry of a page, before which the next page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadPlace {
    /// When it became a dead letter.
    pub at: Timestamp,
    /// The event.
    pub event: EventId,
    /// The subscription.
    pub subscription: String,
}

//! The log as people read it.

use serde::Serialize;

use super::{Aggregate, Event};

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

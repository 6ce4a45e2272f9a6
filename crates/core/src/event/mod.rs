//! Events: facts about aggregates, written in the transaction of the change they tell of.
//!
//! An aggregate's events are numbered 1, 2, 3, … ([`sequence`](Event::sequence)); everything that is promised of order is
//! promised within one aggregate.

mod change;
mod delivery;
mod error;
pub mod listing;
mod new_event;
pub mod relay_listing;
mod subscription;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use change::{Changes, RESERVED};
pub use delivery::{
    Begin, DueAggregate, DueEvents, Failure, Holding, LeftOut, Outcome, Page, PageSize, Publisher, Retried,
};
pub use error::{InvalidEvent, RelayError};
pub use new_event::NewEvent;
pub use subscription::{DELIVERIES_MAX_DEFAULT, Exhausted, Subscription, SubscriptionFilter, Undelivered};

use crate::ident::EventId;

/// Into how many slots aggregates are spread. A publisher owns slots; an aggregate stays in its own for ever.
pub const SLOTS: u16 = 64;
/// The highest sequence that a caller can give an event: there is always room for the events that follow it.
pub const SEQUENCE_MAX: i64 = 9_000_000_000_000_000_000;
/// The most headers of an event.
pub const HEADERS_MAX: usize = 50;
/// The most bytes that the names and values of an event's headers have together.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// What an event is about: an order, an account. Its events are in one order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Aggregate {
    /// What sort of thing it is, as `order`.
    #[serde(rename = "aggregate_type")]
    pub kind: String,
    /// Which one, as its owner names it.
    #[serde(rename = "aggregate_id")]
    pub id: String,
}

impl Aggregate {
    /// The aggregate of this sort with this name.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// An event of the log, as it is published.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Its id: the same in every message that carries it, however often it is published.
    #[serde(rename = "event_id")]
    pub id: EventId,
    /// What it is about.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// Its place among the events of the aggregate, from 1.
    #[serde(rename = "aggregate_seq")]
    pub sequence: i64,
    /// What happened, as `order.paid`.
    pub event_type: String,
    /// What is said of it, as JSON text.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// What goes along with it and is not part of it, as `traceparent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// When the transaction that wrote it began, on the store's clock.
    pub emitted_at: Timestamp,
}

/// What became of an [event that was emitted](NewEvent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emitted {
    /// Its place among the events of its aggregate.
    pub sequence: i64,
    /// Whether it was there before, with the same id and content; then nothing was changed.
    pub duplicate: bool,
}

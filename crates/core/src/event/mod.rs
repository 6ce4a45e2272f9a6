//! Events: facts about aggregates, written in the transaction of the change that they describe.
//!
//! The events of an aggregate are numbered 1, 2, 3, … ([`sequence`](Event::sequence)). All ordering guarantees apply within one aggregate.

mod change;
mod delivery;
mod error;
pub mod listing;
mod new_event;
pub mod relay_listing;
mod subscription;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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

/// The number of slots among which aggregates are distributed. Publishers own slots; the slot of an aggregate never changes.
pub const SLOTS: u16 = 64;
/// The highest sequence of an event. Consumers refuse higher ones, too.
pub const SEQUENCE_MAX: i64 = 9_000_000_000_000_000_000;
/// The maximum number of headers of an event.
pub const HEADERS_MAX: usize = 50;
/// The maximum total size of an event's header names and values, in bytes.
pub const HEADER_BYTES_MAX: usize = 8 * 1024;

/// The subject of an event, such as an order or an account. Its events are ordered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Aggregate {
    /// Its type, such as `order`.
    #[serde(rename = "aggregate_type")]
    pub kind: String,
    /// Its id, assigned by the application.
    #[serde(rename = "aggregate_id")]
    pub id: String,
}

impl Aggregate {
    /// Creates an aggregate with this type and id.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

/// `TYPE/ID`. In the type, `/` is written as `%2F`, and `%` as `%25`, so that it has only one meaning.
impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.replace('%', "%25").replace('/', "%2F"), self.id)
    }
}

impl FromStr for Aggregate {
    type Err = String;

    /// Parses `TYPE/ID`, as it is displayed.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((kind, id)) if !kind.is_empty() && !id.is_empty() => {
                Ok(Self::new(kind.replace("%2F", "/").replace("%25", "%"), id))
            }
            _ => {
                Err("give an aggregate as TYPE/ID, such as order/17; write / in a type as %2F, and % as %25"
                    .to_owned())
            }
        }
    }
}

/// An event of the log, as it is published.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Its id: the same in every message of the event, however often it is published.
    #[serde(rename = "event_id")]
    pub id: EventId,
    /// The aggregate that it is about.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// Its sequence among the events of the aggregate, from 1.
    #[serde(rename = "aggregate_seq")]
    pub sequence: i64,
    /// Its type, such as `order.paid`.
    pub event_type: String,
    /// Its payload, as JSON text.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub payload: Box<RawValue>,
    /// Metadata that is not part of the payload, such as `traceparent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// When the transaction that wrote it began, on the store's clock.
    pub emitted_at: Timestamp,
}

/// The result of [emitting an event](NewEvent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Emitted {
    /// Its sequence within the aggregate.
    pub sequence: i64,
    /// Whether an event with the same id and content already existed; then nothing was changed.
    pub duplicate: bool,
}

/// The event that started a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StartedBy {
    /// The event.
    #[serde(rename = "event_id")]
    pub event: EventId,
    /// The subscription whose template made the job.
    pub subscription: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aggregate_is_parsed_as_it_is_displayed() {
        let parsed = |text: &str| text.parse::<Aggregate>();
        assert_eq!(parsed("order/17"), Ok(Aggregate::new("order", "17")));
        assert_eq!(parsed("file/a/b"), Ok(Aggregate::new("file", "a/b")));
        for kind in ["order", "a/b", "a%2Fb", "100%", "%25"] {
            let aggregate = Aggregate::new(kind, "c/d%");
            assert_eq!(parsed(&aggregate.to_string()), Ok(aggregate), "{kind}");
        }
        for text in ["order", "order/", "/17", ""] {
            assert!(parsed(text).is_err_and(|why| why.contains("order/17")), "{text}");
        }
    }
}

//! Listings of inboxes: consumers, gaps and dead letters.

use std::fmt;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Consumer;
use crate::event::listing::AggregatePlace;
use crate::event::{Aggregate, Event};
use crate::named::named_enum;

/// The id of a dead letter of a store's inboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct LetterId(pub i64);

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

named_enum! {
    /// The reason for a dead letter.
    DeadReason {
        /// An event after a missing one.
        Gap = "gap",
        /// Events that did not arrive; their consumer continued without them.
        NeverCame = "never_came",
        /// Such an event that arrived after all, or an event that its consumer was told to skip.
        Late = "late",
    }
}

/// A dead letter of an inbox.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// Its id.
    pub id: LetterId,
    /// The consumer.
    pub consumer: String,
    /// The aggregate.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// The first and the last sequence; both are that of the event, unless the events never arrived.
    #[serde(serialize_with = "ends")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<i64>, min_items = 2, max_items = 2))]
    pub sequences: RangeInclusive<i64>,
    /// The reason.
    pub reason: DeadReason,
    /// The reason as text.
    pub why: String,
    /// The event, if it arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// When it became a dead letter.
    pub dead_at: Timestamp,
}

fn ends<S: serde::Serializer>(range: &RangeInclusive<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    [range.start(), range.end()].serialize(serializer)
}

/// A filter for dead letters, newest first.
#[derive(Clone, Debug, Default)]
pub struct DeadFilter {
    /// Only of this consumer.
    pub consumer: Option<String>,
    /// Only those before this one, the last of the previous page.
    pub before: Option<LetterId>,
    /// The maximum number of results.
    pub limit: u32,
}

/// An aggregate whose events wait for a missing one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gap {
    /// The consumer.
    pub consumer: String,
    /// The aggregate.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// The sequence of the missing event.
    pub missing: i64,
    /// The number of waiting events.
    pub parked: u32,
    /// When the waiting events are abandoned.
    pub gives_up_at: Timestamp,
}

impl Gap {
    /// Returns its position in the list of gaps.
    #[must_use]
    pub fn place(&self) -> AggregatePlace {
        AggregatePlace { at: self.gives_up_at, of: self.consumer.clone(), aggregate: self.aggregate.clone() }
    }
}

/// A consumer and its inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsumerView {
    /// Its settings.
    #[serde(flatten)]
    pub consumer: Consumer,
    /// The number of aggregates of which it has processed events.
    pub aggregates: u64,
    /// The number of waiting events.
    pub parked: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of duplicates that were detected.
    pub duplicates: u64,
}

/// The result of a call that resolves expired gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GivenUp {
    /// The number of gaps.
    pub gaps: u64,
    /// The number of dead letters that resulted from them.
    pub letters: u64,
}

//! What operators see of inboxes.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Consumer;
use crate::event::listing::AggregatePlace;
use crate::event::{Aggregate, Event};
use crate::state::named_enum;

/// Names one dead letter of a store's inboxes.
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
    /// Why something is a dead letter.
    DeadReason {
        /// An event before which one is missing.
        Gap = "gap",
        /// Events that did not come; their consumer went on without them.
        NeverCame = "never_came",
        /// One of these, which came after all; or an event that its consumer was told to leave out.
        Late = "late",
    }
}

/// Something that an inbox gave up.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadLetter {
    /// Its id.
    pub id: LetterId,
    /// Whose.
    pub consumer: String,
    /// Of which aggregate.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// The sequence of the event; of events that never came: of the first and the last.
    #[serde(serialize_with = "ends")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<i64>, min_items = 2, max_items = 2))]
    pub sequences: RangeInclusive<i64>,
    /// Why.
    pub reason: DeadReason,
    /// Why, in words.
    pub why: String,
    /// The event, if it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
    /// Since when.
    pub dead_at: Timestamp,
}

fn ends<S: serde::Serializer>(range: &RangeInclusive<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    [range.start(), range.end()].serialize(serializer)
}

/// Which dead letters to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct DeadFilter {
    /// Only of this consumer.
    pub consumer: Option<String>,
    /// Those before this one, the last of the page before.
    pub before: Option<LetterId>,
    /// At most this many.
    pub limit: u32,
}

/// An aggregate of which events wait for one that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gap {
    /// Whose.
    pub consumer: String,
    /// Of which aggregate.
    #[serde(flatten)]
    pub aggregate: Aggregate,
    /// The sequence of the event that is missing.
    pub missing: i64,
    /// How many events wait.
    pub parked: u32,
    /// When they are given up.
    pub gives_up_at: Timestamp,
}

impl Gap {
    /// Where it stands among the gaps.
    #[must_use]
    pub fn place(&self) -> AggregatePlace {
        AggregatePlace { at: self.gives_up_at, of: self.consumer.clone(), aggregate: self.aggregate.clone() }
    }
}

/// A consumer and its inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsumerView {
    /// What it wants.
    #[serde(flatten)]
    pub consumer: Consumer,
    /// Of how many aggregates it takes events in.
    pub aggregates: u64,
    /// How many events wait.
    pub parked: u64,
    /// How many dead letters there are.
    pub dead: u64,
    /// How many duplicates were caught.
    pub duplicates: u64,
}

/// What a call gave up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GivenUp {
    /// How many gaps.
    pub gaps: u64,
    /// How many dead letters came of them.
    pub letters: u64,
}

//! Subscriptions as people see them: where they are, who publishes them, what is parked and what was given up.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::listing::{AggregatePlace, DeadPlace};
use super::{Aggregate, Event, RelayError};
use crate::error::InvalidJob;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_payload;

/// A subscription.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubscriptionView {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// Since when it is paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// Why.
    pub paused_why: Option<String>,
    /// How many events of the log it has not gone past yet, those among them that it does not want.
    pub backlog: i64,
    /// When the oldest of them was emitted.
    pub oldest_at: Option<Timestamp>,
    /// How many aggregates are parked.
    pub parked_aggregates: i64,
    /// How many of those wait for a person.
    pub halted_aggregates: i64,
    /// How many events were given up and wait for a person, those that were skipped not among them.
    pub dead: i64,
    /// What publishes it now.
    pub publishers: Vec<PublisherView>,
}

/// What publishes a subscription.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublisherView {
    /// What it is called.
    pub label: String,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// Until when it need not be heard of.
    pub lease_until: Timestamp,
    /// How many slots it holds.
    pub slots: i64,
    /// The highest token of these.
    pub token: Option<i64>,
    /// Since when it holds them; of several slots: on average.
    pub held_since: Option<Timestamp>,
    /// Since when its sink takes nothing, if it does not.
    pub down_since: Option<Timestamp>,
    /// What the sink said.
    pub down_why: Option<String>,
}

/// A parked aggregate.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedView {
    /// The subscription.
    pub subscription: String,
    /// Since when.
    pub parked_at: Timestamp,
    /// How many attempts its first event has had.
    pub deliveries: u32,
    /// When that is tried again; `None`: it waits for a person.
    pub next_delivery_at: Option<Timestamp>,
    /// What the sink said.
    pub why: String,
    /// How many of its events are parked.
    pub events: i64,
    /// The first of them, as it will be published.
    #[serde(flatten)]
    pub first: Event,
    /// Whether a person has edited that.
    pub edited: bool,
}

impl ParkedView {
    /// Where it stands among what is parked.
    #[must_use]
    pub fn place(&self) -> AggregatePlace {
        AggregatePlace {
            at: self.parked_at,
            of: self.subscription.clone(),
            aggregate: self.first.aggregate.clone(),
        }
    }
}

/// An event that was given up.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadView {
    /// The subscription.
    pub subscription: String,
    /// When.
    pub dead_at: Timestamp,
    /// How many attempts it has had.
    pub deliveries: u32,
    /// What the sink said last.
    pub why: String,
    /// Whether it was skipped: by the subscription's policy or by a person.
    pub skipped: bool,
    /// The event, as it was published last.
    #[serde(flatten)]
    pub event: Event,
}

impl DeadView {
    /// Where it stands among what was given up.
    #[must_use]
    pub fn place(&self) -> DeadPlace {
        DeadPlace { at: self.dead_at, event: self.event.id, subscription: self.subscription.clone() }
    }
}

/// What a person does with an event that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadVerb {
    /// It is published now, before whatever else of its aggregate is parked. Later events may have gone before it.
    Retry,
    /// It is forgotten.
    Drop,
}

/// What a person does with the first event of a parked aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParkedVerb {
    /// It is tried now, with all its attempts before it.
    Retry,
    /// It is kept as skipped, and the next one goes on.
    Skip,
    /// It is published with this payload, JSON text, from now on; and tried now.
    Edit(String),
}

impl ParkedVerb {
    /// To publish this payload instead.
    ///
    /// # Errors
    /// [`RelayError::Payload`] when it cannot be one.
    pub fn edit(payload: impl Into<String>) -> Result<Self, RelayError> {
        let payload = payload.into();
        check_payload(&payload, PAYLOAD_BYTES_MAX).map_err(RelayError::Payload)?;
        let not_json = |error: serde_json::Error| InvalidJob::NotJson { why: error.to_string() };
        serde_json::from_str::<&RawValue>(&payload).map_err(not_json).map_err(RelayError::Payload)?;
        Ok(Self::Edit(payload))
    }
}

/// Which events are published again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Those of an aggregate, from a sequence on.
    Aggregate {
        /// Which one.
        aggregate: Aggregate,
        /// From which sequence on.
        from: i64,
    },
    /// All that were emitted from then on, and a little before.
    Since(Timestamp),
}

//! Listings of subscriptions: backlog, publishers, parked aggregates and dead letters; and the operations on them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::listing::{AggregatePlace, DeadPlace};
use super::{Aggregate, Event, RelayError};
use crate::ident::EventId;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::job::error::InvalidJob;
use crate::json::check_payload;
use crate::named::named_enum;

/// A subscription.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubscriptionView {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub made_at: Timestamp,
    /// When it was paused, if it is paused.
    pub paused_at: Option<Timestamp>,
    /// The reason for the pause.
    pub paused_why: Option<String>,
    /// Whether its positions were stored in another database, for example because a dump was restored. Nothing is published until a reseed.
    pub reseed_needed: bool,
    /// The number of events in the log after its position, including those that it does not select.
    pub backlog: i64,
    /// When the oldest of these was emitted.
    pub oldest_at: Option<Timestamp>,
    /// The number of parked aggregates.
    pub parked_aggregates: i64,
    /// The number of parked aggregates that wait for an operator.
    pub halted_aggregates: i64,
    /// The error message of the sink for one of its parked aggregates: the oldest one that waits for an operator, else the oldest one.
    pub parked_why: Option<String>,
    /// The number of dead letters that wait for an operator, without skipped events.
    pub dead: i64,
    /// Its current publishers.
    pub publishers: Vec<PublisherView>,
}

impl SubscriptionView {
    /// Returns the first publisher whose sink is unavailable.
    #[must_use]
    pub fn down(&self) -> Option<&PublisherView> {
        self.publishers.iter().find(|publisher| self.is_down(publisher))
    }

    /// Returns whether the sink of a publisher is unavailable, as far as it knows: one without slots does not try it, unless none has any.
    #[must_use]
    pub fn is_down(&self, publisher: &PublisherView) -> bool {
        let tries = publisher.slots > 0 || self.publishers.iter().all(|other| other.slots == 0);
        tries && publisher.down_since.is_some()
    }

    /// Returns its state: whether events are published, and if not all are, why.
    #[must_use]
    pub fn state(&self) -> &'static str {
        let is_down = self.down().is_some();
        if self.reseed_needed {
            "halted"
        } else if self.paused_at.is_some() {
            "paused"
        } else if self.halted_aggregates > 0 {
            "halted"
        } else if is_down {
            "down"
        } else if self.publishers.is_empty() {
            "unserved"
        } else if self.parked_aggregates > 0 {
            "parked"
        } else {
            "ok"
        }
    }
}

/// A publisher of a subscription.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublisherView {
    /// Its name.
    pub label: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When its lease expires if it sends no heartbeat.
    pub lease_until: Timestamp,
    /// The number of slots that it holds.
    pub slots: i64,
    /// The highest token of these slots.
    pub token: Option<i64>,
    /// When it acquired them; the average for several slots.
    pub held_since: Option<Timestamp>,
    /// Since when its sink has been unavailable, if it is unavailable.
    pub down_since: Option<Timestamp>,
    /// The error message of the sink.
    pub down_why: Option<String>,
}

/// A parked aggregate.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParkedView {
    /// The subscription.
    pub subscription: String,
    /// When it was parked.
    pub parked_at: Timestamp,
    /// The number of attempts to deliver its first event.
    pub deliveries: u32,
    /// When this event is retried; none if it waits for an operator.
    pub next_delivery_at: Option<Timestamp>,
    /// The error message of the sink.
    pub why: String,
    /// The number of its parked events.
    pub events: i64,
    /// The first parked event, as it will be published.
    #[serde(flatten)]
    pub first: Event,
    /// Whether an operator has edited this event.
    pub edited: bool,
}

impl ParkedView {
    /// Returns its position in the list of parked aggregates.
    #[must_use]
    pub fn place(&self) -> AggregatePlace {
        AggregatePlace {
            at: self.parked_at,
            of: self.subscription.clone(),
            aggregate: self.first.aggregate.clone(),
        }
    }
}

/// A dead letter of a subscription.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DeadView {
    /// The subscription.
    pub subscription: String,
    /// When it became a dead letter.
    pub dead_at: Timestamp,
    /// The number of attempts to deliver it.
    pub deliveries: u32,
    /// The last error message of the sink.
    pub why: String,
    /// Whether it was skipped, by the subscription's policy or by an operator.
    pub skipped: bool,
    /// The event, as it was last published.
    #[serde(flatten)]
    pub event: Event,
}

impl DeadView {
    /// Returns its position in the list of dead letters.
    #[must_use]
    pub fn place(&self) -> DeadPlace {
        DeadPlace { at: self.dead_at, event: self.event.id, subscription: self.subscription.clone() }
    }
}

named_enum! {
    /// The state of an event in a subscription.
    DeliveryState {
        /// It has not been read yet.
        Waiting = "waiting",
        /// It, or an earlier event of its aggregate, failed, or it is published again.
        Parked = "parked",
        /// It is a dead letter.
        DeadLetter = "dead",
        /// The subscription's policy or an operator skipped it.
        Skipped = "skipped",
        /// It was published, or left out by the subscription's filter.
        Passed = "passed",
    }
}

/// The state of an event in a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event: EventId,
    /// The subscription.
    pub subscription: String,
    /// The state.
    pub state: DeliveryState,
}

/// An operator's action on a dead letter of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadVerb {
    /// Publishes the event now, before the parked events of its aggregate. Later events may already have been published.
    Retry,
    /// Deletes the event.
    Drop,
}

/// An operator's action on the first event of a parked aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParkedVerb {
    /// Retries it now, with its full number of attempts.
    Retry,
    /// Records it as skipped and continues with the next event.
    Skip,
    /// Replaces its payload with this JSON text, and retries it now.
    Edit(String),
}

impl ParkedVerb {
    /// Creates an edit that publishes this payload instead.
    ///
    /// # Errors
    /// [`RelayError::Payload`] when the payload is invalid.
    pub fn edit(payload: impl Into<String>) -> Result<Self, RelayError> {
        let payload = payload.into();
        check_payload(&payload, PAYLOAD_BYTES_MAX).map_err(RelayError::Payload)?;
        let not_json = |error: serde_json::Error| InvalidJob::NotJson { why: error.to_string() };
        serde_json::from_str::<&RawValue>(&payload).map_err(not_json).map_err(RelayError::Payload)?;
        Ok(Self::Edit(payload))
    }
}

/// The events to publish again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The events of an aggregate, from a sequence on.
    Aggregate {
        /// The aggregate.
        aggregate: Aggregate,
        /// The first sequence.
        from: i64,
    },
    /// All events emitted since this time, and some emitted shortly before it.
    Since(Timestamp),
}

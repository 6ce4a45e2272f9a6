//! Sinks: the trait, and one module for each broker.

mod config;
mod jsonl;
pub(crate) mod kafka;
pub(crate) mod nats;
mod null;
pub(crate) mod rabbitmq;
mod reconnecting;
pub(crate) mod redis;
pub(crate) mod setting;
pub(crate) mod webhook;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use thiserror::Error;

pub use config::{SinkConfig, open};
pub use jsonl::JsonlConfig;
pub use kafka::{KafkaConfig, KafkaProperties};
pub use nats::NatsConfig;
pub use null::NullConfig;
pub use rabbitmq::RabbitmqConfig;
pub use redis::RedisConfig;
pub use setting::{InvalidSink, SecretUrl};
pub use webhook::{WebhookConfig, WebhookSecret};

/// A broker or another receiver of events.
///
/// **An acknowledgement is permanent.** [`Delivery::Acknowledged`] means that the receiver has accepted the event and guarantees its durability from
/// now on: the relay moves its position past the event and never sends it again. A sink that cannot know returns [`Delivery::Unknown`]; then the event
/// is published again under the same id. Receivers therefore get an event at least once; receivers that discard duplicates by id process it once.
///
/// **The caller ensures the order.** A call never contains two events of one aggregate, and the caller publishes the next event of an aggregate only
/// after it has the result of the previous one. A sink may therefore publish the events of a call in any order and concurrently.
///
/// **Calls are bounded.** Every sink has a time limit, after which the result of unanswered events is unknown.
#[async_trait]
pub trait Sink: Send + Sync + fmt::Debug {
    /// Publishes events, each of a different aggregate. Returns their deliveries in the same order. A sink that cannot send more for now returns
    /// deliveries for the first events only, at least for one; the others are published again, and this does not count as a failed attempt.
    ///
    /// # Errors
    /// [`SinkDown`] if the sink cannot accept any event now. None or all of the events of this call may have been published. The caller waits and
    /// tries again; this does not count as a failed attempt of any event.
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown>;
}

/// The result of publishing one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver has the event.
    Acknowledged,
    /// The event was refused or returned; another attempt may succeed.
    Refused {
        /// The reason that the receiver gave.
        why: String,
    },
    /// The event can never be accepted in its present form: it is too large for the receiver, or cannot be represented in its format.
    Unacceptable {
        /// Why the event cannot be accepted.
        why: String,
    },
    /// The result is unknown: the answer did not arrive in time, or the connection broke. The receiver may have the event.
    Unknown {
        /// What happened.
        why: String,
    },
}

impl Delivery {
    /// Returns why the event was not delivered; empty if it was.
    pub fn why(&self) -> &str {
        match self {
            Self::Acknowledged => "",
            Self::Refused { why } | Self::Unacceptable { why } | Self::Unknown { why } => why,
        }
    }
}

/// A sink that cannot accept events at present.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} does not accept events: {why}")]
pub struct SinkDown {
    /// The receiver, without secrets.
    pub place: String,
    /// The error of the receiver or of the driver.
    pub why: String,
    /// When the receiver wants the next attempt, if it specified that.
    pub retry_after: Option<Duration>,
    /// Whether the receiver refuses all further events: only an operator can resume.
    pub for_good: bool,
}

impl SinkDown {
    /// A temporary failure.
    pub(crate) fn now(place: &str, why: impl Into<String>) -> Self {
        Self { place: place.to_owned(), why: why.into(), retry_after: None, for_good: false }
    }
}

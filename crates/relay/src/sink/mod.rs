//! Where events go: the trait, and a module a broker.

mod config;
mod jsonl;
pub(crate) mod kafka;
mod kept;
pub(crate) mod nats;
mod null;
pub(crate) mod rabbitmq;
pub(crate) mod redis;
mod webhook;
mod words;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use thiserror::Error;

pub use config::{InvalidSink, SecretUrl, SinkConfig, open};
pub use jsonl::JsonlConfig;
pub use kafka::{KafkaConfig, KafkaProperties};
pub use nats::NatsConfig;
pub use null::NullConfig;
pub use rabbitmq::RabbitmqConfig;
pub use redis::RedisConfig;
pub use webhook::{WebhookConfig, WebhookSecret};

/// A broker, or whatever stands for one.
///
/// **An acknowledgement is for ever.** [`Delivery::Acknowledged`] says that the receiver has taken the event over and that what it
/// promises of events holds from now on: the relay moves its position past it and never sends it again. A sink that
/// cannot know says [`Delivery::Unknown`]; then the event is published again, under the same id. So receivers see an event at
/// least once, and those that forget duplicates by its id see it once.
///
/// **Order is the caller's.** A call never has two events of one aggregate, and the caller does not publish the next of
/// an aggregate before it has the answer for the one before. So a sink may publish the events of a call in any order, and all at
/// once.
///
/// **A call ends soon**: every sink has a limit of time of its own, after which what was not answered is unknown.
#[async_trait]
pub trait Sink: Send + Sync + fmt::Debug {
    /// Publishes events, each of another aggregate; answers for each, in their order. A sink that can send no more for now answers
    /// for the first of them, at least for one; the others are published again, and are not to blame.
    ///
    /// # Errors
    /// [`SinkDown`] when it cannot take any event now: nothing of this call may have been published, or all of it. The
    /// caller waits and tries again; no event is to blame.
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown>;
}

/// What became of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver has it.
    Acknowledged,
    /// It was refused, or came back: another try may help.
    Refused {
        /// The receiver's words.
        why: String,
    },
    /// It can never be taken as it is: it is too large for the receiver, or cannot be written in its form.
    Unacceptable {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody knows: the answer did not come in time, or the connection broke. The receiver may have it.
    Unknown {
        /// What happened.
        why: String,
    },
}

/// A sink that cannot take anything now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} does not take events: {why}")]
pub struct SinkDown {
    /// The receiver, without secrets.
    pub place: String,
    /// What it said, or what the driver did.
    pub why: String,
    /// When it wants to be asked again, if it said so.
    pub retry_after: Option<Duration>,
    /// Whether it said that it never will: only a person can bring it back.
    pub for_good: bool,
}

impl SinkDown {
    /// Down for now.
    fn now(place: &str, why: impl Into<String>) -> Self {
        Self { place: place.to_owned(), why: why.into(), retry_after: None, for_good: false }
    }
}

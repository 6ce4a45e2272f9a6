//! Consumers: read events from a broker and redeliver each until its effect is committed.
//!
//! A [`Runner`] reads messages from a [`Source`] (one module for each broker) and passes their events to a [`Handler`], which processes them through
//! the inbox of its database.

#[cfg(feature = "kafka")]
mod kafka;
mod lanes;
mod nats;
mod rabbitmq;
mod reading;
mod redis;
mod runner;
mod taking;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::error::Cause;
use milepost_core::event::{Aggregate, Event};
use thiserror::Error;

/// The longest that a broker may take to accept a connection, or the result of a message. A driver may lose a request with its connection and wait for
/// the reply forever.
const REPLY_MAX: Duration = Duration::from_secs(10);

#[cfg(feature = "kafka")]
pub use kafka::KafkaSource;
pub use nats::NatsSource;
pub use rabbitmq::RabbitmqSource;
pub use redis::RedisSource;
pub use runner::{Counts, Runner, RunnerOptions};

/// A broker from which messages are read.
#[async_trait]
pub trait Source: Send + fmt::Debug {
    /// Waits for the next message. After an error, the next call connects again. If the returned future is dropped, a message may be lost for this
    /// connection; the broker redelivers it.
    ///
    /// # Errors
    /// [`SourceDown`] if the broker cannot be read at present.
    async fn next(&mut self) -> Result<Incoming, SourceDown>;
}

/// A received message.
pub struct Incoming {
    /// The event, or why the message is not an event.
    pub event: Result<Event, Malformed>,
    /// Reports the result to the broker.
    pub receipt: Box<dyn Receipt>,
}

/// Reports to a broker what to do with a message. If a receipt is dropped unused, the broker redelivers the message at a time that it chooses.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// The message is finished; the broker never delivers it again.
    async fn acknowledge(self: Box<Self>) -> Result<(), String>;

    /// Redeliver the message after this delay or later. Returns without waiting for the delay.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String>;

    /// The message can never be processed; the broker must not deliver it again.
    async fn refuse(self: Box<Self>) -> Result<(), String>;
}

/// Processes events.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Processes an event. The message is acknowledged when this returns `Ok`, so the transaction must have been committed by then. After an error,
    /// the event is delivered again. A runner never handles two events of one aggregate at the same time.
    async fn handle(&self, event: &Event) -> Result<(), Cause>;

    /// Processes the events of an aggregate that the inbox holds and that are ready without a new message, for example after a gap was abandoned.
    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        let _ = aggregate;
        Ok(())
    }

    /// Stores a message that is not an event, for inspection by an operator; then it is rejected at the broker. After an error, it is delivered again.
    async fn malformed(&self, message: &Malformed) -> Result<(), Cause> {
        let _ = message;
        Ok(())
    }
}

/// A message that is not an event.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("a message from {place} is not an event: {why}")]
pub struct Malformed {
    /// Where the message came from, without secrets.
    pub place: String,
    /// Why it is not an event.
    pub why: String,
    /// The content of the message.
    pub body: Vec<u8>,
}

/// Omits the content of the message.
impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, why) = (&self.place, &self.why);
        f.debug_struct("Malformed").field("place", place).field("why", why).finish_non_exhaustive()
    }
}

/// A broker that cannot be read at present.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} cannot be read: {why}")]
pub struct SourceDown {
    /// The broker, without secrets.
    pub place: String,
    /// The error of the broker or of the driver.
    pub why: String,
}

/// An invalid setting of a source. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{setting}` of the source cannot be used: {why}")]
pub struct InvalidSource {
    /// The name of the setting.
    pub setting: &'static str,
    /// Why the setting is invalid, and how to fix it.
    pub why: String,
}

/// Waits for the reply of a broker, but not longer than [`REPLY_MAX`].
///
/// # Errors
/// The error of the broker or of the driver, or that there was no reply.
async fn reply<T, E: fmt::Display>(reply: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(REPLY_MAX, reply).await {
        Ok(reply) => reply.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no reply within {REPLY_MAX:?}")),
    }
}

impl From<crate::sink::InvalidSink> for InvalidSource {
    fn from(invalid: crate::sink::InvalidSink) -> Self {
        Self { setting: invalid.setting, why: invalid.why }
    }
}

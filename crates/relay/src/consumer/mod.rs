//! Consumers: events out of a broker, each handed over until what it brought about is committed.
//!
//! A [`Runner`] takes messages from a [`Source`], a module a broker, and hands their events to a [`Handler`], which takes them in by the
//! inbox of its own database.

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

#[cfg(feature = "kafka")]
pub use kafka::KafkaSource;
pub use nats::NatsSource;
pub use rabbitmq::RabbitmqSource;
pub use redis::RedisSource;
pub use runner::{Counts, Runner, RunnerOptions};

/// A broker that is read from.
#[async_trait]
pub trait Source: Send + fmt::Debug {
    /// The next message; waits for it. After an error the next call connects anew. A call that is given up may lose a message
    /// for this connection: the broker brings it again.
    ///
    /// # Errors
    /// [`SourceDown`] when the broker cannot be read from now.
    async fn next(&mut self) -> Result<Incoming, SourceDown>;
}

/// A message that came.
pub struct Incoming {
    /// Its event, or what is wrong with it.
    pub event: Result<Event, Malformed>,
    /// To tell the broker what became of it.
    pub receipt: Box<dyn Receipt>,
}

/// Tells a broker what became of a message. One that is dropped without a word is brought again when its broker sees fit.
#[async_trait]
pub trait Receipt: Send + Sync {
    /// It is done with, for ever.
    async fn acknowledge(self: Box<Self>) -> Result<(), String>;

    /// It shall come again, after this time or later.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String>;

    /// It can never be taken: it shall not come again.
    async fn refuse(self: Box<Self>) -> Result<(), String>;
}

/// What is done with events.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Takes an event in. When this returns `Ok`, the message is acknowledged: the transaction must have been committed. After an error it
    /// comes again. Never two at once of the same aggregate in a runner.
    async fn handle(&self, event: &Event) -> Result<(), Cause>;

    /// Takes in what the inbox kept of an aggregate, without a message that says so: after a gap that was given up, for instance.
    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        let _ = aggregate;
        Ok(())
    }

    /// Keeps a message that is no event, for people; then it is refused at its broker. After an error it comes again.
    async fn malformed(&self, message: &Malformed) -> Result<(), Cause> {
        let _ = message;
        Ok(())
    }
}

/// A message that is no event.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("a message of {place} is no event: {why}")]
pub struct Malformed {
    /// Where it came from, without secrets.
    pub place: String,
    /// What is wrong with it.
    pub why: String,
    /// What it holds.
    pub body: Vec<u8>,
}

/// Never tells what the message holds.
impl fmt::Debug for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, why) = (&self.place, &self.why);
        f.debug_struct("Malformed").field("place", place).field("why", why).finish_non_exhaustive()
    }
}

/// A broker that cannot be read from now.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} brings no events: {why}")]
pub struct SourceDown {
    /// The broker, without secrets.
    pub place: String,
    /// What it said, or what the driver did.
    pub why: String,
}

/// A setting of a source that cannot be used. Says nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{setting}` of the source cannot be used: {why}")]
pub struct InvalidSource {
    /// Its name.
    pub setting: &'static str,
    /// What is wrong with it, and what to do.
    pub why: String,
}

impl From<crate::sink::InvalidSink> for InvalidSource {
    fn from(invalid: crate::sink::InvalidSink) -> Self {
        Self { setting: invalid.setting, why: invalid.why }
    }
}

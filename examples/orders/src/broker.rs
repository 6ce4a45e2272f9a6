//! The broker between the shop and its consumers: a file, or NATS.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use milepost_relay::consumer::{Handler, NatsSource, Runner};
use milepost_relay::sink::{self, Sink};
use serde_json::json;

use crate::lines::Lines;

/// The stream of the orders' events.
const STREAM: &str = "ORDERS";

/// The broker to which events are published and from which they are read.
#[derive(Clone, Debug)]
pub enum Broker {
    /// A file of JSON lines.
    File(PathBuf),
    /// The URL of a NATS server with JetStream.
    Nats(String),
}

impl Broker {
    /// Returns the broker at `nats://…`, or otherwise the file with this name.
    #[must_use]
    pub fn at(address: &str) -> Self {
        if address.starts_with("nats://") {
            Self::Nats(address.to_owned())
        } else {
            Self::File(address.into())
        }
    }

    /// Returns the sink of the relay, as in `[subscription.orders]` of milepost.toml.
    pub(crate) fn sink(&self) -> Result<Arc<dyn Sink>> {
        let config = match self {
            Self::File(path) => json!({ "type": "jsonl", "path": path }),
            Self::Nats(url) => {
                json!({ "type": "nats", "url": url, "create_stream": STREAM, "subject": "orders.{event_type}" })
            }
        };
        Ok(sink::open(&serde_json::from_value(config)?)?)
    }

    /// Creates the runner of a consumer.
    pub(crate) fn runner(&self, name: &str, handler: Arc<dyn Handler>) -> Result<Runner> {
        Ok(match self {
            Self::File(path) => Runner::new(Lines::new(path), handler),
            Self::Nats(url) => Runner::new(NatsSource::new(url, STREAM, name)?, handler),
        })
    }
}

//! The broker of an experiment: the sink that publishes to it, and the events that it has received.

use std::sync::Arc;

use anyhow::{Context, Result};
use async_nats::jetstream;
use milepost_relay::sink::{self, Sink, SinkConfig};
use serde_json::json;

/// The subscription whose events are published to the broker.
pub const SUBSCRIPTION: &str = "chaos-broker";
/// The stream of the broker.
const STREAM: &str = "CHAOS";
/// How long a publisher waits for an acknowledgement, in milliseconds.
const TIMEOUT_MS: u32 = 2_000;

/// Opens the sink of the broker at this address.
///
/// # Errors
/// When the address is not valid.
pub fn open(url: &str) -> Result<Arc<dyn Sink>> {
    let settings = json!({
        "type": "nats", "url": url, "subject": "chaos.{aggregate_id}", "create_stream": STREAM, "timeout_ms": TIMEOUT_MS,
    });
    let config: SinkConfig = serde_json::from_value(settings)?;
    Ok(sink::open(&config)?)
}

/// Returns the ids of all events that the broker at this address has received, in their order.
///
/// # Errors
/// When it does not answer.
pub async fn received(url: &str) -> Result<Vec<String>> {
    let broker = jetstream::new(async_nats::connect(url).await?);
    let mut stream = broker.get_stream(STREAM).await.context("the stream of the broker")?;
    let last = stream.info().await?.state.last_sequence;
    let mut ids = Vec::new();
    for sequence in 1..=last {
        let message = stream.get_raw_message(sequence).await?;
        let id = message.headers.get("ce-id").context("a message without an id")?;
        ids.push(id.to_string());
    }
    Ok(ids)
}

//! Sink that discards all events, for measuring the rest of the relay.

use async_trait::async_trait;
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Delivery, Sink, SinkDown};

/// Has no settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullConfig {}

/// Acknowledges every event.
#[derive(Debug)]
pub(super) struct Null;

#[async_trait]
impl Sink for Null {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}

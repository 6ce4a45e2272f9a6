//! A sink that forgets everything: for measuring all that comes before it.

use async_trait::async_trait;
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Delivery, Sink, SinkDown};

/// There is nothing to set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NullConfig {}

/// Acknowledges all.
#[derive(Debug)]
pub(super) struct Null;

#[async_trait]
impl Sink for Null {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        Ok(vec![Delivery::Acknowledged; events.len()])
    }
}

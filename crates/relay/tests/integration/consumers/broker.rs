//! Test brokers from which consumers read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_relay::consumer::{Handler, Runner};
use milepost_relay::sink::Sink;

/// Name of the consumer.
pub(crate) const BILLING: &str = "billing";
/// The body of a message that is not an event.
pub(crate) const NO_EVENT: &str = "this is not an event";

/// A broker with a queue, stream or topic for one test only.
#[async_trait]
pub(crate) trait Broker: Send + Sync {
    /// Returns a sink that publishes to it.
    fn sink(&self) -> Arc<dyn Sink>;
    /// Returns a consumer that reads from it, optionally through another address.
    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner;
    /// Returns its host and port.
    fn address(&self) -> String;
    /// Publishes a message that is not an event.
    async fn publish_no_event(&self);
    /// Returns the number of unacknowledged messages.
    async fn left(&self) -> u64;

    /// How long a consumer may take to receive the messages that it could not acknowledge before.
    fn patience(&self) -> Duration {
        Duration::from_millis(1500)
    }
}

pub(crate) fn unique() -> String {
    format!("t{}", uuid::Uuid::now_v7().simple())
}

pub(crate) fn host_and_port(url: &str) -> String {
    let place = url.split_once("://").unwrap().1;
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    place.split('/').next().unwrap().to_owned()
}

//! Brokers that are read from.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_relay::consumer::{Handler, Runner};
use milepost_relay::sink::Sink;

/// The consumer.
pub(crate) const BILLING: &str = "billing";
/// A message that is no event.
pub(crate) const NO_EVENT: &str = "this is no event";

/// A broker with a place of this test's own.
#[async_trait]
pub(crate) trait Broker: Send + Sync {
    /// What publishes there.
    fn sink(&self) -> Arc<dyn Sink>;
    /// A consumer that reads from there, through this address instead of the broker's own.
    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner;
    /// Its host and port.
    fn address(&self) -> String;
    /// Publishes what is no event.
    async fn publish_no_event(&self);
    /// How many messages are not acknowledged.
    async fn left(&self) -> u64;

    /// How long a consumer may take until it has what it could not acknowledge before.
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

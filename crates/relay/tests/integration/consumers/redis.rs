//! Consumers of Redis Streams.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_relay::consumer::{Handler, RedisSource, Runner};
use milepost_relay::sink::Sink;

use crate::common;
use crate::consumers::broker::{BILLING, Broker, NO_EVENT, host_and_port, unique};

pub(crate) struct Redis {
    url: String,
    name: String,
    claim_idle: Duration,
}

impl Redis {
    pub(crate) fn make() -> Self {
        let claim_idle = Duration::from_secs(1);
        Self { url: common::shared("MILEPOST_TEST_REDIS"), name: unique(), claim_idle }
    }

    /// Sets after which idle time unacknowledged entries are claimed.
    pub(crate) fn claim_idle(self, claim_idle: Duration) -> Self {
        Self { claim_idle, ..self }
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut connection = milepost_testkit::redis::connect(&self.url).await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }
}

#[async_trait]
impl Broker for Redis {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!("type = \"redis\"\nurl = \"{url}\"\nstream = \"{name}\"\n"))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = address.map_or(self.url.clone(), |address| format!("redis://{address}"));
        let source = RedisSource::new(&url, &self.name, BILLING, unique()).unwrap();
        Runner::new(source.claim_idle(self.claim_idle), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        self.ask::<String>(&["XADD", &self.name, "*", "odd", NO_EVENT]).await;
    }

    async fn left(&self) -> u64 {
        let groups: redis::streams::StreamInfoGroupsReply = self.ask(&["XINFO", "GROUPS", &self.name]).await;
        groups
            .groups
            .first()
            .map_or(u64::MAX, |group| group.pending as u64 + group.lag.map_or(0, |lag| lag as u64))
    }
}

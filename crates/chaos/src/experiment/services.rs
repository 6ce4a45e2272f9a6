//! Servers beside the store: a Redis that helps workers, and a broker that receives events.

use std::time::Duration;

use anyhow::Result;
use milepost_testkit::nats::NatsServer;
use milepost_testkit::proxy::Proxy;
use milepost_testkit::redis::RedisServer;

use super::fault::Fault;
use crate::broker;
use crate::record::{Effect, Record, Row};

/// How long Redis gives no answer, or the broker's answers are lost.
const AWAY_FOR: Duration = Duration::from_secs(1);

/// The servers that faults need.
pub(super) struct Services {
    redis: Option<RedisServer>,
    broker: Option<Broker>,
}

/// A NATS server with JetStream, and the network before it.
struct Broker {
    server: NatsServer,
    proxy: Proxy,
}

impl Services {
    /// Starts those that these faults hit.
    pub(super) async fn start(faults: &[Fault]) -> Self {
        let hit = |kinds: &[Fault]| faults.iter().any(|fault| kinds.contains(fault));
        let redis = hit(&Fault::OF_REDIS).then(RedisServer::running);
        let broker = hit(&Fault::OF_BROKER).then(Broker::start);
        let redis = if let Some(redis) = redis { Some(redis.await) } else { None };
        let broker = if let Some(broker) = broker { Some(broker.await) } else { None };
        Self { redis, broker }
    }

    /// Returns the arguments with which processes use them: an option and an address.
    pub(super) fn arguments(&self) -> Vec<(&'static str, String)> {
        let redis = self.redis.iter().map(|redis| ("--redis", redis.url()));
        let broker = self.broker.iter().map(|its| ("--broker", format!("nats://{}", its.proxy.address())));
        redis.chain(broker).collect()
    }

    /// Injects a fault. Returns false if it needs a server that does not exist.
    pub(super) async fn inject(&self, fault: Fault) -> bool {
        match (fault, &self.redis, &self.broker) {
            (Fault::KillRedis, Some(redis), _) => {
                redis.kill().await;
                redis.start().await;
            }
            (Fault::StopRedis, Some(redis), _) => {
                redis.pause();
                tokio::time::sleep(AWAY_FOR).await;
                redis.revive();
            }
            (Fault::FlushRedis, Some(redis), _) => redis.flush().await,
            (Fault::KillBroker, _, Some(broker)) => {
                broker.server.kill().await;
                broker.server.start().await;
            }
            (Fault::LoseAcknowledgements, _, Some(broker)) => {
                broker.proxy.lose_replies(true);
                tokio::time::sleep(AWAY_FOR).await;
                broker.proxy.lose_replies(false);
            }
            _ => return false,
        }
        true
    }

    /// Adds what the broker has received to the record.
    pub(super) async fn export(&self, record: &mut Record) -> Result<()> {
        let Some(broker) = &self.broker else { return Ok(()) };
        record.rows.push(Row::Subscription { name: broker::SUBSCRIPTION.to_owned(), changes: false });
        for event in broker::received(&broker.server.url()).await? {
            record.effects.push(Effect::Delivered { subscription: broker::SUBSCRIPTION.to_owned(), event });
        }
        Ok(())
    }

    /// Returns whether there is a broker.
    pub(super) const fn has_broker(&self) -> bool {
        self.broker.is_some()
    }
}

impl Broker {
    async fn start() -> Self {
        let server = NatsServer::running(&[]).await;
        let proxy = Proxy::before(server.address()).await;
        Self { server, proxy }
    }
}

//! The configuration of a sink of any broker.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Sink;
use super::jsonl::{Jsonl, JsonlConfig};
use super::kafka::KafkaConfig;
use super::nats::{Nats, NatsConfig};
use super::null::{Null, NullConfig};
use super::rabbitmq::{Rabbitmq, RabbitmqConfig};
use super::redis::{Redis, RedisConfig};
use super::setting::InvalidSink;
use super::webhook::{Webhook, WebhookConfig};

/// A sink: where events are published. `type` is the kind of broker.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SinkConfig {
    /// Discards events.
    Null(NullConfig),
    /// A file, or the standard output.
    Jsonl(JsonlConfig),
    /// NATS JetStream.
    Nats(NatsConfig),
    /// Redis Streams.
    Redis(RedisConfig),
    /// RabbitMQ.
    Rabbitmq(RabbitmqConfig),
    /// Kafka. Not in every build.
    Kafka(KafkaConfig),
    /// A webhook.
    Webhook(WebhookConfig),
}

/// Creates the sink of these settings. Does not connect: the connection is made when there are events.
///
/// # Errors
/// [`InvalidSink`] if a setting is invalid.
pub fn open(config: &SinkConfig) -> Result<Arc<dyn Sink>, InvalidSink> {
    Ok(match config {
        SinkConfig::Null(NullConfig {}) => Arc::new(Null),
        SinkConfig::Jsonl(config) => Arc::new(Jsonl::open(config)?),
        SinkConfig::Nats(config) => Arc::new(Nats::open(config)?),
        SinkConfig::Redis(config) => Arc::new(Redis::open(config)?),
        SinkConfig::Rabbitmq(config) => Arc::new(Rabbitmq::open(config)?),
        #[cfg(feature = "kafka")]
        SinkConfig::Kafka(config) => Arc::new(super::kafka::Kafka::open(config)?),
        #[cfg(not(feature = "kafka"))]
        SinkConfig::Kafka(_) => {
            let why = "this build does not support Kafka; build with the feature `kafka`, which is on unless `--no-default-features` is given";
            return Err(InvalidSink::new("type", why));
        }
        SinkConfig::Webhook(config) => Arc::new(Webhook::open(config)?),
    })
}

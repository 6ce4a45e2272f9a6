//! The brokers of a benchmark, and a sink that measures latency.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use async_trait::async_trait;
use clap::ValueEnum;
use hdrhistogram::Histogram;
use milepost_core::event::Event;
use milepost_relay::sink::{
    self, Delivery, KafkaConfig, NatsConfig, NullConfig, RabbitmqConfig, RedisConfig, Sink, SinkConfig,
    SinkDown,
};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::json;

use crate::latency::micros;

/// Where the events of a bench go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Broker {
    /// No sink: events are discarded
    Null,
    /// NATS JetStream, into the stream MILEPOST_BENCH
    Nats,
    /// RabbitMQ, into the queue milepost_bench
    Rabbitmq,
    /// Redis Streams, into the stream milepost_bench
    Redis,
    /// Kafka, into the topic milepost_bench
    Kafka,
}

impl Broker {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Nats => "nats",
            Self::Rabbitmq => "rabbitmq",
            Self::Redis => "redis",
            Self::Kafka => "kafka",
        }
    }

    pub(super) async fn open(self, url: Option<&str>) -> Result<Arc<dyn Sink>> {
        let config = match self {
            Self::Null => SinkConfig::Null(NullConfig {}),
            Self::Nats => SinkConfig::Nats(NatsConfig::deserialize(
                json!({
                    "url": url.unwrap_or("nats://127.0.0.1:4222"),
                    "subject": "milepost_bench.{event_type}",
                    "create_stream": "MILEPOST_BENCH",
                })
                .into_deserializer(),
            )?),
            Self::Rabbitmq => SinkConfig::Rabbitmq(RabbitmqConfig::deserialize(
                json!({ "url": url.unwrap_or("amqp://127.0.0.1:5672"), "routing_key": "milepost_bench" })
                    .into_deserializer(),
            )?),
            Self::Redis => SinkConfig::Redis(RedisConfig::deserialize(
                json!({
                    "url": url.unwrap_or("redis://127.0.0.1:6379"),
                    "stream": "milepost_bench",
                    "maxlen": 100_000,
                })
                .into_deserializer(),
            )?),
            Self::Kafka => SinkConfig::Kafka(KafkaConfig::deserialize(
                json!({ "brokers": url.unwrap_or("127.0.0.1:9092"), "topic": "milepost_bench" })
                    .into_deserializer(),
            )?),
        };
        sink::open(&config).context("the sink cannot be used")
    }
}

/// A sink that measures the time from when an event was due to be emitted to its acknowledgement. The event's number is in its payload.
#[derive(Debug)]
pub(super) struct Meter {
    inner: Arc<dyn Sink>,
    began: Instant,
    per_second: u64,
    /// Events with a lower number are not measured.
    warm_up: u64,
    measured: Mutex<Histogram<u64>>,
}

/// The part of a payload that the meter reads.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
}

impl Meter {
    pub(super) fn new(inner: Arc<dyn Sink>, began: Instant, per_second: u64, warm_up: u64) -> Result<Self> {
        Ok(Self { inner, began, per_second, warm_up, measured: Mutex::new(Histogram::new(3)?) })
    }

    /// Returns when an event is due to be emitted.
    pub(super) fn due_at(&self, number: u64) -> Instant {
        self.began + std::time::Duration::from_micros(number * 1_000_000 / self.per_second)
    }

    pub(super) fn measured(&self) -> Histogram<u64> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Sink for Meter {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let answers = self.inner.publish(events).await?;
        let now = Instant::now();
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            if let Ok(Numbered { n }) = serde_json::from_str(event.payload.get())
                && n >= self.warm_up
            {
                let took = now.saturating_duration_since(self.due_at(n));
                // The histogram resizes automatically.
                let _ = measured.record(micros(took));
            }
        }
        Ok(answers)
    }
}

//! What librdkafka is told.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseProducer;

use super::KafkaConfig;
use crate::sink::config::InvalidSink;

/// What acknowledgements and order rest on.
const OURS: [&str; 13] = [
    "acks",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.gapless.guarantee",
    "enable.idempotence",
    "message.max.bytes",
    "message.timeout.ms",
    "metadata.broker.list",
    "queuing.strategy",
    "request.required.acks",
    "test.mock.broker.rtt",
    "test.mock.num.brokers",
    "transactional.id",
];

/// All of it but where the brokers are. What cannot be used is told.
pub(super) fn of(config: &KafkaConfig, timeout: Duration) -> Result<ClientConfig, InvalidSink> {
    let refused = |why: String| InvalidSink::new("properties", why);
    let mut settings = ClientConfig::new();
    settings
        // A wave is published when the one before it is answered: what waits here for company only waits.
        .set("linger.ms", "1")
        // As the clients in Java do it, so that a key has one partition whoever writes.
        .set("partitioner", "murmur2_random")
        .set("reconnect.backoff.max.ms", "1000")
        // A topic that is missing is told within a call.
        .set("topic.metadata.propagation.max.ms", (timeout / 2).as_millis().to_string());
    for (name, value) in &config.properties.0 {
        if OURS.contains(&name.as_str()) {
            return Err(refused(format!("{name:?} is the sink's own to set")));
        }
        settings.set(name, value);
    }
    settings
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("message.max.bytes", config.message_bytes_max.to_string())
        // What is late dies where it waits, so that it is not sent when nobody reckons with it.
        .set("message.timeout.ms", timeout.as_millis().to_string());
    // Some settings are only checked together. Without brokers nothing is connected to.
    let checked: Result<BaseProducer, _> = settings.create();
    match checked {
        Ok(_) => Ok(settings),
        Err(error) => Err(refused(in_words(&error))),
    }
}

/// What librdkafka says of its settings, without their values.
pub(crate) fn in_words(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, words, name, value) if value.is_empty() => format!("{name:?}: {words}"),
        KafkaError::ClientConfig(_, words, name, value) => format!("{name:?}: {}", words.replace(value, "…")),
        KafkaError::ClientCreation(words) => words.clone(),
        _ => error.to_string(),
    }
}

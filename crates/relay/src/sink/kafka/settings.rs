//! Settings of librdkafka for the Kafka sink.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseProducer;

use super::KafkaConfig;
use crate::sink::setting::InvalidSink;

/// Settings that the user cannot change, because acknowledgements and order depend on them.
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

/// Returns the settings, except for the brokers. Fails on invalid properties.
pub(super) fn of(config: &KafkaConfig, timeout: Duration) -> Result<ClientConfig, InvalidSink> {
    let refused = |why: String| InvalidSink::new("properties", why);
    let mut settings = ClientConfig::new();
    settings
        // The next wave starts only after this one is acknowledged, so a longer linger would only add latency.
        .set("linger.ms", "1")
        // The default of the Java clients, so that a key has the same partition for all producers.
        .set("partitioner", "murmur2_random")
        .set("reconnect.backoff.max.ms", "1000")
        // A missing topic is reported within one call.
        .set("topic.metadata.propagation.max.ms", (timeout / 2).as_millis().to_string());
    for (name, value) in &config.properties.0 {
        if OURS.contains(&name.as_str()) {
            return Err(refused(format!("{name:?} is set by the sink; remove it")));
        }
        settings.set(name, value);
    }
    settings
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("message.max.bytes", config.message_bytes_max.to_string())
        // Late messages expire in the queue, so that none is sent after its result was reported as unknown.
        .set("message.timeout.ms", timeout.as_millis().to_string());
    // Some settings are validated only together. Without brokers the producer does not connect.
    let checked: Result<BaseProducer, _> = settings.create();
    match checked {
        Ok(_) => Ok(settings),
        Err(error) => Err(refused(in_words(&error))),
    }
}

/// Formats an error of librdkafka about its settings, without their values.
pub(crate) fn in_words(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, words, name, value) if value.is_empty() => format!("{name:?}: {words}"),
        KafkaError::ClientConfig(_, words, name, value) => format!("{name:?}: {}", words.replace(value, "…")),
        KafkaError::ClientCreation(words) => words.clone(),
        _ => error.to_string(),
    }
}

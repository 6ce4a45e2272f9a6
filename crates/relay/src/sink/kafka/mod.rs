//! Sink: Kafka.

#[cfg(feature = "kafka")]
mod producer;
#[cfg(feature = "kafka")]
mod session;
#[cfg(feature = "kafka")]
mod settings;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(feature = "kafka")]
pub(in crate::sink) use self::producer::Kafka;
#[cfg(feature = "kafka")]
pub(crate) use self::settings::in_words;
use super::setting;

/// Kafka. An acknowledgement means that all in-sync replicas have the message (`acks=all`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KafkaConfig {
    /// The addresses of some brokers: `HOST:PORT`, separated by commas.
    pub brokers: String,
    /// The topic of an event. The default is `milepost.{aggregate_type}`.
    #[serde(default = "topic_default")]
    pub topic: String,
    /// The maximum size of a message in bytes. Larger messages are unacceptable. The limit of the topic
    /// (`max.message.bytes`) must not be lower. The default is 1000000.
    #[serde(default = "message_bytes_max_default")]
    pub message_bytes_max: u32,
    /// Additional settings of librdkafka, such as `"compression.type" = "lz4"` or `"sasl.password"`. Their values are never shown.
    #[serde(default)]
    pub properties: KafkaProperties,
    /// The CloudEvents attribute `source` of all events. The default is `milepost`.
    #[serde(default = "setting::source_default")]
    pub source: String,
    /// The time limit of a call. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

fn topic_default() -> String {
    "milepost.{aggregate_type}".to_owned()
}

const fn message_bytes_max_default() -> u32 {
    1_000_000
}

/// Settings of librdkafka by their names, of which only the names are shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KafkaProperties(BTreeMap<String, String>);

impl fmt::Debug for KafkaProperties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(all(test, not(feature = "kafka")))]
mod tests {
    use crate::sink::{SinkConfig, open};

    #[test]
    fn a_build_without_kafka_says_how_to_get_it() {
        let config: SinkConfig = toml::from_str("type = \"kafka\"\nbrokers = \"broker:9092\"").unwrap();
        let why = open(&config).unwrap_err().to_string();
        assert!(why.contains("`type`") && why.contains("the feature `kafka`"), "{why}");
    }
}

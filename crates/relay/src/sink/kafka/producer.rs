//! Kafka sink: publishes events to topics.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use tokio::time::Instant;

use super::session::{Outgoing, PublishResult, Session};
use super::{KafkaConfig, settings};
use crate::message::{CONTENT_TYPE, Message};
use crate::sink::reconnecting::{Connection as _, Reconnecting};
use crate::sink::setting::{self, InvalidSink};
use crate::sink::{Delivery, Sink, SinkDown};
use crate::template::Template;

/// Maximum length of a topic name.
const TOPIC_BYTES_MAX: usize = 249;
/// Allowed values of `message_bytes_max`.
const MESSAGE_BYTES: RangeInclusive<u32> = 1_000..=1_000_000_000;

/// Publishes events to Kafka topics.
pub(in crate::sink) struct Kafka {
    place: String,
    settings: ClientConfig,
    topic: Template,
    source: String,
    timeout: Duration,
    line: Reconnecting<Session>,
}

// No derived `Debug`: the settings contain secrets.
impl fmt::Debug for Kafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kafka")
            .field("place", &self.place)
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl Kafka {
    pub(in crate::sink) fn open(config: &KafkaConfig) -> Result<Self, InvalidSink> {
        let topic = setting::template("topic", &config.topic)?;
        if let Err(why) = check_topic(&topic.filled("x")) {
            return Err(InvalidSink::new("topic", why));
        }
        let brokers = &config.brokers;
        if brokers.split(',').any(|broker| broker.trim().is_empty()) || brokers.contains('@') {
            let why = "it must be HOST:PORT, with commas between brokers; set credentials in `properties`";
            return Err(InvalidSink::new("brokers", why));
        }
        if !MESSAGE_BYTES.contains(&config.message_bytes_max) {
            let why = format!("it must be {} to {}", MESSAGE_BYTES.start(), MESSAGE_BYTES.end());
            return Err(InvalidSink::new("message_bytes_max", why));
        }
        let timeout = setting::timeout(config.timeout_ms)?;
        let mut settings = settings::of(config, timeout)?;
        settings.set("bootstrap.servers", brokers);
        Ok(Self {
            place: format!("Kafka at {brokers}"),
            settings,
            topic,
            source: setting::source(&config.source)?,
            timeout,
            line: Reconnecting::none(),
        })
    }

    /// Returns the message of an event, or why the event cannot be represented.
    fn outgoing<'a>(&self, event: &'a Event) -> Result<Outgoing<'a>, String> {
        let topic = self.topic.plain(event);
        check_topic(&topic)?;
        let message = Message::new(event, &self.source);
        let mut headers = OwnedHeaders::new();
        for (name, value) in message.attributes() {
            headers = headers.insert(Header { key: &format!("ce_{name}"), value: Some(&*value) });
        }
        headers = headers.insert(Header { key: "content-type", value: Some(CONTENT_TYPE) });
        for (key, value) in message.own_headers(&[]) {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        Ok(Outgoing { event, topic, headers })
    }

    /// Returns the deliveries, or an error if no topic accepted any message.
    fn deliveries(
        &self,
        outgoing: Vec<Result<(), String>>,
        answers: Vec<PublishResult>,
    ) -> Result<Vec<Delivery>, SinkDown> {
        let none_known = !answers.iter().any(|answer| matches!(answer, PublishResult::Known(_)));
        if let (true, Some(PublishResult::NoTopic(why))) = (none_known, answers.first()) {
            return Err(SinkDown::now(&self.place, why));
        }
        let mut answers = answers.into_iter().map(|answer| match answer {
            PublishResult::Known(delivery) => delivery,
            PublishResult::NoTopic(why) => Delivery::Refused { why },
        });
        let delivery = |outgoing| match outgoing {
            Err(why) => Delivery::Unacceptable { why },
            Ok(()) => {
                answers.next().unwrap_or_else(|| Delivery::Unknown { why: "it was not sent".to_owned() })
            }
        };
        Ok(outgoing.into_iter().map(delivery).collect())
    }
}

#[async_trait]
impl Sink for Kafka {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let deadline = Instant::now() + self.timeout;
        let (mut messages, mut outgoing) = (Vec::new(), Vec::with_capacity(events.len()));
        for event in events {
            outgoing.push(self.outgoing(event).map(|message| messages.push(message)));
        }
        let Some(first) = messages.first() else { return self.deliveries(outgoing, Vec::new()) };
        let down = |why: String| SinkDown::now(&self.place, why);
        let connecting = async { Session::new(&self.settings, &first.topic).map_err(down) };
        let line = self.line.get(connecting).await?;
        line.check(deadline).await.map_err(down)?;
        let answers = line.publish(messages, deadline).await;
        if !line.is_usable() {
            self.line.forget(&line).await;
            // Dropping the producer waits for its threads, so it runs on a blocking thread.
            tokio::task::spawn_blocking(move || drop(line));
        }
        self.deliveries(outgoing, answers)
    }
}

/// Checks that this is a valid topic name; otherwise returns the reason.
fn check_topic(topic: &str) -> Result<(), String> {
    let is_bad = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-');
    if matches!(topic, "" | "." | "..") || topic.len() > TOPIC_BYTES_MAX || topic.contains(is_bad) {
        return Err(format!(
            "{topic:?} is not a valid topic name: names have up to {TOPIC_BYTES_MAX} letters, digits and any of . _ -"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(settings: &str) -> Result<Kafka, InvalidSink> {
        Kafka::open(&toml::from_str(settings).unwrap())
    }

    fn refused(settings: &str) -> String {
        opened(&format!("brokers = \"127.0.0.1:1\"\n{settings}")).unwrap_err().to_string()
    }

    #[test]
    fn settings_that_cannot_be_used_are_told_without_their_values() {
        for (settings, told) in [
            ("topic = \"orders/{event_type}\"", "`topic`"),
            ("message_bytes_max = 1", "1000 to"),
            ("properties = { \"acks\" = \"s3cret\" }", "set by the sink"),
            ("properties = { \"sasl.passwort\" = \"s3cret\" }", "sasl.passwort"),
            ("properties = { \"linger.ms\" = \"s3cret\" }", "linger.ms"),
            ("properties = { \"security.protocol\" = \"s3cret\" }", "security.protocol"),
            ("properties = { \"security.protocol\" = \"ssl\" }", "OpenSSL not available"),
            ("properties = { \"max.in.flight\" = \"6\" }", "max.in.flight"),
        ] {
            let why = refused(settings);
            assert!(why.contains(told) && !why.contains("s3cret"), "{settings}: {why}");
        }
        let why = opened("brokers = \"ada:s3cret@broker:9092\"").unwrap_err().to_string();
        assert!(why.contains("`properties`") && !why.contains("s3cret"), "{why}");
    }

    #[test]
    fn settings_show_no_values() {
        let settings = "brokers = \"127.0.0.1:1\"\nproperties = { \"sasl.password\" = \"s3cret\" }";
        let config: KafkaConfig = toml::from_str(settings).unwrap();
        let shown = format!("{config:?} {:?}", Kafka::open(&config).unwrap());
        assert!(shown.contains("sasl.password") && !shown.contains("s3cret"), "{shown}");
    }
}

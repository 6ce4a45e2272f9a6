//! Source of events: Kafka topics.

mod offsets;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::ClientConfig;
use rdkafka::message::OwnedMessage;
use tokio::sync::mpsc;

use super::{Incoming, InvalidSource, Receipt, Source, SourceDown};
use crate::consumer::reading;
use offsets::MessagePosition;
use session::{Reading, Session};

/// Settings that the user cannot change, because the handling of offsets depends on them.
const OURS: [&str; 9] = [
    "auto.commit.enable",
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "metadata.broker.list",
    "isolation.level",
];

/// Messages of topics, read as a member of a consumer group, which divides the partitions among its members. A member without a committed offset for a
/// partition starts with the oldest message.
///
/// The brokers store one offset for each partition. It moves past a message when that message and all before it in the partition are finished.
/// Messages to be retried are kept in memory; if this process stops, the next owner of the partition reads them again.
pub struct KafkaSource {
    place: String,
    topics: Vec<String>,
    settings: ClientConfig,
    reading: Option<Reading>,
    again: (mpsc::UnboundedSender<Taken>, mpsc::UnboundedReceiver<Taken>),
}

/// A message that was read.
struct Taken {
    message: OwnedMessage,
    place: MessagePosition,
}

// No derived `Debug`: the settings contain secrets.
impl fmt::Debug for KafkaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, topics) = (&self.place, &self.topics);
        f.debug_struct("KafkaSource").field("place", place).field("topics", topics).finish_non_exhaustive()
    }
}

impl KafkaSource {
    /// Reads topics (`milepost.order`; a name that starts with `^` is a pattern) from the brokers in `HOST:PORT` form, separated by commas, as a
    /// member of a group.
    ///
    /// # Errors
    /// [`InvalidSource`] if the brokers or a name is invalid.
    pub fn new<T: Into<String>>(
        brokers: &str,
        topics: impl IntoIterator<Item = T>,
        group: impl Into<String>,
    ) -> Result<Self, InvalidSource> {
        let invalid = |setting, why: &str| Err(InvalidSource { setting, why: why.to_owned() });
        if brokers.split(',').any(|broker| broker.trim().is_empty()) || brokers.contains('@') {
            return invalid(
                "brokers",
                "it must be HOST:PORT, with commas between brokers; credentials are properties",
            );
        }
        let (topics, group): (Vec<String>, String) =
            (topics.into_iter().map(Into::into).collect(), group.into());
        if topics.is_empty() || topics.iter().any(String::is_empty) {
            return invalid("topics", "it must be a list of topic names, not empty");
        }
        if group.is_empty() {
            return invalid("group", "it must not be empty");
        }
        let mut settings = ClientConfig::new();
        settings
            .set("bootstrap.servers", brokers)
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "earliest")
            .set("reconnect.backoff.max.ms", "1000");
        let (place, again) = (format!("Kafka at {brokers}"), mpsc::unbounded_channel());
        Ok(Self { place, topics, settings, reading: None, again })
    }

    /// Sets another option of librdkafka, such as `sasl.password`. Its value is never shown.
    ///
    /// # Errors
    /// [`InvalidSource`] if the source sets this option itself because offsets depend on it.
    pub fn property(mut self, name: &str, value: impl Into<String>) -> Result<Self, InvalidSource> {
        if OURS.contains(&name) {
            let why = format!("{name:?} is set by the source; remove it");
            return Err(InvalidSource { setting: "properties", why });
        }
        self.settings.set(name, value);
        // Reports unknown names and invalid values immediately.
        match self.settings.create_native_config() {
            Ok(_) => Ok(self),
            Err(error) => {
                Err(InvalidSource { setting: "properties", why: crate::sink::kafka::in_words(&error) })
            }
        }
    }

    fn down(&self, why: String) -> SourceDown {
        SourceDown { place: self.place.clone(), why }
    }

    fn incoming(&self, line: Arc<Session>, taken: Taken) -> Incoming {
        use rdkafka::message::{Headers, Message};
        let headers = taken.message.headers().into_iter().flat_map(Headers::iter).filter_map(|header| {
            let value = std::str::from_utf8(header.value?).ok()?;
            Some((header.key.to_owned(), value.to_owned()))
        });
        let headers: Vec<(String, String)> = headers.collect();
        let body = taken.message.payload().unwrap_or_default().to_vec();
        let event = reading::read(&self.place, "ce_", &[], headers.into_iter(), body);
        let again = self.again.0.clone();
        Incoming { event, receipt: Box::new(Entry { line, taken, again }) }
    }
}

#[async_trait]
impl Source for KafkaSource {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        loop {
            let reading = match self.reading.take() {
                Some(reading) => reading,
                None => Session::join(&self.settings, &self.topics).map_err(|why| self.down(why))?,
            };
            let reading = self.reading.insert(reading);
            let taken = tokio::select! {
                Some(again) = self.again.1.recv() => Ok(again),
                read = reading.next() => read,
            };
            let line = Arc::clone(&reading.line);
            match taken {
                // The partition was reassigned after this message was read; its new owner handles it.
                Ok(taken) if !line.is_ours(&taken.place) => {}
                Ok(taken) => return Ok(self.incoming(line, taken)),
                Err(why) => {
                    if line.is_lost() {
                        self.reading = None;
                    }
                    return Err(self.down(why));
                }
            }
        }
    }
}

/// A message whose offset has not been committed.
struct Entry {
    line: Arc<Session>,
    taken: Taken,
    again: mpsc::UnboundedSender<Taken>,
}

#[async_trait]
impl Receipt for Entry {
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        self.line.pass(&self.taken.place).await
    }

    /// Kafka does not redeliver messages, so the message is kept in memory and returned after the delay.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        let Self { taken, again, line } = *self;
        // A waiting message does not keep this process in the group.
        drop(line);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // Fails if the source was dropped; then no retry is needed.
            let _ = again.send(taken);
        });
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        self.acknowledge().await
    }
}

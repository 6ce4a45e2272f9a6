//! Events from Kafka.

mod line;
mod offsets;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rdkafka::ClientConfig;
use rdkafka::message::OwnedMessage;
use tokio::sync::mpsc;

use super::{Incoming, InvalidSource, Receipt, Source, SourceDown};
use crate::consumer::reading;
use line::{Line, Reading};
use offsets::Place;

/// What positions rest on.
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

/// Messages of topics, as a member of a consumer group, which divides their partitions among its members. One that has no
/// position in a partition yet begins with its oldest message.
///
/// A position is kept by the brokers, and moves behind a message when that and all before it in the partition are done with. A
/// message that is to come again comes out of our own memory, or to the next member when we are gone.
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
    place: Place,
}

// The settings hold secrets.
impl fmt::Debug for KafkaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, topics) = (&self.place, &self.topics);
        f.debug_struct("KafkaSource").field("place", place).field("topics", topics).finish_non_exhaustive()
    }
}

impl KafkaSource {
    /// Reads topics (`milepost.order`; one that begins with `^` is a pattern) of the brokers at `HOST:PORT`, with commas between
    /// them, as a member of a group.
    ///
    /// # Errors
    /// [`InvalidSource`] says what is wrong with the brokers or a name.
    pub fn new<T: Into<String>>(
        brokers: &str,
        topics: impl IntoIterator<Item = T>,
        group: impl Into<String>,
    ) -> Result<Self, InvalidSource> {
        let invalid = |setting, why: &str| Err(InvalidSource { setting, why: why.to_owned() });
        if brokers.split(',').any(|broker| broker.trim().is_empty()) || brokers.contains('@') {
            return invalid(
                "brokers",
                "give HOST:PORT, with commas between brokers; who you are is a property",
            );
        }
        let (topics, group): (Vec<String>, String) =
            (topics.into_iter().map(Into::into).collect(), group.into());
        if topics.is_empty() || topics.iter().any(String::is_empty) {
            return invalid("topics", "give the names of topics");
        }
        if group.is_empty() {
            return invalid("group", "give it a name");
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

    /// With a further setting of librdkafka, such as `sasl.password`. Its value is never shown.
    ///
    /// # Errors
    /// [`InvalidSource`] when it is one that positions rest on.
    pub fn property(mut self, name: &str, value: impl Into<String>) -> Result<Self, InvalidSource> {
        if OURS.contains(&name) {
            let why = format!("{name:?} is the source's own to set");
            return Err(InvalidSource { setting: "properties", why });
        }
        self.settings.set(name, value);
        // A name or a value that there is not is told at once.
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

    fn incoming(&self, line: Arc<Line>, taken: Taken) -> Incoming {
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
                None => Line::join(&self.settings, &self.topics).map_err(|why| self.down(why))?,
            };
            let reading = self.reading.insert(reading);
            let taken = tokio::select! {
                Some(again) = self.again.1.recv() => Ok(again),
                read = reading.next() => read,
            };
            let line = Arc::clone(&reading.line);
            match taken {
                // A partition that has gone to another member meanwhile is that one's.
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

/// A message whose position was not passed.
struct Entry {
    line: Arc<Line>,
    taken: Taken,
    again: mpsc::UnboundedSender<Taken>,
}

#[async_trait]
impl Receipt for Entry {
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        self.line.pass(&self.taken.place).await
    }

    /// Kafka brings nothing again by itself.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        let Self { taken, again, line } = *self;
        // What waits does not keep us in the group.
        drop(line);
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            // There is nobody left to try it.
            let _ = again.send(taken);
        });
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        self.acknowledge().await
    }
}

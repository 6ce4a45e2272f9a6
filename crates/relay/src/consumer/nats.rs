//! Source of events: NATS JetStream.

use std::time::Duration;

use async_nats::jetstream::consumer::AckPolicy;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{self, AckKind};
use async_trait::async_trait;
use futures::StreamExt;
use milepost_core::error::Cause;
use rustls::crypto::ring;

use super::reading;
use super::{Incoming, InvalidSource, Receipt, Source, SourceDown, reply};
use crate::sink::nats::session::Address;

/// Prefixes of header names that belong to the server.
const THEIRS: &[&str] = &["nats-"];
/// How many messages are requested at the same time.
const BATCH: usize = 100;

/// Messages of a stream, read through a durable consumer of the server, which is created if it does not exist.
#[derive(Debug)]
pub struct NatsSource {
    place: Address,
    stream: String,
    durable: String,
    filter: String,
    ack_wait: Duration,
    messages: Option<Messages>,
}

struct Messages(pull::Stream);

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Messages(…)")
    }
}

impl NatsSource {
    /// Reads `stream` of the server at `url` (`nats://USER:PASSWORD@HOST:PORT`) through the durable consumer of this name.
    ///
    /// # Errors
    /// [`InvalidSource`] if the URL or the name is invalid.
    pub fn new(
        url: &str,
        stream: impl Into<String>,
        durable: impl Into<String>,
    ) -> Result<Self, InvalidSource> {
        let durable = durable.into();
        if durable.is_empty() || durable.chars().any(|c| c.is_whitespace() || ".*>/\\".contains(c)) {
            let why = "it must be a name without spaces and without any of . * > / \\".to_owned();
            return Err(InvalidSource { setting: "durable", why });
        }
        let place = Address::parse(url)?;
        let (stream, ack_wait) = (stream.into(), Duration::from_secs(30));
        Ok(Self { place, stream, durable, filter: String::new(), ack_wait, messages: None })
    }

    /// Reads only messages with these subjects, for example `milepost.order.>`.
    #[must_use]
    pub fn filter(mut self, subject: impl Into<String>) -> Self {
        self.filter = subject.into();
        self
    }

    /// Sets how long the server waits for an answer before it redelivers a message. Must be longer than handlers take. The default is 30 s.
    #[must_use]
    pub const fn ack_wait(mut self, ack_wait: Duration) -> Self {
        self.ack_wait = ack_wait;
        self
    }

    async fn subscribe(&self) -> Result<Messages, Cause> {
        // Installs the cryptography provider that all connections of Milepost use. Has no effect if the process has already installed another.
        let _ = ring::default_provider().install_default();
        let client = self.place.options().connect(self.place.servers()).await?;
        let stream = jetstream::new(client).get_stream_no_info(&self.stream).await?;
        let wanted = pull::Config {
            durable_name: Some(self.durable.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack_wait,
            filter_subject: self.filter.clone(),
            ..pull::Config::default()
        };
        let consumer = stream.get_or_create_consumer(&self.durable, wanted).await?;
        Ok(Messages(consumer.stream().max_messages_per_batch(BATCH).messages().await?))
    }

    fn down(&self, why: String) -> SourceDown {
        SourceDown { place: self.place.name.clone(), why }
    }
}

#[async_trait]
impl Source for NatsSource {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        let messages = match self.messages.take() {
            Some(messages) => messages,
            None => reply(self.subscribe()).await.map_err(|why| self.down(why))?,
        };
        let Messages(stream) = self.messages.insert(messages);
        let message = match stream.next().await {
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                self.messages = None;
                return Err(self.down(error.to_string()));
            }
            None => {
                self.messages = None;
                return Err(self.down("the stream ended".to_owned()));
            }
        };
        let (message, acker) = message.split();
        let headers =
            message.headers.iter().flat_map(async_nats::HeaderMap::iter).filter_map(|(name, values)| {
                values.first().map(|value| (name.to_string(), value.to_string()))
            });
        let event = reading::read(&self.place.name, "ce-", THEIRS, headers, message.payload.to_vec());
        Ok(Incoming { event, receipt: Box::new(acker) })
    }
}

/// Each answer waits until the server has confirmed it: an answer that is only sent would be lost if the connection closes.
#[async_trait]
impl Receipt for Acker {
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        self.double_ack().await.map_err(|error| error.to_string())
    }

    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        self.double_ack_with(AckKind::Nak(Some(after))).await.map_err(|error| error.to_string())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        self.double_ack_with(AckKind::Term).await.map_err(|error| error.to_string())
    }
}

//! Sink: RabbitMQ.

pub(crate) mod address;
mod session;

use std::time::Duration;

use async_trait::async_trait;
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use self::address::Address;
use self::session::{Outgoing, Session};
use super::reconnecting::Reconnecting;
use super::setting::{self, InvalidSink, SecretUrl};
use super::{Delivery, Sink, SinkDown};
use crate::message::{CONTENT_TYPE, Message};
use crate::template::Template;

/// Delivery mode of messages that survive a restart of the server if they are in durable queues.
const PERSISTENT: u8 = 2;
/// Maximum length of AMQP short strings: routing keys, names of exchanges and headers.
const SHORT_BYTES_MAX: usize = 255;

/// RabbitMQ. An acknowledgement means that every queue that the message was routed to has it (publisher confirms): durable queues on the
/// disk, quorum queues on most of their servers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RabbitmqConfig {
    /// The URL of the server: `amqp://USER:PASSWORD@HOST:PORT/VHOST`, or `amqps://…` for TLS.
    pub url: SecretUrl,
    /// The exchange, which must exist. The default is the server's default exchange, which routes to the queue that `routing_key` names.
    #[serde(default)]
    pub exchange: String,
    /// The routing key of an event. The default is `{aggregate_type}.{event_type}`.
    #[serde(default = "routing_key_default")]
    pub routing_key: String,
    /// Whether a message that is routed to no queue is refused. If false, it is acknowledged and lost. The default is true.
    #[serde(default = "mandatory_default")]
    pub mandatory: bool,
    /// The maximum size of a payload in bytes. Larger payloads are unacceptable. The limit of the server (`max_message_size`) must not be
    /// lower, because the server would then close the channel for all messages. The default is 16 MiB, which is RabbitMQ's.
    #[serde(default = "message_bytes_max_default")]
    pub message_bytes_max: usize,
    /// The CloudEvents attribute `source` of all events. The default is `milepost`.
    #[serde(default = "setting::source_default")]
    pub source: String,
    /// The time limit of a call. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

fn routing_key_default() -> String {
    "{aggregate_type}.{event_type}".to_owned()
}

const fn mandatory_default() -> bool {
    true
}

const fn message_bytes_max_default() -> usize {
    16 * 1024 * 1024
}

/// Publishes events to an exchange.
#[derive(Debug)]
pub(super) struct Rabbitmq {
    place: Address,
    exchange: ShortString,
    routing_key: Template,
    mandatory: bool,
    message_bytes_max: usize,
    source: String,
    timeout: Duration,
    line: Reconnecting<Session>,
}

impl Rabbitmq {
    pub(super) fn open(config: &RabbitmqConfig) -> Result<Self, InvalidSink> {
        let exchange = ShortString::try_new(config.exchange.as_str());
        let exchange = exchange.map_err(|_| InvalidSink::new("exchange", "names have at most 255 bytes"))?;
        Ok(Self {
            place: Address::parse(config.url.expose())?,
            exchange,
            routing_key: setting::template("routing_key", &config.routing_key)?,
            mandatory: config.mandatory,
            message_bytes_max: config.message_bytes_max,
            source: setting::source(&config.source)?,
            timeout: setting::timeout(config.timeout_ms)?,
            line: Reconnecting::none(),
        })
    }

    async fn connect(&self, deadline: Instant) -> Result<Session, SinkDown> {
        let late = |_| SinkDown::now(&self.place.name, format!("no connection within {:?}", self.timeout));
        tokio::time::timeout_at(deadline, Session::connect(&self.place)).await.map_err(late)?
    }

    /// Returns the message of an event, or why the event cannot be represented.
    fn outgoing<'a>(&'a self, event: &'a Event) -> Result<Outgoing<'a>, String> {
        let message = Message::new(event, &self.source);
        let bytes = message.body().len();
        if bytes > self.message_bytes_max {
            let max = self.message_bytes_max;
            return Err(format!("its payload has {bytes} bytes; `message_bytes_max` is {max}"));
        }
        let short = |what: &str, text: String| {
            let bytes = text.len();
            let why = |_| format!("{what} has {bytes} bytes; AMQP allows at most {SHORT_BYTES_MAX}");
            ShortString::try_new(text).map_err(why)
        };
        let mut headers = FieldTable::default();
        let text = |value: &str| AMQPValue::LongString(LongString::from(value));
        for (name, value) in message.attributes() {
            headers.insert(short("an attribute", format!("cloudEvents:{name}"))?, text(&value));
        }
        for (name, value) in message.own_headers(&["cc", "bcc"]) {
            headers.insert(short("the name of a header", name.to_owned())?, text(value));
        }
        let id = event.id.to_string();
        let properties = BasicProperties::default()
            .with_message_id(short("the id", id.clone())?)
            .with_content_type(CONTENT_TYPE.into())
            .with_delivery_mode(PERSISTENT)
            .with_headers(headers);
        let routing_key = short("its routing key", self.routing_key.plain(event))?;
        Ok(Outgoing { id, routing_key, properties, body: message.body() })
    }
}

#[async_trait]
impl Sink for Rabbitmq {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let deadline = Instant::now() + self.timeout;
        let line = self.line.get(self.connect(deadline)).await?;
        let outgoing: Vec<_> = events.iter().map(|event| self.outgoing(event)).collect();
        let acceptable = outgoing.iter().filter_map(|outgoing| outgoing.as_ref().ok());
        let published = line.publish(acceptable, &self.exchange, self.mandatory, deadline).await;
        let mut published = match published {
            Ok(published) => published.into_iter(),
            Err(why) => {
                self.line.forget(&line).await;
                return Err(SinkDown::now(&self.place.name, why));
            }
        };
        let delivery = |outgoing: &Result<Outgoing<'_>, String>| match outgoing {
            Err(why) => Delivery::Unacceptable { why: why.clone() },
            Ok(_) => {
                published.next().unwrap_or_else(|| Delivery::Unknown { why: "it was not sent".to_owned() })
            }
        };
        Ok(outgoing.iter().map(delivery).collect())
    }
}

//! Source of events: a RabbitMQ queue.

use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use lapin::Acker;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
};
use lapin::types::{AMQPValue, FieldTable};

use super::reading;
use super::{Incoming, InvalidSource, Receipt, Source, SourceDown, reply};
use crate::sink::rabbitmq::address::Address;

/// Name of the connection, as the server lists it.
const CLIENT: &str = "milepost-consumer";
/// How often the connection is checked while no message arrives.
const CONNECTION_CHECK_EVERY: Duration = Duration::from_secs(5);
/// Prefix of attribute names in AMQP.
const PREFIX: &str = "cloudEvents:";
/// Prefixes of headers that queues add.
const THEIRS: &[&str] = &["x-"];

/// Messages of a queue. A message that is not an event is rejected: the server sends it to the dead letter exchange of the queue, if it has one.
#[derive(Debug)]
pub struct RabbitmqSource {
    place: Address,
    queue: String,
    prefetch: u16,
    line: Option<Session>,
}

struct Session {
    messages: lapin::Consumer,
    // Dropping it closes the connection.
    connection: lapin::Connection,
}

impl Session {
    /// Waits for the next message. The driver does not always end the messages of a connection that was lost.
    async fn next(&mut self) -> Option<lapin::Result<Delivery>> {
        loop {
            match tokio::time::timeout(CONNECTION_CHECK_EVERY, self.messages.next()).await {
                Ok(next) => return next,
                Err(_) if self.connection.status().connected() => {}
                Err(_) => return None,
            }
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(…)")
    }
}

impl RabbitmqSource {
    /// Reads a queue, which must exist, of the server at `url` (`amqp://USER:PASSWORD@HOST:PORT/VHOST`).
    ///
    /// # Errors
    /// [`InvalidSource`] if the URL or the name is invalid.
    pub fn new(url: &str, queue: impl Into<String>) -> Result<Self, InvalidSource> {
        let queue = queue.into();
        if queue.is_empty() || queue.len() > 255 {
            let why = "it must be the name of a queue, with 1 to 255 bytes".to_owned();
            return Err(InvalidSource { setting: "queue", why });
        }
        Ok(Self { place: Address::parse(url)?, queue, prefetch: 200, line: None })
    }

    /// Sets how many unacknowledged messages the server delivers, including those that wait for a retry. The default is 200.
    #[must_use]
    pub const fn prefetch(mut self, messages: u16) -> Self {
        self.prefetch = messages;
        self
    }

    async fn connect(&self) -> lapin::Result<Session> {
        let properties = lapin::ConnectionProperties::default()
            .with_connection_name(CLIENT.into())
            .with_auth_provider(self.place.login());
        let connection = lapin::Connection::connect_uri(self.place.uri.clone(), properties).await?;
        let channel = connection.create_channel().await?;
        channel.basic_qos(self.prefetch, BasicQosOptions::default()).await?;
        let options = BasicConsumeOptions::default();
        let queue = self.queue.as_str().into();
        let messages = channel.basic_consume(queue, "".into(), options, FieldTable::default()).await?;
        Ok(Session { messages, connection })
    }

    fn down(&self, why: String) -> SourceDown {
        SourceDown { place: self.place.name.clone(), why }
    }
}

#[async_trait]
impl Source for RabbitmqSource {
    async fn next(&mut self) -> Result<Incoming, SourceDown> {
        let line = match self.line.take() {
            Some(line) => line,
            None => reply(self.connect()).await.map_err(|why| self.down(why))?,
        };
        let line = self.line.insert(line);
        let Delivery { properties, data, acker, .. } = match line.next().await {
            Some(Ok(delivery)) => delivery,
            ended => {
                self.line = None;
                let why = ended
                    .and_then(Result::err)
                    .map_or("the connection or the consumer was closed".to_owned(), |e| e.to_string());
                return Err(self.down(why));
            }
        };
        let headers = properties.headers().clone().unwrap_or_default();
        let headers = headers.into_iter().filter_map(|(name, value)| match value {
            AMQPValue::LongString(text) => Some((name.to_string(), text.to_string())),
            AMQPValue::ShortString(text) => Some((name.to_string(), text.to_string())),
            _ => None,
        });
        let event = reading::read(&self.place.name, PREFIX, THEIRS, headers, data);
        Ok(Incoming { event, receipt: Box::new(acker) })
    }
}

#[async_trait]
impl Receipt for Acker {
    async fn acknowledge(self: Box<Self>) -> Result<(), String> {
        self.ack(BasicAckOptions::default()).await.map(drop).map_err(|error| error.to_string())
    }

    /// Delays the rejection, because the server redelivers a rejected message immediately.
    async fn retry(self: Box<Self>, after: Duration) -> Result<(), String> {
        let give_back = async move {
            tokio::time::sleep(after).await;
            let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
            reply(self.nack(options)).await.map(drop)
        };
        if after.is_zero() {
            return give_back.await;
        }
        // If the rejection is lost, the message is redelivered on the next connection.
        tokio::spawn(give_back);
        Ok(())
    }

    async fn refuse(self: Box<Self>) -> Result<(), String> {
        let options = BasicRejectOptions { requeue: false };
        self.reject(options).await.map(drop).map_err(|error| error.to_string())
    }
}

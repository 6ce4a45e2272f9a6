//! The connection to RabbitMQ.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::{AMQPErrorKind, AMQPHardError};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind, PublisherConfirm};
use tokio::time::Instant;

use super::place::Place;
use crate::sink::kept::Connection;
use crate::sink::{Delivery, SinkDown};

/// What the connection is called among the server's.
const CLIENT: &str = "milepost-relay";

/// A message that is to be published.
pub(super) struct Outgoing<'a> {
    pub(super) id: String,
    pub(super) routing_key: ShortString,
    pub(super) properties: BasicProperties,
    pub(super) body: &'a [u8],
}

/// A connection, and its channels that nobody uses just now.
///
/// A call has a channel for itself: which message came back is known by its id, but only that some message of the channel did is
/// told with the confirms, and not always with its own.
pub(super) struct Line {
    connection: lapin::Connection,
    idle: Mutex<Vec<Channel>>,
}

impl Connection for Line {
    fn is_usable(&self) -> bool {
        self.connection.status().connected()
    }
}

impl Line {
    /// Connects.
    pub(super) async fn connect(place: &Place) -> Result<Self, SinkDown> {
        let properties = lapin::ConnectionProperties::default()
            .with_connection_name(CLIENT.into())
            .with_auth_provider(place.login());
        match lapin::Connection::connect_uri(place.uri.clone(), properties).await {
            Ok(connection) => Ok(Self { connection, idle: Mutex::default() }),
            Err(error) => Err(SinkDown::now(&place.name, why_not_connected(&error))),
        }
    }

    /// Publishes messages, each to its routing key, and waits for their confirms.
    ///
    /// # Errors
    /// Why none was sent, or the server closed the channel before it confirmed any.
    pub(super) async fn publish<'a>(
        &self,
        messages: impl Iterator<Item = &'a Outgoing<'a>> + Send,
        exchange: &ShortString,
        mandatory: bool,
        deadline: Instant,
    ) -> Result<Vec<Delivery>, String> {
        let channel = match tokio::time::timeout_at(deadline, self.channel()).await {
            Ok(Ok(channel)) => channel,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("no channel in time".to_owned()),
        };
        let options = BasicPublishOptions { mandatory, ..BasicPublishOptions::default() };
        let mut sent = Vec::new();
        for Outgoing { id, routing_key, properties, body } in messages {
            let publishing = channel.basic_publish(
                exchange.clone(),
                routing_key.clone(),
                options,
                body,
                properties.clone(),
            );
            let confirm = match tokio::time::timeout_at(deadline, publishing).await {
                Ok(Ok(confirm)) => Ok(confirm),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("it was not sent in time".to_owned()),
            };
            sent.push((id.as_str(), confirm));
        }
        let (answers, returned) = confirms(sent, deadline).await;
        if answers.iter().all(|(_, answer)| answer.is_ok()) {
            self.give_back(channel);
        } else if let Some(why) = refused_all(&answers) {
            return Err(why);
        }
        Ok(answers.into_iter().map(|(id, answer)| delivery(answer, returned.get(id))).collect())
    }

    async fn channel(&self) -> lapin::Result<Channel> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(channel) = idle.filter(|channel| channel.status().connected()) {
            return Ok(channel);
        }
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    fn give_back(&self, channel: Channel) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(channel);
    }
}

/// A message by its id, and its confirm to come, or why it was not sent.
type Sent<'a> = (&'a str, Result<PublisherConfirm, String>);

/// What the server said of a message: whether it took it, or why nobody knows.
type Answer = Result<bool, Why>;

struct Why {
    text: String,
    /// The server closed the channel, and said so.
    said: bool,
}

/// Waits for all confirms; the messages that came back, by their ids, are only known then.
async fn confirms(sent: Vec<Sent<'_>>, deadline: Instant) -> (Vec<(&str, Answer)>, HashMap<String, String>) {
    let (mut answers, mut returned) = (Vec::with_capacity(sent.len()), HashMap::new());
    for (id, confirm) in sent {
        let silent = |text: String| Why { text, said: false };
        let answer = match confirm {
            Err(text) => Err(silent(text)),
            Ok(confirm) => match tokio::time::timeout_at(deadline, confirm).await {
                Err(_) => Err(silent("no confirm in time".to_owned())),
                Ok(Err(error)) => Err(Why { text: error.to_string(), said: error.is_amqp_soft_error() }),
                Ok(Ok(confirmation)) => Ok(take(confirmation, &mut returned)),
            },
        };
        answers.push((id, answer));
    }
    (answers, returned)
}

/// Whether the server took a message; what came back with its confirm is noted.
fn take(confirmation: Confirmation, returned: &mut HashMap<String, String>) -> bool {
    let taken = confirmation.is_ack();
    if let Some(message) = confirmation.take_message() {
        let id = message.delivery.properties.message_id().as_ref().map(ToString::to_string);
        let why = format!("it came back: {} ({})", message.reply_text, message.reply_code);
        returned.extend(id.map(|id| (id, why)));
    }
    taken
}

/// Why the server closed the channel before it took anything, as when there is no such exchange.
fn refused_all(answers: &[(&str, Answer)]) -> Option<String> {
    let said = answers.iter().find_map(|(_, answer)| answer.as_ref().err().filter(|why| why.said));
    let none_taken = answers.iter().all(|(_, answer)| answer.is_err());
    said.filter(|_| none_taken).map(|why| why.text.clone())
}

fn delivery(answer: Answer, returned: Option<&String>) -> Delivery {
    match (answer, returned) {
        (_, Some(why)) => Delivery::Refused { why: why.clone() },
        (Ok(true), None) => Delivery::Acknowledged,
        (Ok(false), None) => Delivery::Refused {
            why: "the server did not take it over (nack): a queue is full or failed".to_owned(),
        },
        (Err(why), None) => Delivery::Unknown { why: why.text },
    }
}

fn why_not_connected(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(said) if is_access_refused(said.kind()) => {
            format!("it refuses the user, password or virtual host: {}", said.get_message())
        }
        _ => error.to_string(),
    }
}

fn is_access_refused(kind: &AMQPErrorKind) -> bool {
    use lapin::protocol::AMQPSoftError;
    matches!(
        kind,
        AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED) | AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED)
    )
}

//! Connection to RabbitMQ.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::{AMQPErrorKind, AMQPHardError};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind, PublisherConfirm};
use tokio::time::Instant;

use super::address::Address;
use crate::sink::reconnecting::Connection;
use crate::sink::{Delivery, SinkDown};

/// Name of the connection, as the server lists it.
const CLIENT: &str = "milepost-relay";

/// A message to be published.
pub(super) struct Outgoing<'a> {
    pub(super) id: String,
    pub(super) routing_key: ShortString,
    pub(super) properties: BasicProperties,
    pub(super) body: &'a [u8],
}

/// A connection and its idle channels.
///
/// Each call uses a separate channel. A returned message is identified by its id, but the confirms only report that some message of the channel was
/// returned, and not always with the confirm of that message.
pub(super) struct Session {
    connection: lapin::Connection,
    idle: Mutex<Vec<Channel>>,
}

impl Connection for Session {
    fn is_usable(&self) -> bool {
        self.connection.status().connected()
    }
}

impl Session {
    /// Opens a connection.
    pub(super) async fn connect(place: &Address) -> Result<Self, SinkDown> {
        let properties = lapin::ConnectionProperties::default()
            .with_connection_name(CLIENT.into())
            .with_auth_provider(place.login());
        match lapin::Connection::connect_uri(place.uri.clone(), properties).await {
            Ok(connection) => Ok(Self { connection, idle: Mutex::default() }),
            Err(error) => Err(SinkDown::now(&place.name, why_not_connected(&error))),
        }
    }

    /// Publishes messages, each with its routing key, and waits for their confirms.
    ///
    /// # Errors
    /// If no message was sent, or the server closed the channel before it confirmed any.
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
            Err(_) => return Err("no channel was opened in time".to_owned()),
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

/// The id of a message, and its pending confirm or the reason why it was not sent.
type Sent<'a> = (&'a str, Result<PublisherConfirm, String>);

/// The result of a message: whether the server accepted it, or why the result is unknown.
type Confirmed = Result<bool, Why>;

struct Why {
    text: String,
    /// Whether the server closed the channel and gave this reason.
    said: bool,
}

/// Waits for all confirms. The returned messages, by id, are known only after that.
async fn confirms(
    sent: Vec<Sent<'_>>,
    deadline: Instant,
) -> (Vec<(&str, Confirmed)>, HashMap<String, String>) {
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

/// Returns whether the server accepted a message. Records the message that was returned with its confirm.
fn take(confirmation: Confirmation, returned: &mut HashMap<String, String>) -> bool {
    let taken = confirmation.is_ack();
    if let Some(message) = confirmation.take_message() {
        let id = message.delivery.properties.message_id().as_ref().map(ToString::to_string);
        let why = format!("the server returned it: {} ({})", message.reply_text, message.reply_code);
        returned.extend(id.map(|id| (id, why)));
    }
    taken
}

/// Returns why the server closed the channel before it accepted anything, for example because the exchange does not exist.
fn refused_all(answers: &[(&str, Confirmed)]) -> Option<String> {
    let said = answers.iter().find_map(|(_, answer)| answer.as_ref().err().filter(|why| why.said));
    let none_taken = answers.iter().all(|(_, answer)| answer.is_err());
    said.filter(|_| none_taken).map(|why| why.text.clone())
}

fn delivery(answer: Confirmed, returned: Option<&String>) -> Delivery {
    match (answer, returned) {
        (_, Some(why)) => Delivery::Refused { why: why.clone() },
        (Ok(true), None) => Delivery::Acknowledged,
        (Ok(false), None) => Delivery::Refused {
            why: "the server did not accept it (nack): a queue is full or failed".to_owned(),
        },
        (Err(why), None) => Delivery::Unknown { why: why.text },
    }
}

fn why_not_connected(error: &lapin::Error) -> String {
    match error.kind() {
        ErrorKind::ProtocolError(said) if is_access_refused(said.kind()) => {
            format!("it rejects the user, password or virtual host: {}", said.get_message())
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

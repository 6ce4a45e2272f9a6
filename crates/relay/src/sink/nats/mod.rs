//! Sink: NATS JetStream.

pub(crate) mod session;
mod subject;

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::{HeaderMap, HeaderName};
use async_trait::async_trait;
use futures::StreamExt;
use milepost_core::event::Event;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::Instant;

use self::session::{Address, PublishResult, Session};
use self::subject::Subjects;
use super::reconnecting::Reconnecting;
use super::setting::{self, InvalidSink, SecretUrl};
use super::{Delivery, Sink, SinkDown};
use crate::message::{CONTENT_TYPE, Message};

/// How many messages of a call may be in flight at the same time.
const IN_FLIGHT_MAX: usize = 4_096;

/// JetStream. An acknowledgement means that the stream has stored the message (`PubAck`), on as many servers as it has replicas.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NatsConfig {
    /// The URL of the server: `nats://USER:PASSWORD@HOST:PORT`, `nats://TOKEN@HOST`, or `tls://…` for TLS. Separate several
    /// servers of a cluster by commas.
    pub url: SecretUrl,
    /// The subject of an event. The default is `milepost.{aggregate_type}.{event_type}`.
    #[serde(default = "subject_default")]
    pub subject: String,
    /// A stream to create if it does not exist, for all subjects that begin like `subject`. Without this setting, create the stream yourself.
    #[serde(default)]
    pub create_stream: Option<String>,
    /// The CloudEvents attribute `source` of all events. The default is `milepost`.
    #[serde(default = "setting::source_default")]
    pub source: String,
    /// The time limit of a call. The default is 5000.
    #[serde(default = "setting::timeout_default_ms")]
    pub timeout_ms: u64,
}

fn subject_default() -> String {
    "milepost.{aggregate_type}.{event_type}".to_owned()
}

/// Publishes events to JetStream.
#[derive(Debug)]
pub(super) struct Nats {
    place: Address,
    subjects: Subjects,
    create_stream: Option<String>,
    source: String,
    timeout: Duration,
    line: Reconnecting<Session>,
}

impl Nats {
    pub(super) fn open(config: &NatsConfig) -> Result<Self, InvalidSink> {
        let subjects = Subjects::new(setting::template("subject", &config.subject)?)?;
        if let Some(stream) = &config.create_stream {
            subjects.check_stream(stream)?;
        }
        Ok(Self {
            place: Address::parse(config.url.expose())?,
            subjects,
            create_stream: config.create_stream.clone(),
            source: setting::source(&config.source)?,
            timeout: setting::timeout(config.timeout_ms)?,
            line: Reconnecting::none(),
        })
    }

    async fn connect(&self, deadline: Instant) -> Result<Session, SinkDown> {
        let connecting = async {
            let line = Session::connect(&self.place, self.timeout).await?;
            if let Some(stream) = &self.create_stream {
                line.create_stream(stream, self.subjects.all()).await?;
            }
            Ok(line)
        };
        let late = |_| SinkDown::now(&self.place.name, format!("no connection within {:?}", self.timeout));
        tokio::time::timeout_at(deadline, connecting).await.map_err(late)?
    }

    async fn publish_one(&self, line: &Session, event: &Event, deadline: Instant) -> PublishResult {
        match self.outgoing(event) {
            Ok((subject, message)) => line.publish(subject, message, deadline).await,
            Err(why) => PublishResult::Known(Delivery::Unacceptable { why }),
        }
    }

    /// Returns the subject and the message of an event, or why the event cannot be represented.
    fn outgoing(&self, event: &Event) -> Result<(String, PublishMessage), String> {
        let message = Message::new(event, &self.source);
        let mut headers = HeaderMap::new();
        for (name, value) in message.attributes() {
            headers.insert(format!("ce-{name}"), in_one_line(&value));
        }
        headers.insert("content-type", CONTENT_TYPE);
        for (name, value) in message.own_headers(&["nats-"]) {
            let known: HeaderName =
                name.parse().map_err(|_| format!("{name:?} is not a valid NATS header name"))?;
            headers.insert(known, in_one_line(value));
        }
        let publish = PublishMessage::build()
            .headers(headers)
            .message_id(event.id.to_string())
            .payload(message.body().to_vec().into());
        Ok((self.subjects.of(event)?, publish))
    }

    /// Returns the deliveries, or an error if no stream accepted any message.
    fn deliveries(&self, answers: Vec<PublishResult>) -> Result<Vec<Delivery>, SinkDown> {
        let known = answers.iter().any(|answer| matches!(answer, PublishResult::Known(_)));
        let mut deliveries = Vec::with_capacity(answers.len());
        for answer in answers {
            deliveries.push(match answer {
                PublishResult::Known(delivery) => delivery,
                PublishResult::NoStream { subject } => {
                    let why = self.no_stream(&subject);
                    if !known {
                        return Err(SinkDown::now(&self.place.name, why));
                    }
                    Delivery::Refused { why }
                }
            });
        }
        Ok(deliveries)
    }

    fn no_stream(&self, subject: &str) -> String {
        let all = self.subjects.all();
        let remedy = match &self.create_stream {
            Some(stream) => {
                format!("the stream {stream} is created if it is missing, for the subjects '{all}'")
            }
            None => format!(
                "create one, as with `nats stream add EVENTS --subjects '{all}'`, or name it in `create_stream`"
            ),
        };
        format!("no JetStream stream accepts the subject {subject:?}, or JetStream is not ready; {remedy}")
    }
}

#[async_trait]
impl Sink for Nats {
    async fn publish(&self, events: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        let deadline = Instant::now() + self.timeout;
        let line = self.line.get(self.connect(deadline)).await?;
        let publishing: Vec<_> =
            events.iter().map(|event| self.publish_one(&line, event, deadline)).collect();
        let answers: Vec<_> = futures::stream::iter(publishing).buffered(IN_FLIGHT_MAX).collect().await;
        let is_missing = answers.iter().any(|answer| matches!(answer, PublishResult::NoStream { .. }));
        if let Some(stream) = self.create_stream.as_ref().filter(|_| is_missing) {
            // Deleted since the connection was opened. The next attempt finds it.
            line.create_stream(stream, self.subjects.all()).await?;
        }
        self.deliveries(answers)
    }
}

/// Replaces line breaks: a header value must be one line.
fn in_one_line(value: &str) -> String {
    value.replace(['\r', '\n'], " ")
}

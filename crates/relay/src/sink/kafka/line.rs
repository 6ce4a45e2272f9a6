//! The connection to Kafka: a producer of librdkafka.

use std::sync::{Arc, Mutex, PoisonError};

use milepost_core::event::Event;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer as _};
use rdkafka::{ClientConfig, ClientContext};
use tokio::time::{Instant, timeout_at};

use super::settings::in_words;
use crate::sink::Delivery;
use crate::sink::kept::Connection;

/// A message that is to be published.
pub(super) struct Outgoing<'a> {
    pub(super) event: &'a Event,
    pub(super) topic: String,
    pub(super) headers: OwnedHeaders,
}

/// What became of a message.
pub(super) enum Answer {
    Known(Delivery),
    /// There is no such topic, or not for us.
    NoTopic(String),
}

/// A producer, and what it last complained of.
///
/// It is kept through all failures but fatal ones. Its messages stand in one line for each partition, and what it has given up on is
/// closed off by a new epoch before anything else is sent, so that no late copy of a message comes in behind those that follow.
/// Another producer would know nothing of it.
pub(super) struct Line {
    producer: FutureProducer<Complaints>,
    complaints: Complaints,
    /// A topic of which nobody answered; the brokers are asked about it before more is sent.
    doubted: Mutex<Option<String>>,
}

impl Line {
    /// A producer that has not been heard of yet.
    pub(super) fn new(settings: &ClientConfig, topic: &str) -> Result<Self, String> {
        let complaints = Complaints::default();
        let producer = settings.create_with_context(complaints.clone()).map_err(|error| in_words(&error))?;
        Ok(Self { producer, complaints, doubted: Mutex::new(Some(topic.to_owned())) })
    }

    /// Makes sure that brokers answer, if they lately did not.
    ///
    /// # Errors
    /// Why they do not.
    pub(super) async fn check(&self, deadline: Instant) -> Result<(), String> {
        let doubted = self.doubted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(topic) = doubted else { return Ok(()) };
        let producer = self.producer.clone();
        let left = deadline.saturating_duration_since(Instant::now());
        // Asks again and again until the time is over.
        let asking = tokio::task::spawn_blocking(move || {
            producer.client().fetch_metadata(Some(&topic), left).map(drop)
        });
        let why = match timeout_at(deadline, asking).await {
            Ok(Ok(Ok(()))) => {
                *self.doubted.lock().unwrap_or_else(PoisonError::into_inner) = None;
                self.complaints.forget();
                return Ok(());
            }
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(_)) | Err(_) => "no answer in time".to_owned(),
        };
        Err(self.complaints.last().unwrap_or(why))
    }

    fn doubt(&self, topic: String) {
        self.doubted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(topic);
    }

    /// Hands messages over and waits for their answers.
    pub(super) async fn publish(&self, messages: Vec<Outgoing<'_>>, deadline: Instant) -> Vec<Answer> {
        let sent: Vec<_> = messages.into_iter().map(|message| self.send(message)).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for (topic, sent) in sent {
            let result = match sent {
                Err(why) => Err(why),
                Ok(report) => match timeout_at(deadline, report).await {
                    Ok(Ok(Ok(_))) => Ok(()),
                    Ok(Ok(Err((error, _)))) => Err(Failure::Reported(error)),
                    Ok(Err(_)) => Err(Failure::Silence("the producer is gone")),
                    Err(_) => Err(Failure::Silence("no answer in time")),
                },
            };
            answers.push(match result {
                Ok(()) => Answer::Known(Delivery::Acknowledged),
                Err(failure) => self.failed(&failure, topic),
            });
        }
        answers
    }

    fn send(&self, message: Outgoing<'_>) -> (String, Result<DeliveryFuture, Failure>) {
        let Outgoing { event, topic, headers } = message;
        let record =
            FutureRecord::to(&topic).key(&event.aggregate.id).payload(event.payload.get()).headers(headers);
        let sent = self.producer.send_result(record).map_err(|(error, _)| match error {
            KafkaError::MessageProduction(Code::MessageSizeTooLarge) => {
                Failure::TooLarge { bytes: event.payload.get().len() }
            }
            KafkaError::MessageProduction(Code::QueueFull) => Failure::Full,
            error => Failure::Reported(error),
        });
        (topic, sent)
    }

    fn failed(&self, failure: &Failure, topic: String) -> Answer {
        let (code, words) = match failure {
            Failure::TooLarge { bytes } => {
                let why =
                    format!("its payload has {bytes} bytes; with headers it is over `message_bytes_max`");
                return Answer::Known(Delivery::Unacceptable { why });
            }
            Failure::Full => {
                let why = "too much waits to be sent already".to_owned();
                return Answer::Known(Delivery::Refused { why });
            }
            Failure::Silence(words) => (None, (*words).to_owned()),
            Failure::Reported(error) => (error.rdkafka_error_code(), error.to_string()),
        };
        match code {
            Some(code) if is_about_topic(code) => {
                let answer = Answer::NoTopic(format!("the topic {topic:?}: {words}"));
                self.doubt(topic);
                answer
            }
            Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge) => {
                Answer::Known(Delivery::Refused {
                    why: format!(
                        "a broker takes no batches of this size; set `message_bytes_max` to what the topic {topic:?} takes \
                         (`max.message.bytes`), or less"
                    ),
                })
            }
            Some(code) if is_refusal(code) => Answer::Known(Delivery::Refused { why: words }),
            _ => {
                self.doubt(topic);
                let why = match self.complaints.last() {
                    Some(complaint) => format!("{words}; {complaint}"),
                    None => words,
                };
                Answer::Known(Delivery::Unknown { why })
            }
        }
    }
}

impl Connection for Line {
    fn is_usable(&self) -> bool {
        self.producer.client().fatal_error().is_none()
    }
}

/// Why a message has no acknowledgement.
enum Failure {
    TooLarge { bytes: usize },
    Full,
    Silence(&'static str),
    Reported(KafkaError),
}

/// Whether it says that a topic is missing, or not ours to write to. Other events of it would fare no better.
fn is_about_topic(code: Code) -> bool {
    matches!(
        code,
        Code::UnknownTopic
            | Code::UnknownPartition
            | Code::UnknownTopicOrPartition
            | Code::InvalidTopic
            | Code::TopicAuthorizationFailed
    )
}

/// Whether a broker says that it has looked at the message and does not have it.
fn is_refusal(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidMessage
            | Code::InvalidMessageSize
            | Code::InvalidRecord
            | Code::InvalidTimestamp
            | Code::PolicyViolation
            | Code::UnsupportedForMessageFormat
            | Code::UnsupportedCompressionType
    )
}

/// The last that librdkafka complained of: connections that cannot be made, passwords that are refused.
#[derive(Clone, Default)]
struct Complaints(Arc<Mutex<Option<String>>>);

impl Complaints {
    fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn last(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Complaints {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka");
        // That all are down says less than why the last one is.
        if error.rdkafka_error_code() != Some(Code::AllBrokersDown) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }
}

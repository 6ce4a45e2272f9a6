//! Connection to Kafka: a producer of librdkafka.

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
use crate::sink::reconnecting::Connection;

/// A message to be published.
pub(super) struct Outgoing<'a> {
    pub(super) event: &'a Event,
    pub(super) topic: String,
    pub(super) headers: OwnedHeaders,
}

/// The result of a message.
pub(super) enum PublishResult {
    Known(Delivery),
    /// The topic does not exist, or this client is not authorized for it.
    NoTopic(String),
}

/// A producer, and its last error.
///
/// It is kept after all failures except fatal ones. Its messages are queued for each partition; before it sends anything after an abandoned message,
/// the producer starts a new epoch, so that no late copy of that message arrives after the following ones. A new producer could not exclude such a
/// copy.
pub(super) struct Session {
    producer: FutureProducer<Complaints>,
    complaints: Complaints,
    /// A topic for which no broker answered. Its metadata is requested before more is sent.
    doubted: Mutex<Option<String>>,
}

impl Session {
    /// Creates a producer. Whether the brokers answer is checked before its first use.
    pub(super) fn new(settings: &ClientConfig, topic: &str) -> Result<Self, String> {
        let complaints = Complaints::default();
        let producer = settings.create_with_context(complaints.clone()).map_err(|error| in_words(&error))?;
        Ok(Self { producer, complaints, doubted: Mutex::new(Some(topic.to_owned())) })
    }

    /// Checks that the brokers answer, if they did not before.
    ///
    /// # Errors
    /// The reason why they do not answer.
    pub(super) async fn check(&self, deadline: Instant) -> Result<(), String> {
        let doubted = self.doubted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(topic) = doubted else { return Ok(()) };
        let producer = self.producer.clone();
        let left = deadline.saturating_duration_since(Instant::now());
        // librdkafka repeats the request until the timeout.
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

    /// Sends messages and waits for their results.
    pub(super) async fn publish(&self, messages: Vec<Outgoing<'_>>, deadline: Instant) -> Vec<PublishResult> {
        let sent: Vec<_> = messages.into_iter().map(|message| self.send(message)).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for (topic, sent) in sent {
            let result = match sent {
                Err(why) => Err(why),
                Ok(report) => match timeout_at(deadline, report).await {
                    Ok(Ok(Ok(_))) => Ok(()),
                    Ok(Ok(Err((error, _)))) => Err(Failure::Reported(error)),
                    Ok(Err(_)) => Err(Failure::Silence("the producer has ended")),
                    Err(_) => Err(Failure::Silence("no answer in time")),
                },
            };
            answers.push(match result {
                Ok(()) => PublishResult::Known(Delivery::Acknowledged),
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

    fn failed(&self, failure: &Failure, topic: String) -> PublishResult {
        let (code, words) = match failure {
            Failure::TooLarge { bytes } => {
                let why =
                    format!("its payload has {bytes} bytes; with headers it exceeds `message_bytes_max`");
                return PublishResult::Known(Delivery::Unacceptable { why });
            }
            Failure::Full => {
                let why = "the send queue is full".to_owned();
                return PublishResult::Known(Delivery::Refused { why });
            }
            Failure::Silence(words) => (None, (*words).to_owned()),
            Failure::Reported(error) => (error.rdkafka_error_code(), error.to_string()),
        };
        match code {
            Some(code) if is_about_topic(code) => {
                let answer = PublishResult::NoTopic(format!("the topic {topic:?}: {words}"));
                self.doubt(topic);
                answer
            }
            Some(Code::MessageSizeTooLarge | Code::MessageBatchTooLarge) => {
                PublishResult::Known(Delivery::Refused {
                    why: format!(
                        "a broker rejects batches of this size; set `message_bytes_max` to at most the limit of the topic \
                         {topic:?} (`max.message.bytes`)"
                    ),
                })
            }
            Some(code) if is_refusal(code) => PublishResult::Known(Delivery::Refused { why: words }),
            _ => {
                self.doubt(topic);
                let why = match self.complaints.last() {
                    Some(complaint) => format!("{words}; {complaint}"),
                    None => words,
                };
                PublishResult::Known(Delivery::Unknown { why })
            }
        }
    }
}

impl Connection for Session {
    fn is_usable(&self) -> bool {
        self.producer.client().fatal_error().is_none()
    }
}

/// The reason why a message was not acknowledged.
enum Failure {
    TooLarge { bytes: usize },
    Full,
    Silence(&'static str),
    Reported(KafkaError),
}

/// Returns whether the topic does not exist or this client may not write to it. Other events for this topic would fail as well.
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

/// Returns whether a broker has rejected the message, so that it certainly does not have it.
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

/// The last error that librdkafka reported, for example a failed connection or a rejected password.
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
        // "All brokers down" is less informative than the error of the last broker.
        if error.rdkafka_error_code() != Some(Code::AllBrokersDown) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_owned());
        }
    }
}

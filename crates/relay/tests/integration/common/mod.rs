//! Checks that every sink must pass: functions over a sink and a reader of its broker.

pub(crate) mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_relay::sink::{self, Delivery, Sink, SinkConfig, SinkDown};
use milepost_testkit::wait;
use serde_json::value::RawValue;

/// A message as a consumer receives it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The subject, routing key or stream.
    pub(crate) key: String,
    /// The CloudEvents attributes, without their prefix.
    pub(crate) attributes: BTreeMap<String, String>,
    /// All other headers.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    /// Splits the headers into attributes and other headers.
    pub(crate) fn new(
        key: String,
        prefix: &str,
        all: impl Iterator<Item = (String, String)>,
        body: Vec<u8>,
    ) -> Self {
        let (mut attributes, mut headers) = (BTreeMap::new(), BTreeMap::new());
        for (name, value) in all {
            match name.strip_prefix(prefix) {
                Some(name) => attributes.insert(name.to_owned(), value),
                None => headers.insert(name, value),
            };
        }
        Self { key, attributes, headers, body }
    }

    pub(crate) fn id(&self) -> &str {
        &self.attributes["id"]
    }
}

/// Reads all messages of a broker from the beginning.
#[async_trait]
pub(crate) trait Reader: Send + Sync {
    async fn messages(&self) -> Vec<Received>;

    /// Returns how often the broker has each id.
    async fn times(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        for message in self.messages().await {
            *times.entry(message.id().to_owned()).or_default() += 1;
        }
        times
    }
}

/// Parses settings as in a configuration file. Unless they set `timeout_ms`, the time limit of a call is longer than the default, which can expire on
/// a busy machine although nothing is wrong.
fn config(toml: &str) -> SinkConfig {
    let says_so = toml.contains("timeout_ms") || toml.contains("\"null\"");
    let more = if says_so { "" } else { "\ntimeout_ms = 30000\n" };
    toml::from_str(&format!("{toml}{more}")).expect("unknown settings")
}

/// Opens the sink of these settings.
pub(crate) fn open(toml: &str) -> Arc<dyn Sink> {
    sink::open(&config(toml)).expect("invalid settings")
}

/// Returns why a sink cannot be opened or used.
pub(crate) async fn trouble(toml: &str) -> String {
    let config = config(toml);
    let why = match sink::open(&config) {
        Err(invalid) => invalid.to_string(),
        Ok(sink) => {
            let down = sink.publish(&events("order", 1)).await.expect_err("the sink accepted events");
            format!("{down} {sink:?}")
        }
    };
    format!("{why} {config:?}")
}

pub(crate) fn event(kind: &str, id: impl Into<String>, payload: &str) -> Event {
    Event {
        id: EventId::new(),
        aggregate: Aggregate::new(kind, id),
        sequence: 1,
        event_type: "order.paid".to_owned(),
        payload: RawValue::from_string(payload.to_owned()).expect("JSON"),
        headers: BTreeMap::from([("traceparent".to_owned(), "00-4bf92f35-00f0-01".to_owned())]),
        emitted_at: "2026-03-01T12:00:00.123456Z".parse().expect("a time"),
    }
}

/// Returns `count` events, each of a different aggregate.
pub(crate) fn events(kind: &str, count: usize) -> Vec<Event> {
    (0..count).map(|n| event(kind, n.to_string(), &format!(r#"{{"n": {n}}}"#))).collect()
}

/// Publishes events and checks that all are acknowledged.
pub(crate) async fn publish_all(sink: &dyn Sink, events: &[Event]) {
    let deliveries = sink.publish(events).await.expect("the sink accepted no events");
    assert_eq!(deliveries, vec![Delivery::Acknowledged; events.len()]);
}

pub(crate) async fn events_arrive_once_and_as_they_are(
    sink: &dyn Sink,
    reader: &dyn Reader,
    key: impl Fn(&Event) -> String,
) {
    let mut sent = events("order", 3);
    // A payload that careless serialization would change: key order, blanks, number formats, escapes, other scripts.
    sent.push(event(
        "order",
        "a b/ü.*>",
        "{ \"z\":1, \"a\" : 1.10, \"e\":\"\\u00fc ü \\n\", \"big\":12345678901234567890 }",
    ));
    sent[1].sequence = 7;
    sent[2].headers = BTreeMap::from([("x-shop".to_owned(), "Grün & Söhne".to_owned())]);
    publish_all(sink, &sent).await;
    let received = reader.messages().await;
    assert_eq!(received.len(), sent.len());
    for event in &sent {
        let message = received
            .iter()
            .find(|message| message.id() == event.id.to_string())
            .expect("the event did not arrive");
        let said = |name: &str| message.attributes[name].as_str();
        assert_eq!((said("specversion"), said("source"), said("type")), ("1.0", "milepost", "order.paid"));
        assert_eq!((said("aggregatetype"), said("aggregateid")), ("order", event.aggregate.id.as_str()));
        assert_eq!(
            (said("subject"), said("time")),
            (event.aggregate.id.as_str(), "2026-03-01T12:00:00.123456Z")
        );
        assert_eq!(said("aggregateseq"), event.sequence.to_string());
        assert_eq!(message.headers["content-type"], "application/json");
        for (name, value) in &event.headers {
            assert_eq!(message.headers.get(name), Some(value), "{name}");
        }
        assert_eq!(message.body, event.payload.get().as_bytes());
        assert_eq!(message.key, key(event));
    }
}

pub(crate) async fn two_thousand_events_of_one_call_arrive(sink: &dyn Sink, reader: &dyn Reader) {
    let sent = events("order", 2_000);
    publish_all(sink, &sent).await;
    assert_eq!(reader.times().await, sent.iter().map(|event| (event.id.to_string(), 1)).collect());
}

/// `bytes` must be more than the broker accepts.
pub(crate) async fn what_is_too_large_is_unacceptable_and_the_others_arrive(
    sink: &dyn Sink,
    reader: &dyn Reader,
    bytes: usize,
) {
    let mut sent = events("order", 5);
    sent[2].payload = RawValue::from_string(format!("\"{}\"", "x".repeat(bytes))).expect("JSON");
    let deliveries = sink.publish(&sent).await.expect("the sink accepted no events");
    for (n, delivery) in deliveries.iter().enumerate() {
        match delivery {
            Delivery::Unacceptable { why } if n == 2 => assert!(why.contains(char::is_numeric), "{why}"),
            delivery => assert!(n != 2 && *delivery == Delivery::Acknowledged, "{n}: {delivery:?}"),
        }
    }
    let others = sent.iter().enumerate().filter(|(n, _)| *n != 2).map(|(_, event)| (event.id.to_string(), 1));
    assert_eq!(reader.times().await, others.collect());
}

/// Publishes until the sink works again. Every answer before that must be a failure.
pub(crate) async fn until_it_works_again(sink: &dyn Sink) {
    let event = events("order", 1);
    wait::until("the sink works again", || async {
        match sink.publish(&event).await {
            Ok(deliveries) => {
                assert!(
                    matches!(deliveries[..], [Delivery::Acknowledged | Delivery::Unknown { .. }]),
                    "{deliveries:?}"
                );
                deliveries == [Delivery::Acknowledged]
            }
            Err(SinkDown { for_good, .. }) => {
                assert!(!for_good);
                tokio::time::sleep(Duration::from_millis(20)).await;
                false
            }
        }
    })
    .await;
}

/// Call this when the broker is down.
pub(crate) async fn nothing_is_acknowledged_while_it_is_gone(sink: &dyn Sink) {
    for _ in 0..3 {
        if let Ok(deliveries) = sink.publish(&events("order", 3)).await {
            assert!(
                deliveries.iter().all(|delivery| matches!(delivery, Delivery::Unknown { .. })),
                "{deliveries:?}"
            );
        }
    }
    let down =
        sink.publish(&events("order", 1)).await.expect_err("the sink accepted events although it is down");
    assert!(!down.for_good && !down.why.is_empty(), "{down:?}");
}

/// Publishes while an answer is lost. Returns the event whose result is unknown.
pub(crate) async fn what_is_not_answered_is_unknown(
    sink: &dyn Sink,
    lose_answer: impl FnOnce(),
    is_lost: impl Fn() -> bool,
) -> Event {
    publish_all(sink, &events("order", 1)).await;
    let event = event("order", "lost", "1");
    lose_answer();
    let deliveries = sink.publish(std::slice::from_ref(&event)).await.expect("the sink accepted no events");
    assert!(is_lost(), "the answer was not lost");
    assert!(matches!(deliveries[..], [Delivery::Unknown { .. }]), "{deliveries:?}");
    event
}

pub(crate) fn ids(events: &[Event]) -> BTreeSet<String> {
    events.iter().map(|event| event.id.to_string()).collect()
}

/// Returns the address of the server that all tests share.
pub(crate) fn shared(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set; run `scripts/test`, or `scripts/services run cargo test`")
    })
}

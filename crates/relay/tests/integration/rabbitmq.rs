//! Tests of the RabbitMQ sink against a real server.

use crate::common;

use std::sync::Arc;

use crate::common::{Reader, Received};
use async_trait::async_trait;
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties};
use milepost_relay::sink::Delivery;
use milepost_testkit::proxy::Proxy;

/// Start of a method frame with which the server confirms messages (basic.ack).
const ACK: [u8; 4] = [0, 60, 0, 80];

/// A queue for one test, bound only to the default exchange. It is deleted with its connection.
struct Queue {
    name: String,
    channel: Channel,
    _connection: Connection,
}

fn url() -> String {
    common::shared("MILEPOST_TEST_RABBITMQ")
}

impl Queue {
    async fn make(arguments: &[(&str, AMQPValue)]) -> Self {
        let connection = Connection::connect(&url(), ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let name = format!("t{}.order", uuid::Uuid::now_v7().simple());
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), value.clone());
        }
        let options = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(name.as_str().into(), options, table).await.unwrap();
        Self { name, channel, _connection: connection }
    }

    fn settings(&self, url: &str) -> String {
        let prefix = self.name.strip_suffix("order").unwrap();
        format!("type = \"rabbitmq\"\nurl = \"{url}\"\nrouting_key = \"{prefix}{{aggregate_type}}\"\n")
    }
}

fn text(value: &AMQPValue) -> String {
    match value {
        AMQPValue::LongString(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Consumes the messages: a second call returns only later ones.
#[async_trait]
impl Reader for Queue {
    async fn messages(&self) -> Vec<Received> {
        let mut all = Vec::new();
        let options = BasicGetOptions { no_ack: true };
        while let Some(message) = self.channel.basic_get(self.name.as_str().into(), options).await.unwrap() {
            let properties = &message.delivery.properties;
            assert_eq!(*properties.delivery_mode(), Some(2), "the message is persistent");
            let headers = properties.headers().as_ref().unwrap();
            let mut headers: Vec<_> =
                headers.inner().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
            headers
                .push(("content-type".to_owned(), properties.content_type().as_ref().unwrap().to_string()));
            let key = message.delivery.routing_key.to_string();
            let received =
                Received::new(key, "cloudEvents:", headers.into_iter(), message.delivery.data.clone());
            assert_eq!(properties.message_id().as_ref().unwrap().as_str(), received.id());
            all.push(received);
        }
        all
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_as_they_are() {
    let queue = Queue::make(&[]).await;
    let sink = common::open(&queue.settings(&url()));
    common::events_arrive_once_and_as_they_are(&*sink, &queue, |_| queue.name.clone()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_events_of_one_call_arrive() {
    let queue = Queue::make(&[]).await;
    let sink = common::open(&(queue.settings(&url()) + "timeout_ms = 120000"));
    common::two_thousand_events_of_one_call_arrive(&*sink, &queue).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_unacceptable_and_the_others_arrive() {
    let queue = Queue::make(&[]).await;
    let sink = common::open(&(queue.settings(&url()) + "message_bytes_max = 100000"));
    common::what_is_too_large_is_unacceptable_and_the_others_arrive(&*sink, &queue, 100_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_no_queue_takes_are_refused_and_no_others() {
    let queue = Queue::make(&[]).await;
    let sink: Arc<_> = common::open(&queue.settings(&url()));
    // Concurrent calls, each of which has returned messages at different positions.
    let calls = (0..4).map(|call| {
        let sink = sink.clone();
        tokio::spawn(async move {
            let kind = |n: usize| if n % 7 == call { "nobody" } else { "order" };
            let sent: Vec<_> = (0..500).map(|n| common::event(kind(n), format!("{call}-{n}"), "1")).collect();
            let deliveries = sink.publish(&sent).await.unwrap();
            for (event, delivery) in sent.iter().zip(&deliveries) {
                match delivery {
                    Delivery::Refused { why } => {
                        assert!(event.aggregate.kind == "nobody" && why.contains("NO_ROUTE"), "{why}");
                    }
                    delivery => assert!(
                        event.aggregate.kind == "order" && *delivery == Delivery::Acknowledged,
                        "{delivery:?}"
                    ),
                }
            }
            common::ids(&sent.into_iter().filter(|event| event.aggregate.kind == "order").collect::<Vec<_>>())
        })
    });
    let mut routed = std::collections::BTreeSet::new();
    for call in calls.collect::<Vec<_>>() {
        routed.extend(call.await.unwrap());
    }
    assert_eq!(queue.times().await, routed.into_iter().map(|id| (id, 1)).collect());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mandatory_what_no_queue_takes_is_acknowledged_and_gone() {
    let settings =
        format!("type = \"rabbitmq\"\nurl = \"{}\"\nrouting_key = \"nobody\"\nmandatory = false\n", url());
    common::publish_all(&*common::open(&settings), &common::events("order", 3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_full_refuses() {
    let full = [
        ("x-max-length", AMQPValue::LongInt(1)),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
    ];
    let queue = Queue::make(&full).await;
    let sink = common::open(&queue.settings(&url()));
    common::publish_all(&*sink, &common::events("order", 1)).await;
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    assert!(matches!(&deliveries[..], [Delivery::Refused { why }] if why.contains("nack")), "{deliveries:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_that_is_missing_is_told() {
    let settings = format!("type = \"rabbitmq\"\nurl = \"{}\"\nexchange = \"nowhere\"\n", url());
    let why = common::trouble(&settings).await;
    assert!(why.contains("no exchange 'nowhere'"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_routing_key_that_is_too_long_is_unacceptable_and_the_others_arrive() {
    let queue = Queue::make(&[]).await;
    let sink = common::open(&queue.settings(&url()));
    let sent = [common::event(&"x".repeat(250), "1", "1"), common::event("order", "1", "1")];
    let deliveries = sink.publish(&sent).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Unacceptable { why }, Delivery::Acknowledged] if why.contains("routing key")),
        "{deliveries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_used_again_when_it_is_back() {
    let queue = Queue::make(&[]).await;
    let address = url().split_once('@').unwrap().1.to_owned();
    let proxy = Proxy::before(address).await;
    let sink = common::open(&(queue.settings(&format!("amqp://{}", proxy.address())) + "timeout_ms = 10000"));
    common::publish_all(&*sink, &common::events("order", 10)).await;
    proxy.shut(true);
    common::nothing_is_acknowledged_while_it_is_gone(&*sink).await;
    proxy.shut(false);
    common::until_it_works_again(&*sink).await;
    common::publish_all(&*sink, &common::events("order", 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_confirm_is_lost_is_unknown_and_published_again_it_is_there_twice() {
    let queue = Queue::make(&[]).await;
    let address = url().split_once('@').unwrap().1.to_owned();
    let proxy = Proxy::before(address).await;
    let sink = common::open(&queue.settings(&format!("amqp://{}", proxy.address())));
    let event = common::what_is_not_answered_is_unknown(
        &*sink,
        || proxy.lose_reply_with(&ACK),
        || proxy.has_lost_it(),
    )
    .await;
    common::publish_all(&*sink, std::slice::from_ref(&event)).await;
    assert_eq!(queue.times().await[&event.id.to_string()], 2, "both deliveries have the same id");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_without_it() {
    let address = url().split_once('@').unwrap().1.to_owned();
    let settings = |user: &str| format!("type = \"rabbitmq\"\nurl = \"amqp://{user}@{address}\"\n");
    let why = common::trouble(&settings("guest:wr0ng")).await;
    assert!(why.contains("rejects the user") && why.contains(&address) && !why.contains("wr0ng"), "{why}");
    let why = common::trouble("type = \"rabbitmq\"\nurl = \"amqp://ada:s3cret@h:x\"").await;
    assert!(why.contains("`url`") && !why.contains("s3cret"), "{why}");
}

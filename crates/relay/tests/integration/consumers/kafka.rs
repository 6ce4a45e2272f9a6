//! Consumers of Kafka, with the mock cluster of librdkafka.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::Event;
use milepost_relay::consumer::{Handler, InvalidSource, KafkaSource, Runner};
use milepost_relay::sink::Sink;
use milepost_testkit::wait;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::common;
use crate::consumers::broker::{BILLING, Broker, NO_EVENT};
use crate::consumers::checks;
use crate::consumers::checks::{history, publish, until_nothing_is_left};
use crate::consumers::takes::{Running, Takes};
use crate::kafka::Gone;

const TOPIC: &str = "milepost.order";
const PARTITIONS: i32 = 3;
/// Time limit for an answer of the brokers.
const ANSWER: Duration = wait::LIMIT;

type Cluster = MockCluster<'static, DefaultProducerContext>;

/// Returns a cluster for one test, with a topic.
fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
    cluster
}

struct Kafka {
    brokers: String,
}

impl Kafka {
    fn of(cluster: &Cluster) -> Self {
        Self { brokers: cluster.bootstrap_servers() }
    }

    fn source(&self) -> KafkaSource {
        let source = KafkaSource::new(&self.address(), [TOPIC], BILLING).unwrap();
        // The group notices members that join and leave quickly.
        let source = source.property("session.timeout.ms", "6000").unwrap();
        source.property("heartbeat.interval.ms", "500").unwrap()
    }

    /// Returns the number of messages after the committed offsets of the group.
    fn behind(&self) -> u64 {
        let asking: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.address())
            .set("group.id", BILLING)
            .create()
            .unwrap();
        let mut places = TopicPartitionList::new();
        places.add_partition_range(TOPIC, 0, PARTITIONS - 1);
        let known = asking.committed_offsets(places, ANSWER).unwrap();
        let of = |place: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
            let (first, end) = asking.fetch_watermarks(TOPIC, place.partition(), ANSWER).unwrap();
            match place.offset() {
                Offset::Offset(offset) => end - offset,
                _ => end - first,
            }
        };
        known.elements().iter().map(of).sum::<i64>().unsigned_abs()
    }
}

#[async_trait]
impl Broker for Kafka {
    fn sink(&self) -> Arc<dyn Sink> {
        common::open(&format!("type = \"kafka\"\nbrokers = \"{}\"\n", self.address()))
    }

    fn runner(&self, _: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        Runner::new(self.source(), handler)
    }

    fn address(&self) -> String {
        self.brokers.clone()
    }

    async fn publish_no_event(&self) {
        let producer: ThreadedProducer<_> =
            ClientConfig::new().set("bootstrap.servers", self.address()).create().unwrap();
        producer.send(BaseRecord::<str, str>::to(TOPIC).key("odd").payload(NO_EVENT)).unwrap();
        tokio::task::block_in_place(|| producer.flush(ANSWER)).unwrap();
    }

    async fn left(&self) -> u64 {
        tokio::task::block_in_place(|| self.behind())
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(6)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_has_its_effect_once_and_in_order() {
    let cluster = cluster();
    checks::whatever_fails_has_its_effect_once_and_in_order(&Kafka::of(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_no_event_holds_up_nothing() {
    let cluster = cluster();
    checks::a_message_that_is_no_event_holds_up_nothing(&Kafka::of(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_stops_ends_what_it_began_and_gives_back_the_rest() {
    let cluster = cluster();
    checks::one_that_stops_ends_what_it_began_and_gives_back_the_rest(&Kafka::of(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_is_given_up_is_gone_past_without_a_message() {
    let cluster = cluster();
    checks::a_gap_that_is_given_up_is_gone_past_without_a_message(&Kafka::of(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_gone_is_read_from_again_when_it_is_back() {
    let cluster = cluster();
    let kafka = Kafka::of(&cluster);
    let takes = Takes::new(false).await;
    publish(&kafka, &history(&["1"], 2)).await;
    let running = Running::start(kafka.runner(None, takes.clone()), &takes);
    wait::until("the first events are applied", || async { takes.effects("1").await == [1, 2] }).await;
    let gone = Gone::begin(&cluster);
    tokio::time::sleep(Duration::from_secs(1)).await;
    gone.end();
    publish(&kafka, &history(&["2"], 3)).await;
    wait::until("the later events are applied", || async { takes.effects("2").await == [1, 2, 3] }).await;
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1, 2]);
    until_nothing_is_left(&kafka, &takes).await;
}

/// The offset of a message is not committed before its handler has committed, even if later messages are finished.
#[tokio::test(flavor = "multi_thread")]
async fn no_position_is_kept_before_the_handler_has_committed() {
    let cluster = cluster();
    let kafka = Kafka::of(&cluster);
    let takes = Takes::new(false).await;
    takes.held.store(true, Ordering::SeqCst);
    publish(&kafka, &history(&["1"], 1)).await;
    let running = Running::start(kafka.runner(None, takes.clone()), &takes);
    takes.began.notified().await;
    takes.held.store(false, Ordering::SeqCst);
    // Events after it in the same partition, and events of other partitions.
    let others: Vec<String> = (2..30).map(|order| order.to_string()).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let events: Vec<Event> = history(&others, 1);
    publish(&kafka, &events).await;
    let taken = async || takes.desk.transactions.effects().await.len();
    wait::until("all other events are applied", || async { taken().await == events.len() }).await;
    let left = kafka.left().await;
    assert!(left >= 1, "the offset is not committed past the held event");
    takes.go_on.notify_one();
    wait::until("all offsets are committed", || async { kafka.left().await == 0 }).await;
    running.stop().await;
    assert_eq!(taken().await, events.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_come_and_go_share_the_partitions_and_nothing_is_lost_or_doubled() {
    let cluster = cluster();
    let kafka = Kafka::of(&cluster);
    let takes = Takes::new(true).await;
    let first = Running::start(kafka.runner(None, takes.clone()), &takes);
    let orders: Vec<String> = (1..=12).map(|order| order.to_string()).collect();
    let orders: Vec<&str> = orders.iter().map(String::as_str).collect();
    publish(&kafka, &history(&orders, 4)).await;
    wait::until("the first member applies events", || async {
        !takes.desk.transactions.effects().await.is_empty()
    })
    .await;
    // Each member has separate handlers, because an aggregate can be in progress in both while its partition is reassigned.
    let others = Takes::beside(&takes);
    let second = Running::start(kafka.runner(None, others.clone()), &others);
    let later: Vec<Event> = history(&orders, 8).into_iter().filter(|event| event.sequence > 4).collect();
    publish(&kafka, &later).await;
    let taken = async || takes.desk.transactions.effects().await.len();
    others.began.notified().await;
    first.stop().await;
    wait::until("all events are applied", || async { taken().await == 12 * 8 }).await;
    second.stop().await;
    for order in orders {
        assert_eq!(takes.effects(order).await, (1..=8).collect::<Vec<_>>(), "order {order}");
    }
    until_nothing_is_left(&kafka, &takes).await;
    assert_eq!(taken().await, 12 * 8);
}

#[test]
fn settings_that_cannot_be_used_are_told_without_secrets() {
    let source = || KafkaSource::new("broker:9092", [TOPIC], BILLING).unwrap();
    let told: Vec<InvalidSource> = vec![
        KafkaSource::new("ada:s3cret@broker", [TOPIC], BILLING).unwrap_err(),
        KafkaSource::new("broker:9092", Vec::<String>::new(), BILLING).unwrap_err(),
        KafkaSource::new("broker:9092", [TOPIC], "").unwrap_err(),
        source().property("enable.auto.commit", "true").unwrap_err(),
        source().property("sasl.passwort", "s3cret").unwrap_err(),
    ];
    let settings: Vec<&str> = told.iter().map(|told| told.setting).collect();
    assert_eq!(settings, ["brokers", "topics", "group", "properties", "properties"]);
    assert!(told.iter().all(|told| !told.to_string().contains("s3cret")), "{told:?}");
    let source = source().property("sasl.password", "s3cret").unwrap();
    assert!(!format!("{source:?}").contains("s3cret"));
}

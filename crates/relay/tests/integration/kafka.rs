//! Tests of the Kafka sink, with the mock cluster of librdkafka.

#![cfg(feature = "kafka")]

use crate::common;

use std::time::Duration;

use crate::common::{Reader, Received};
use async_trait::async_trait;
use milepost_core::event::Event;
use milepost_relay::sink::{Delivery, Sink};
use milepost_testkit::wait;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::net::TcpSocket;

const TOPIC: &str = "milepost.order";
const PARTITIONS: i32 = 3;

type Cluster = MockCluster<'static, DefaultProducerContext>;

/// Returns a cluster for one test, with a topic.
fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
    cluster
}

/// A cluster whose broker is gone. Its port stays bound: the mock broker aborts the process if another one has taken the port when it comes back.
pub(crate) struct Gone<'a> {
    cluster: &'a Cluster,
    _port: TcpSocket,
}

impl<'a> Gone<'a> {
    pub(crate) fn begin(cluster: &'a Cluster) -> Self {
        let port = TcpSocket::new_v4().unwrap();
        port.set_reuseaddr(true).unwrap();
        cluster.broker_down(1).unwrap();
        port.bind(cluster.bootstrap_servers().parse().unwrap()).unwrap();
        Self { cluster, _port: port }
    }

    /// Brings the broker back.
    pub(crate) fn end(self) {
        self.cluster.broker_up(1).unwrap();
    }
}

fn settings(cluster: &Cluster) -> String {
    format!("type = \"kafka\"\nbrokers = \"{}\"\n", cluster.bootstrap_servers())
}

/// The topic, read from the beginning.
struct Topic {
    brokers: String,
}

impl Topic {
    fn of(cluster: &Cluster) -> Self {
        Self { brokers: cluster.bootstrap_servers() }
    }

    fn read(&self) -> Vec<Received> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.brokers)
            .set("group.id", "test")
            .set("enable.partition.eof", "true")
            .create()
            .unwrap();
        let mut places = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            places.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
        }
        consumer.assign(&places).unwrap();
        let (mut all, mut open) = (Vec::new(), PARTITIONS);
        while open > 0 {
            match consumer.poll(wait::LIMIT).expect("the broker does not answer") {
                Ok(message) => all.push(received(&message)),
                Err(KafkaError::PartitionEOF(_)) => open -= 1,
                Err(error) => panic!("{error}"),
            }
        }
        all
    }

    /// Returns the sequences of an aggregate's events in the order of the topic.
    fn sequences(&self, aggregate: &str) -> Vec<i64> {
        let all = self.read();
        let its = all.iter().filter(|message| message.attributes["aggregateid"] == aggregate);
        its.map(|message| message.attributes["aggregateseq"].parse().unwrap()).collect()
    }
}

fn received(message: &impl Message) -> Received {
    let headers = message.headers().unwrap();
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    let headers = headers.iter().map(|header| (header.key.to_owned(), text(header.value)));
    let key = format!("{} in {}", text(message.key()), message.topic());
    Received::new(key, "ce_", headers, message.payload().unwrap().to_vec())
}

#[async_trait]
impl Reader for Topic {
    async fn messages(&self) -> Vec<Received> {
        tokio::task::block_in_place(|| self.read())
    }
}

fn numbered(aggregate: &str, sequence: i64) -> Event {
    Event { sequence, ..common::event("order", aggregate, &sequence.to_string()) }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_as_they_are() {
    let cluster = cluster();
    let key = |event: &Event| format!("{} in {TOPIC}", event.aggregate.id);
    let sink = common::open(&settings(&cluster));
    common::events_arrive_once_and_as_they_are(&*sink, &Topic::of(&cluster), key).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_events_of_one_call_arrive() {
    let cluster = cluster();
    let sink = common::open(&(settings(&cluster) + "timeout_ms = 120000"));
    common::two_thousand_events_of_one_call_arrive(&*sink, &Topic::of(&cluster)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_unacceptable_and_the_others_arrive() {
    let cluster = cluster();
    let sink = common::open(&(settings(&cluster) + "message_bytes_max = 100000"));
    let topic = Topic::of(&cluster);
    common::what_is_too_large_is_unacceptable_and_the_others_arrive(&*sink, &topic, 100_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_broker_finds_too_large_is_refused_for_its_batch_may_be_what_is_too_large() {
    let cluster = cluster();
    let sink = common::open(&settings(&cluster));
    common::publish_all(&*sink, &common::events("order", 1)).await;
    let too_large = RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
    cluster.request_errors(RDKafkaApiKey::Produce, &[too_large]);
    let deliveries = sink.publish(&common::events("order", 1)).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Refused { why }] if why.contains("`message_bytes_max`")),
        "{deliveries:?}"
    );
    common::publish_all(&*sink, &common::events("order", 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_brokers_fail_at_for_a_moment_is_there_once_and_in_order() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR__TRANSPORT as CUT, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS as TOO_FEW,
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION as NOT_LEADER,
    };
    let cluster = cluster();
    let sink = common::open(&settings(&cluster));
    let topic = Topic::of(&cluster);
    for sequence in 1..=12 {
        if sequence % 3 == 0 {
            cluster.request_errors(RDKafkaApiKey::Produce, &[NOT_LEADER, CUT, TOO_FEW]);
        }
        common::publish_all(&*sink, &[numbered("17", sequence), numbered("18", sequence)]).await;
    }
    let all: Vec<i64> = (1..=12).collect();
    for aggregate in ["17", "18"] {
        assert_eq!(tokio::task::block_in_place(|| topic.sequences(aggregate)), all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_gone_is_used_again_when_it_is_back() {
    let cluster = cluster();
    let sink = common::open(&(settings(&cluster) + "timeout_ms = 5000"));
    common::publish_all(&*sink, &common::events("order", 10)).await;
    let gone = Gone::begin(&cluster);
    common::nothing_is_acknowledged_while_it_is_gone(&*sink).await;
    gone.end();
    common::until_it_works_again(&*sink).await;
    common::publish_all(&*sink, &common::events("order", 10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_the_address_is_told() {
    let settings = "type = \"kafka\"\nbrokers = \"127.0.0.1:1\"\ntimeout_ms = 10000\n";
    let why = tokio::time::timeout(wait::LIMIT, common::trouble(settings))
        .await
        .expect("the error was not reported in time");
    assert!(why.contains("Kafka at 127.0.0.1:1") && why.contains("refused"), "{why}");
}

/// Publishes an event until it is acknowledged: on a busy machine the time limit of one call may be too short.
async fn until_taken(sink: &dyn Sink, event: &Event) {
    wait::until("the event is acknowledged", || async {
        sink.publish(std::slice::from_ref(event)).await == Ok(vec![Delivery::Acknowledged])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_answer_is_given_up_in_time_and_what_follows_stays_in_order() {
    let cluster = cluster();
    let sink = common::open(&(settings(&cluster) + "timeout_ms = 5000"));
    until_taken(&*sink, &numbered("17", 1)).await;
    cluster.broker_round_trip_time(1, Duration::from_secs(60)).unwrap();
    let second = numbered("17", 2);
    // The answer would arrive after 60 s, which is later than the time limit, so the result is unknown.
    let deliveries = sink.publish(std::slice::from_ref(&second)).await.unwrap();
    assert!(matches!(&deliveries[..], [Delivery::Unknown { .. }]), "{deliveries:?}");
    cluster.broker_round_trip_time(1, Duration::ZERO).unwrap();
    // As the relay does: repeat the same event until it is acknowledged, then publish the next one.
    until_taken(&*sink, &second).await;
    until_taken(&*sink, &numbered("17", 3)).await;
    let mut sequences = tokio::task::block_in_place(|| Topic::of(&cluster).sequences("17"));
    sequences.dedup();
    assert_eq!(sequences, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_a_broker_that_was_gone_stays_in_order() {
    let cluster = cluster();
    let sink = common::open(&(settings(&cluster) + "timeout_ms = 5000"));
    until_taken(&*sink, &numbered("17", 1)).await;
    let second = numbered("17", 2);
    let gone = Gone::begin(&cluster);
    let sent = sink.publish(std::slice::from_ref(&second)).await;
    assert!(matches!(sent.as_deref(), Ok([Delivery::Unknown { .. }])), "{sent:?}");
    gone.end();
    common::until_it_works_again(&*sink).await;
    common::publish_all(&*sink, &[second, numbered("18", 1)]).await;
    common::publish_all(&*sink, &[numbered("17", 3)]).await;
    let mut sequences = tokio::task::block_in_place(|| Topic::of(&cluster).sequences("17"));
    sequences.dedup();
    assert_eq!(sequences, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_missing_or_not_ours_is_refused_and_when_all_are_the_sink_is_down() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR_NO_ERROR as NONE, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED as NOT_OURS,
        RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART as MISSING,
    };
    for error in [MISSING, NOT_OURS] {
        let cluster = cluster();
        let sink = common::open(&(settings(&cluster) + "timeout_ms = 10000"));
        cluster.create_topic("milepost.account", 1, 1).unwrap();
        cluster.topic_error("milepost.account", error).unwrap();
        let mixed = [common::event("order", "1", "1"), common::event("account", "1", "1")];
        let deliveries = sink.publish(&mixed).await.unwrap();
        assert!(
            matches!(&deliveries[..], [Delivery::Acknowledged, Delivery::Refused { why }] if why.contains("milepost.account")),
            "{deliveries:?}"
        );
        let down = sink.publish(&mixed[1..]).await.unwrap_err();
        assert!(down.why.contains("milepost.account") && !down.for_good, "{down:?}");
        cluster.topic_error("milepost.account", NONE).unwrap();
        common::publish_all(&*sink, &mixed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_topic_can_have_is_unacceptable_and_the_others_arrive() {
    let cluster = cluster();
    let sink = common::open(&settings(&cluster));
    let sent = [common::event("big order", "1", "1"), common::event("order", "1", "1")];
    let deliveries = sink.publish(&sent).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Unacceptable { why }, Delivery::Acknowledged] if why.contains("milepost.big order")),
        "{deliveries:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_failed_for_good_is_followed_by_another_one() {
    let cluster = cluster();
    let sink = common::open(&settings(&cluster));
    let not_allowed = RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &[not_allowed]);
    let deliveries = sink.publish(&common::events("order", 2)).await.unwrap();
    // librdkafka reports either the first error or that the producer has failed with a fatal error.
    let fatal = |why: &str| why.contains("uthoriz") || why.contains("Fatal");
    let unknown = |delivery: &Delivery| matches!(delivery, Delivery::Unknown { why } if fatal(why));
    assert!(deliveries.iter().all(unknown), "{deliveries:?}");
    common::publish_all(&*sink, &common::events("order", 2)).await;
}

//! Consumers of real brokers: whatever is brought, however often, has its effect once and in order.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_trait::async_trait;
use lapin::options::{BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, ConnectionProperties};
use milepost_core::error::Cause;
use milepost_core::event::{Aggregate, Event};
use milepost_core::inbox::{Consumer, GapPolicy};
use milepost_core::retry::RetryPolicy;
use milepost_relay::consumer::{
    Handler, Malformed, NatsSource, RabbitmqSource, RedisSource, Runner, RunnerOptions,
};
use milepost_relay::sink::Sink;
use milepost_testkit::inbox::{Desk, drain, take_in};
use milepost_testkit::proxy::Proxy;
use milepost_testkit::wait;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const BILLING: &str = "billing";
/// A message that is no event.
const NO_EVENT: &str = "this is no event";

/// A broker with a place of this test's own.
#[async_trait]
trait Broker: Send + Sync {
    /// What publishes there.
    fn sink(&self) -> Arc<dyn Sink>;
    /// A consumer that reads from there, through this address instead of the broker's own.
    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner;
    /// Its host and port.
    fn address(&self) -> String;
    /// Publishes what is no event.
    async fn publish_no_event(&self);
    /// How many messages are not acknowledged.
    async fn left(&self) -> u64;
}

struct Nats {
    url: String,
    name: String,
}

impl Nats {
    async fn make() -> Self {
        let (url, name) = (common::shared("MILEPOST_TEST_NATS"), unique());
        let made = Self { url, name };
        let config = stream::Config {
            name: made.name.clone(),
            subjects: vec![format!("{}.>", made.name)],
            ..Default::default()
        };
        made.jetstream().await.create_stream(config).await.unwrap();
        made
    }

    async fn jetstream(&self) -> jetstream::Context {
        jetstream::new(async_nats::connect(&self.url).await.unwrap())
    }
}

#[async_trait]
impl Broker for Nats {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!(
            "type = \"nats\"\nurl = \"{url}\"\nsubject = \"{name}.{{aggregate_type}}.{{event_type}}\"\n"
        ))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = address.map_or(self.url.clone(), |address| format!("nats://{address}"));
        let source = NatsSource::new(&url, &self.name, BILLING).unwrap();
        Runner::new(source.ack_wait(Duration::from_secs(2)), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        let subject = format!("{}.odd", self.name);
        self.jetstream().await.publish(subject, NO_EVENT.into()).await.unwrap().await.unwrap();
    }

    async fn left(&self) -> u64 {
        let stream = self.jetstream().await.get_stream(&self.name).await.unwrap();
        let Ok(mut consumer) = stream.get_consumer::<consumer::pull::Config>(BILLING).await else {
            return u64::MAX;
        };
        let info = consumer.info().await.unwrap();
        info.num_pending + info.num_ack_pending as u64
    }
}

struct Redis {
    url: String,
    name: String,
}

impl Redis {
    fn make() -> Self {
        Self { url: common::shared("MILEPOST_TEST_REDIS"), name: unique() }
    }

    async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let client = redis::Client::open(self.url.as_str()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
    }
}

#[async_trait]
impl Broker for Redis {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!("type = \"redis\"\nurl = \"{url}\"\nstream = \"{name}\"\n"))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = address.map_or(self.url.clone(), |address| format!("redis://{address}"));
        let source = RedisSource::new(&url, &self.name, BILLING, unique()).unwrap();
        Runner::new(source.claim_idle(Duration::from_secs(1)), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        self.ask::<String>(&["XADD", &self.name, "*", "odd", NO_EVENT]).await;
    }

    async fn left(&self) -> u64 {
        let groups: redis::streams::StreamInfoGroupsReply = self.ask(&["XINFO", "GROUPS", &self.name]).await;
        groups
            .groups
            .first()
            .map_or(u64::MAX, |group| group.pending as u64 + group.lag.map_or(0, |lag| lag as u64))
    }
}

struct Rabbitmq {
    url: String,
    name: String,
}

impl Rabbitmq {
    async fn make() -> Self {
        let made = Self { url: common::shared("MILEPOST_TEST_RABBITMQ"), name: unique() };
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        let channel = made.channel().await;
        channel.queue_declare(made.name.as_str().into(), options, FieldTable::default()).await.unwrap();
        made
    }

    async fn channel(&self) -> lapin::Channel {
        let connection =
            lapin::Connection::connect(&self.url, ConnectionProperties::default()).await.unwrap();
        connection.create_channel().await.unwrap()
    }
}

#[async_trait]
impl Broker for Rabbitmq {
    fn sink(&self) -> Arc<dyn Sink> {
        let (url, name) = (&self.url, &self.name);
        common::open(&format!("type = \"rabbitmq\"\nurl = \"{url}\"\nrouting_key = \"{name}\"\n"))
    }

    fn runner(&self, address: Option<&str>, handler: Arc<dyn Handler>) -> Runner {
        let url = match (address, self.url.rsplit_once('@')) {
            (None, _) => self.url.clone(),
            (Some(address), Some((account, _))) => format!("{account}@{address}"),
            (Some(address), None) => format!("amqp://{address}"),
        };
        Runner::new(RabbitmqSource::new(&url, &self.name).unwrap(), handler)
    }

    fn address(&self) -> String {
        host_and_port(&self.url)
    }

    async fn publish_no_event(&self) {
        let channel = self.channel().await;
        let publishing = channel.basic_publish(
            "".into(),
            self.name.as_str().into(),
            BasicPublishOptions::default(),
            NO_EVENT.as_bytes(),
            BasicProperties::default(),
        );
        publishing.await.unwrap().await.unwrap();
    }

    /// What a queue has when its consumers are gone.
    async fn left(&self) -> u64 {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let channel = self.channel().await;
        let queue =
            channel.queue_declare(self.name.as_str().into(), options, FieldTable::default()).await.unwrap();
        let left = u64::from(queue.message_count());
        if left == 0 {
            channel.queue_delete(self.name.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
        }
        left
    }
}

fn unique() -> String {
    format!("t{}", uuid::Uuid::now_v7().simple())
}

fn host_and_port(url: &str) -> String {
    let place = url.split_once("://").unwrap().1;
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    place.split('/').next().unwrap().to_owned()
}

/// Takes events in, and fails often: before the commit, and after it, as one does that dies before it could acknowledge.
struct Takes {
    desk: Desk,
    fails: AtomicBool,
    at_once: Mutex<HashSet<Aggregate>>,
    malformed: Mutex<Vec<Malformed>>,
    began: Notify,
    held: AtomicBool,
    go_on: Notify,
}

impl Takes {
    async fn new(fails: bool) -> Arc<Self> {
        Arc::new(Self {
            desk: Desk::temporary().await,
            fails: AtomicBool::new(fails),
            at_once: Mutex::default(),
            malformed: Mutex::default(),
            began: Notify::new(),
            held: AtomicBool::new(false),
            go_on: Notify::new(),
        })
    }

    async fn effects(&self, order: &str) -> Vec<i64> {
        self.desk.effects_of(BILLING, &Aggregate::new("order", order)).await
    }
}

#[async_trait]
impl Handler for Takes {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        assert!(self.at_once.lock().unwrap().insert(event.aggregate.clone()), "two of one aggregate at once");
        self.began.notify_one();
        if self.held.load(Ordering::SeqCst) {
            self.go_on.notified().await;
        }
        let mut tx = self.desk.begin().await;
        take_in(tx.as_mut(), BILLING, event).await;
        let fate = if self.fails.load(Ordering::SeqCst) { fastrand::u8(0..6) } else { 6 };
        match fate {
            0 => tx.roll_back().await,
            1 => tx.die().await,
            _ => tx.commit().await,
        }
        self.at_once.lock().unwrap().remove(&event.aggregate);
        match fate {
            0..=2 => Err("it fails".into()),
            3 if event.sequence % 2 == 0 => panic!("it panics when it has committed"),
            _ => Ok(()),
        }
    }

    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        let mut tx = self.desk.begin().await;
        drain(tx.as_mut(), BILLING, aggregate).await;
        tx.commit().await;
        Ok(())
    }

    async fn malformed(&self, message: &Malformed) -> Result<(), Cause> {
        self.malformed.lock().unwrap().push(message.clone());
        Ok(())
    }
}

/// A consumer that runs.
struct Running {
    stop: CancellationToken,
    ran: JoinHandle<()>,
}

impl Running {
    fn start(runner: Runner, takes: &Takes) -> Self {
        let backoff = RetryPolicy::fixed(Duration::from_millis(20));
        let runner = runner.options(RunnerOptions { in_flight_max: 20, backoff });
        let runner = runner.inbox(takes.desk.store.clone(), BILLING);
        let stop = CancellationToken::new();
        Self { ran: tokio::spawn(runner.run(stop.clone())), stop }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.ran.await.unwrap();
    }
}

fn history(orders: &[&str], last: i64) -> Vec<Event> {
    let of = |order: &&str| {
        let order = (*order).to_owned();
        (1..=last).map(move |sequence| Event { sequence, ..common::event("order", order.clone(), "{}") })
    };
    orders.iter().flat_map(of).collect()
}

async fn publish(broker: &dyn Broker, events: &[Event]) {
    let sink = broker.sink();
    for event in events {
        common::publish_all(sink.as_ref(), std::slice::from_ref(event)).await;
    }
}

/// What could not be acknowledged comes again to the next consumer, which knows it.
async fn until_nothing_is_left(broker: &dyn Broker, takes: &Arc<Takes>) {
    takes.fails.store(false, Ordering::SeqCst);
    for _ in 0..20 {
        if broker.left().await == 0 {
            return;
        }
        let running = Running::start(broker.runner(None, takes.clone()), takes);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        running.stop().await;
    }
    panic!("{} messages are left", broker.left().await);
}

async fn whatever_fails_has_its_effect_once_and_in_order(broker: &dyn Broker) {
    let orders = ["1", "2", "3", "4"];
    let mut events = history(&orders, 12);
    fastrand::shuffle(&mut events);
    publish(broker, &events).await;
    let takes = Takes::new(true).await;
    let runner = broker.runner(None, takes.clone());
    let counts = runner.counts();
    let running = Running::start(runner, &takes);
    wait::until("all events have had their effect", || async {
        takes.desk.transactions.effects().await.len() == events.len()
    })
    .await;
    for order in orders {
        assert_eq!(takes.effects(order).await, (1..=12).collect::<Vec<_>>(), "order {order}");
    }
    wait::until("all are acknowledged", || async {
        counts.handled.load(Ordering::Relaxed) >= events.len() as u64
    })
    .await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
    assert_eq!(takes.desk.transactions.effects().await.len(), events.len());
}

async fn a_message_that_is_no_event_holds_up_nothing(broker: &dyn Broker) {
    broker.publish_no_event().await;
    publish(broker, &history(&["1"], 2)).await;
    let takes = Takes::new(false).await;
    let runner = broker.runner(None, takes.clone());
    let counts = runner.counts();
    let running = Running::start(runner, &takes);
    wait::until("the events have had their effect", || async { counts.handled.load(Ordering::Relaxed) == 2 })
        .await;
    running.stop().await;
    let malformed = takes.malformed.lock().unwrap().clone();
    assert_eq!(malformed.len(), 1);
    assert!(!malformed[0].place.contains('@'), "{}", malformed[0].place);
    until_nothing_is_left(broker, &takes).await;
}

async fn one_that_stops_ends_what_it_began_and_gives_back_the_rest(broker: &dyn Broker) {
    let takes = Takes::new(false).await;
    takes.held.store(true, Ordering::SeqCst);
    publish(broker, &history(&["1"], 3)).await;
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    takes.began.notified().await;
    running.stop.cancel();
    takes.held.store(false, Ordering::SeqCst);
    takes.go_on.notify_one();
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1], "what had begun");
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    wait::until("the next one takes in the rest", || async { takes.effects("1").await == [1, 2, 3] }).await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
}

async fn a_connection_that_breaks_is_made_anew(broker: &dyn Broker) {
    let proxy = Proxy::before(broker.address()).await;
    let takes = Takes::new(false).await;
    publish(broker, &history(&["1"], 1)).await;
    let address = proxy.address().to_string();
    let running = Running::start(broker.runner(Some(&address), takes.clone()), &takes);
    wait::until("the first event came", || async { takes.effects("1").await == [1] }).await;
    proxy.shut(true);
    publish(broker, &history(&["2"], 2)).await;
    proxy.shut(false);
    wait::until("what came meanwhile is there", || async { takes.effects("2").await == [1, 2] }).await;
    running.stop().await;
    assert_eq!(takes.effects("1").await, [1]);
    until_nothing_is_left(broker, &takes).await;
}

async fn a_gap_that_is_given_up_is_gone_past_without_a_message(broker: &dyn Broker) {
    let takes = Takes::new(false).await;
    let skips = Consumer {
        gap_wait: Duration::from_millis(100),
        gap_policy: GapPolicy::SkipGap,
        ..Consumer::new(BILLING)
    };
    takes.desk.store.put_consumer(&skips).await.unwrap();
    let mut events = history(&["1"], 4);
    events.remove(1);
    publish(broker, &events).await;
    let running = Running::start(broker.runner(None, takes.clone()), &takes);
    wait::until("the events behind the gap are there", || async { takes.effects("1").await == [1, 3, 4] })
        .await;
    running.stop().await;
    until_nothing_is_left(broker, &takes).await;
}

macro_rules! with_each_broker {
    ($($check:ident)+) => {
        mod on_nats {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                super::$check(&super::Nats::make().await).await;
            })+
        }
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                super::$check(&super::Redis::make()).await;
            })+
        }
        mod on_rabbitmq {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                super::$check(&super::Rabbitmq::make().await).await;
            })+
        }
    };
}

with_each_broker! {
    whatever_fails_has_its_effect_once_and_in_order
    a_message_that_is_no_event_holds_up_nothing
    one_that_stops_ends_what_it_began_and_gives_back_the_rest
    a_connection_that_breaks_is_made_anew
    a_gap_that_is_given_up_is_gone_past_without_a_message
}

#[test]
fn settings_that_cannot_be_used_are_told_without_secrets() {
    let told = [
        NatsSource::new("http://ada:s3cret@broker", "EVENTS", "billing").unwrap_err(),
        NatsSource::new("nats://broker", "EVENTS", "a b").unwrap_err(),
        RabbitmqSource::new("http://ada:s3cret@broker", "orders").unwrap_err(),
        RabbitmqSource::new("amqp://broker", "").unwrap_err(),
        RedisSource::new("http://ada:s3cret@broker", "orders", "billing", "1").unwrap_err(),
    ];
    assert_eq!(told.each_ref().map(|told| told.setting), ["url", "durable", "url", "queue", "url"]);
    assert!(told.iter().all(|told| !told.to_string().contains("s3cret")));
    assert!(
        !format!("{:?}", RabbitmqSource::new("amqp://ada:s3cret@broker", "q").unwrap()).contains("s3cret")
    );
    assert!(!format!("{:?}", NatsSource::new("nats://s3cret@broker", "S", "q").unwrap()).contains("s3cret"));
}

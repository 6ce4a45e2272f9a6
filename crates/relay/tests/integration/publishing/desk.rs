//! Fixture for publisher tests: a store, a scripted sink, and common operations.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::event::{
    Aggregate, Exhausted, NewEvent, PageSize, Publisher, Subscription, SubscriptionFilter,
};
use milepost_core::port::{LogReader, RelayStore, Store};
use milepost_core::retry::RetryPolicy;
use milepost_relay::publisher::{Destination, PublisherOptions, PublisherStats, publish};
use milepost_relay::sink::Sink;
use milepost_testkit::{relay, wait};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::common::script::Script;

/// The store and the sink of a test.
pub(crate) struct Desk {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sink: Script,
}

/// A publisher that runs until it is stopped or dropped.
pub(crate) struct Running {
    task: Option<JoinHandle<()>>,
    stop: CancellationToken,
    pub(crate) stats: Arc<PublisherStats>,
    _guard: DropGuard,
}

impl Running {
    /// Stops the publisher like a process that shuts down.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        self.task.take().unwrap().await.unwrap();
    }

    /// Ends the publisher like a process that crashes.
    pub(crate) fn kill(mut self) {
        self.task.take().unwrap().abort();
    }
}

/// Returns options with short backoffs and an unlimited number of attempts. The lease is so long that no running publisher loses it, even on a busy
/// machine, so events are not published twice because of that.
pub(crate) fn options(name: &str) -> PublisherOptions {
    let mut subscription = Subscription::new(name);
    subscription.deliveries_max = 1_000_000;
    subscription.backoff =
        RetryPolicy { base: Duration::from_millis(20), cap: Duration::from_millis(200), jitter: 0.1 };
    PublisherOptions { lease: Duration::from_secs(600), ..PublisherOptions::new(subscription, "test") }
}

/// Returns the same options with a limited number of deliveries.
pub(crate) fn giving_up(name: &str, deliveries_max: u32, exhausted: Exhausted) -> PublisherOptions {
    let mut options = options(name);
    options.subscription.deliveries_max = deliveries_max;
    options.subscription.exhausted = exhausted;
    options
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, sink: Script::new() }
    }

    pub(crate) fn event(order: &str) -> NewEvent {
        NewEvent::new(Aggregate::new("order", order), "order.changed", &()).unwrap()
    }

    pub(crate) async fn emit(&self, order: &str, times: usize) {
        let events: Vec<NewEvent> = (0..times).map(|_| Self::event(order)).collect();
        self.store.emit_many(&events).await.unwrap();
    }

    /// Emits `events` events of `orders` orders in turn.
    pub(crate) async fn emit_mixed(&self, orders: usize, events: usize) {
        self.emit_of("order", orders, events).await;
    }

    /// Emits `events` events of `aggregates` aggregates of a type in turn.
    pub(crate) async fn emit_of(&self, aggregate_type: &str, aggregates: usize, events: usize) {
        let event = |n: usize| {
            let aggregate = Aggregate::new(aggregate_type, (n % aggregates).to_string());
            NewEvent::new(aggregate, "order.changed", &()).unwrap()
        };
        let events: Vec<NewEvent> = (0..events).map(event).collect();
        for part in events.chunks(500) {
            self.store.emit_many(part).await.unwrap();
        }
    }

    pub(crate) fn run(&self, options: PublisherOptions) -> Running {
        self.run_into(options, Arc::new(self.sink.clone()))
    }

    pub(crate) fn run_into(&self, options: PublisherOptions, sink: Arc<dyn Sink>) -> Running {
        self.run_to(options, sink)
    }

    pub(crate) fn run_to(&self, options: PublisherOptions, destination: impl Into<Destination>) -> Running {
        let (stop, stats) = (CancellationToken::new(), Arc::new(PublisherStats::default()));
        let store: Arc<dyn RelayStore> = self.store.clone();
        let publishing = publish(store, destination.into(), options, stats.clone(), stop.clone());
        let task = tokio::spawn(async move { publishing.await.unwrap() });
        Running { task: Some(task), stats, _guard: stop.clone().drop_guard(), stop }
    }

    pub(crate) async fn until_taken(&self, events: usize) {
        wait::until(&format!("{events} events are published"), || async { self.sink.distinct() >= events })
            .await;
    }

    /// Returns a reader of the log, as a publisher uses it.
    pub(crate) async fn reader(
        &self,
        subscription: &str,
        lease: Duration,
    ) -> (Publisher, Box<dyn LogReader>) {
        self.reader_of(subscription, lease, SubscriptionFilter::default()).await
    }

    /// Returns a reader with a filter.
    pub(crate) async fn reader_of(
        &self,
        subscription: &str,
        lease: Duration,
        filter: SubscriptionFilter,
    ) -> (Publisher, Box<dyn LogReader>) {
        let publisher = relay::publisher(self.store.as_ref(), subscription, lease).await;
        let publisher = Publisher { filter, ..publisher };
        (publisher.clone(), self.store.reader(publisher))
    }
}

/// A page size that includes all events.
pub(crate) const ALL: PageSize = PageSize { events_max: 100_000, bytes_max: 1 << 30 };

/// Returns 1, 2, 3, … `n`.
pub(crate) fn up_to(n: i64) -> Vec<i64> {
    (1..=n).collect()
}

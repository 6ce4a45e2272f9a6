//! Publishers: each publishes its share of the log for a subscription.
//!
//! A publisher runs three loops that share its state: one publishes page by page, one retries parked events, one renews the lease. The first two check
//! the lease before they send anything; in addition, the store fences everything that they write.

mod breaker;
mod heartbeat;
mod pages;
mod parked;
mod retries;
mod stats;
mod unwanted;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::event::{
    Begin, Event, Failure, PageSize, Publisher, RelayError, Subscription, Undelivered,
};
use milepost_core::event_work::{Condition, WorkTemplate};
use milepost_core::ident::PublisherId;
use milepost_core::port::RelayStore;
use milepost_core::text::without_nul;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use stats::{PublisherStats, PublisherStatsView};

use crate::sink::{Delivery, Sink, SinkDown};
use breaker::{Breaker, Verdict};
use parked::Parked;

/// The maximum number of characters of a sink's error that are stored.
const WHY_CHARS_MAX: usize = 500;
/// How long the breaker stays open after the receiver has refused all further events.
const PAUSED_WAIT: Duration = Duration::from_secs(5);
/// The maximum number of events for one call of a sink.
const WAVE_MAX: usize = 1_000;

/// Where a publisher sends events.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A sink.
    Sink(Arc<dyn Sink>),
    /// The store that contains the log: each event starts the work of this template there, exactly once.
    Work(Arc<WorkTemplate>),
}

impl From<Arc<dyn Sink>> for Destination {
    fn from(sink: Arc<dyn Sink>) -> Self {
        Self::Sink(sink)
    }
}

/// Settings of a publisher.
#[derive(Clone, Debug)]
pub struct PublisherOptions {
    /// The subscription: which events to publish, and the retry policy.
    pub subscription: Subscription,
    /// The condition that events must meet in addition to the filter of the subscription.
    pub condition: Option<Condition>,
    /// Where a new subscription starts.
    pub begin: Begin,
    /// Name of the publisher, for display.
    pub label: String,
    /// Size of a page; limits the memory use.
    pub page: PageSize,
    /// How long to collect events after a notification of new ones.
    pub linger: Duration,
    /// How long after its last heartbeat other publishers may acquire the slots of a publisher.
    pub lease: Duration,
    /// How often the log is read without a notification of new events.
    pub poll_interval: Duration,
}

impl PublisherOptions {
    /// Default settings: pages of 5,000 events and 16 MiB, a lease of 10 seconds, no linger.
    pub fn new(subscription: Subscription, label: impl Into<String>) -> Self {
        Self {
            subscription,
            condition: None,
            begin: Begin::default(),
            label: label.into(),
            page: PageSize { events_max: 5_000, bytes_max: 16 * 1024 * 1024 },
            linger: Duration::ZERO,
            lease: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// Publishes a subscription until `stop` is cancelled. It then waits for events in flight and stores their results. Counts in `stats`.
/// A subscription that is deleted meanwhile starts again as a new one.
///
/// # Errors
/// [`StoreError::Relay`] if the subscription cannot be published. All other errors are logged, and the operation is retried.
pub async fn publish(
    store: Arc<dyn RelayStore>,
    destination: impl Into<Destination>,
    options: PublisherOptions,
    stats: Arc<PublisherStats>,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let destination = destination.into();
    loop {
        // A deleted subscription has no positions: nothing that is known of the earlier one is valid for the new one.
        let options = options.clone();
        let shared = Shared::new(store.clone(), destination.clone(), options, stats.clone(), stop.clone());
        match publish_one(Arc::new(shared)).await {
            Err(StoreError::Relay(RelayError::NoSuchSubscription(name))) if !stop.is_cancelled() => {
                tracing::warn!(
                    subscription = name,
                    "the subscription was deleted; it starts again as a new one"
                );
            }
            published => return published,
        }
    }
}

/// Publishes a subscription until the publisher is stopped, or the subscription is deleted.
async fn publish_one(shared: Arc<Shared>) -> Result<(), StoreError> {
    let ended = CancellationToken::new();
    // Dropping the set aborts its tasks, so that a dropped publisher does not keep its lease.
    let mut beside = JoinSet::new();
    beside.spawn(heartbeat::keep(shared.clone(), ended.clone()));
    beside.spawn(retries::retry_for_ever(shared.clone(), ended.clone()));
    let published = pages::publish_for_ever(&shared).await;
    ended.cancel();
    beside.join_all().await;
    if let Err(error) = shared.store.leave(&shared.publisher).await {
        let subscription = &shared.publisher.subscription;
        tracing::warn!(subscription, %error, "the slots could not be released; their lease will expire");
    }
    published
}

/// The state that the loops of a publisher share.
struct Shared {
    store: Arc<dyn RelayStore>,
    destination: Destination,
    options: PublisherOptions,
    publisher: Publisher,
    parked: Parked,
    breaker: Breaker,
    /// Until when this publisher certainly owns its slots.
    held_until: watch::Sender<Instant>,
    stats: Arc<PublisherStats>,
    stop: CancellationToken,
}

impl Shared {
    fn new(
        store: Arc<dyn RelayStore>,
        destination: Destination,
        options: PublisherOptions,
        stats: Arc<PublisherStats>,
        stop: CancellationToken,
    ) -> Self {
        let publisher = Publisher {
            id: PublisherId::new(),
            label: options.label.clone(),
            subscription: options.subscription.name.clone(),
            filter: options.subscription.filter.clone(),
            lease: options.lease,
        };
        let held_until = watch::Sender::new(Instant::now());
        let (parked, breaker) = (Parked::default(), Breaker::default());
        Self { store, destination, options, publisher, parked, breaker, held_until, stats, stop }
    }

    /// Returns whether no other publisher can own the slots of this one.
    fn is_held(&self) -> bool {
        Instant::now() < *self.held_until.borrow()
    }

    /// Returns whether more events may be sent.
    fn may_send(&self) -> bool {
        self.is_held() && !self.stop.is_cancelled()
    }

    /// Waits, unless the publisher is stopped.
    async fn rest(&self, wait: Duration) {
        self.stop.run_until_cancelled(tokio::time::sleep(wait)).await;
    }

    /// Sends one wave, except for the events that do not meet the condition: these count as delivered. Returns the results of its first events, as
    /// [`send_all`](Self::send_all).
    async fn send(
        &self,
        wave: &[Event],
        attempts: impl Fn(&Event) -> u32,
        are_new: bool,
    ) -> Vec<Option<Failure>> {
        let Some(condition) = &self.options.condition else {
            return self.send_all(wave, attempts, are_new).await;
        };
        let judged = judge(condition, wave).await;
        let wanted = wave.iter().zip(&judged).filter(|(_, judged)| **judged == Ok(true));
        let wanted: Vec<Event> = wanted.map(|(event, _)| event.clone()).collect();
        let mut sent = match wanted[..] {
            [] => Vec::new(),
            _ => self.send_all(&wanted, &attempts, are_new).await,
        }
        .into_iter();
        let mut ends = Vec::with_capacity(wave.len());
        for (event, judged) in wave.iter().zip(judged) {
            match judged {
                Ok(false) => ends.push(None),
                Err(why) => ends.push(self.end(event, attempts(event), Delivery::Unacceptable { why })),
                Ok(true) => match sent.next() {
                    Some(end) => ends.push(end),
                    None => break,
                },
            }
        }
        ends
    }

    /// Sends events to the destination.
    async fn deliver(&self, wave: &[Event]) -> Result<Vec<Delivery>, SinkDown> {
        match &self.destination {
            Destination::Sink(sink) => sink.publish(wave).await,
            Destination::Work(template) => {
                work::start(self.store.as_ref(), &self.publisher, template, wave).await
            }
        }
    }

    /// Sends one wave. Returns the results of its first events; the following events have to be tried again, because the sink accepts nothing at
    /// present. `attempts`: previous attempts of each event. `are_new`: whether there are none.
    async fn send_all(
        &self,
        wave: &[Event],
        attempts: impl Fn(&Event) -> u32,
        are_new: bool,
    ) -> Vec<Option<Failure>> {
        let began = Instant::now();
        let mut answers = match self.deliver(wave).await {
            Ok(answers) => answers,
            Err(down) => {
                let mut wait = down.retry_after;
                if down.for_good {
                    self.pause(&down.to_string()).await;
                    // By then the publisher has balanced its slots and, since the subscription is paused, owns none.
                    wait = Some(PAUSED_WAIT);
                }
                self.trip(&down.to_string(), began, wait).await;
                return Vec::new();
            }
        };
        match self.breaker.count(&answers, began, are_new) {
            Verdict::Works { closed: true } => self.report(None).await,
            Verdict::Works { closed: false } => {}
            Verdict::Down { why, charged } => {
                self.trip(&format!("every event fails: {why}"), began, None).await;
                answers.truncate(charged);
            }
            Verdict::StillDown { why, opens } => {
                if opens {
                    self.trip(&format!("every event fails: {why}"), began, None).await;
                }
                return if are_new { self.set_aside(wave, answers) } else { Vec::new() };
            }
        }
        wave.iter().zip(answers).map(|(event, answer)| self.end(event, attempts(event), answer)).collect()
    }

    /// Parks events that failed while the sink was considered unavailable, without using an attempt, so that others are tried after them.
    fn set_aside(&self, wave: &[Event], answers: Vec<Delivery>) -> Vec<Option<Failure>> {
        let Subscription { name, backoff, .. } = &self.options.subscription;
        tracing::warn!(
            subscription = name,
            events = answers.len(),
            "parked events without using an attempt, to try others"
        );
        let parked = |(event, answer): (&Event, &Delivery)| {
            let then = Undelivered::Retry(backoff.delay(1, fastrand::f64()));
            Some(Failure { event: event.id, deliveries: 0, why: stored_why(answer.why()), then })
        };
        wave.iter().zip(&answers).map(parked).collect()
    }

    /// Converts the sink's answer for an event to a failure; `None`: it was delivered.
    fn end(&self, event: &Event, attempts: u32, answer: Delivery) -> Option<Failure> {
        let (why, acceptable) = match answer {
            Delivery::Acknowledged => {
                self.stats.published.add(1);
                return None;
            }
            Delivery::Refused { why } | Delivery::Unknown { why } => (why, true),
            Delivery::Unacceptable { why } => (why, false),
        };
        self.stats.failed.add(1);
        let why = stored_why(&why);
        let deliveries = attempts + 1;
        let then = self.options.subscription.after_failure(deliveries, acceptable, None, fastrand::f64());
        match then {
            Undelivered::DeadLetter => self.stats.dead.add(1),
            Undelivered::Skip => self.stats.skipped.add(1),
            Undelivered::Halt | Undelivered::Retry(_) => {}
        }
        let (subscription, id, aggregate) = (&self.publisher.subscription, event.id, &event.aggregate);
        tracing::warn!(subscription, %id, %aggregate, deliveries, %then, why, "an event was not delivered");
        Some(Failure { event: event.id, deliveries, why, then })
    }

    /// Opens the breaker: nothing is published for a while.
    async fn trip(&self, why: &str, began: Instant, asked: Option<Duration>) {
        let wait = self.breaker.trip(began, asked, fastrand::f64());
        let subscription = &self.publisher.subscription;
        tracing::warn!(
            subscription,
            why,
            wait_ms = wait.as_millis(),
            "the sink accepts no events; publishing waits"
        );
        self.report(Some(why)).await;
    }

    async fn pause(&self, why: &str) {
        let subscription = &self.publisher.subscription;
        tracing::error!(
            subscription,
            why,
            "the receiver accepts no more events; the subscription is paused until an operator resumes it"
        );
        if let Err(error) = self.store.pause_subscription(subscription, &without_nul(why)).await {
            tracing::warn!(subscription, %error, "the subscription could not be paused");
        }
    }

    async fn report(&self, down: Option<&str>) {
        if let Err(error) = self.store.report_sink(&self.publisher, down.map(without_nul).as_deref()).await {
            let subscription = &self.publisher.subscription;
            tracing::warn!(subscription, %error, "the state of the sink could not be stored");
        }
    }

    /// Records that the lease requested at `asked_at` was granted.
    fn held_from(&self, asked_at: Instant) {
        // Has no effect for a publisher that owns no slots any more.
        self.held_until.send_replace(asked_at + self.options.lease);
    }

    /// Records that other publishers may own the slots of this one.
    fn lost(&self) {
        self.held_until.send_replace(Instant::now());
    }
}

/// Returns whether each event meets the condition, or why that cannot be decided. Conditions may need many steps, so other tasks of the thread get
/// their turn after each.
async fn judge(condition: &Condition, wave: &[Event]) -> Vec<Result<bool, String>> {
    let mut judged = Vec::with_capacity(wave.len());
    for event in wave {
        judged.push(condition.holds(event));
        tokio::task::yield_now().await;
    }
    judged
}

/// Returns a sink's error as it is stored.
fn stored_why(why: &str) -> String {
    without_nul(&why.chars().take(WHY_CHARS_MAX).collect::<String>())
}

/// Returns whether the aggregate is parked after this failure.
fn parks(failure: &Failure) -> bool {
    matches!(failure.then, Undelivered::Retry(_) | Undelivered::Halt)
}

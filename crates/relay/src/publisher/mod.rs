//! Publishers: what goes through a subscription's part of the log and publishes it.
//!
//! Three loops share what a publisher knows: one publishes page by page, one tries parked events again, one keeps the lease. The
//! first two look at the lease before everything they send; what they write is fenced by the store in any case.

mod breaker;
mod heartbeat;
mod pages;
mod parked;
mod retries;
mod stats;
mod unwanted;

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::event::{Begin, Event, Failure, PageSize, Publisher, Subscription, Undelivered};
use milepost_core::ident::PublisherId;
use milepost_core::port::RelayStore;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use stats::{PublisherStats, PublisherStatsView};

use crate::sink::{Delivery, Sink};
use breaker::{Breaker, FAILURES_MAX};
use parked::Parked;

/// The most characters of a sink's words that are kept.
const WHY_CHARS_MAX: usize = 500;
/// How long a receiver is left alone that wants no more.
const PAUSED_WAIT: Duration = Duration::from_secs(5);
/// The most events of one call of a sink.
const WAVE_MAX: usize = 1_000;

/// What a publisher is to do, and how eagerly.
#[derive(Clone, Debug)]
pub struct PublisherOptions {
    /// Which events, and how patiently.
    pub subscription: Subscription,
    /// Where a subscription begins that is new.
    pub begin: Begin,
    /// What the publisher is called for people.
    pub label: String,
    /// How much is read at once; what bounds the memory.
    pub page: PageSize,
    /// How long events are gathered after a hint that there are some.
    pub linger: Duration,
    /// How long others wait before they take the slots of a publisher that is silent.
    pub lease: Duration,
    /// How often the log is looked at without a hint that it has grown.
    pub poll_interval: Duration,
}

impl PublisherOptions {
    /// The defaults: pages of 5,000 events and 16 MiB, a lease of 10 seconds, no linger.
    pub fn new(subscription: Subscription, label: impl Into<String>) -> Self {
        Self {
            subscription,
            begin: Begin::default(),
            label: label.into(),
            page: PageSize { events_max: 5_000, bytes_max: 16 * 1024 * 1024 },
            linger: Duration::ZERO,
            lease: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// Publishes a subscription until `stop` is canceled: events that are on their way are waited for, and what was answered is
/// written down. Counts in `stats`.
///
/// # Errors
/// [`StoreError::Relay`] when the subscription cannot be published at all. Everything else is logged and tried again.
pub async fn publish(
    store: Arc<dyn RelayStore>,
    sink: Arc<dyn Sink>,
    options: PublisherOptions,
    stats: Arc<PublisherStats>,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let shared = Arc::new(Shared::new(store, sink, options, stats, stop));
    let ended = CancellationToken::new();
    // A set ends its tasks when it is dropped: nobody keeps the lease of a publisher that is gone.
    let mut beside = JoinSet::new();
    beside.spawn(heartbeat::keep(shared.clone(), ended.clone()));
    beside.spawn(retries::retry_for_ever(shared.clone(), ended.clone()));
    let published = pages::publish_for_ever(&shared).await;
    ended.cancel();
    beside.join_all().await;
    if let Err(error) = shared.store.leave(&shared.publisher).await {
        let subscription = &shared.publisher.subscription;
        tracing::warn!(subscription, %error, "the slots could not be given up; their lease will run out");
    }
    published
}

/// What the loops of a publisher share.
struct Shared {
    store: Arc<dyn RelayStore>,
    sink: Arc<dyn Sink>,
    options: PublisherOptions,
    publisher: Publisher,
    parked: Parked,
    breaker: Breaker,
    /// Until when what is held is held for certain.
    held_until: watch::Sender<Instant>,
    stats: Arc<PublisherStats>,
    stop: CancellationToken,
}

impl Shared {
    fn new(
        store: Arc<dyn RelayStore>,
        sink: Arc<dyn Sink>,
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
        Self { store, sink, options, publisher, parked, breaker, held_until, stats, stop }
    }

    /// Whether nobody else can hold what we hold.
    fn is_held(&self) -> bool {
        Instant::now() < *self.held_until.borrow()
    }

    /// Whether more may be sent.
    fn may_send(&self) -> bool {
        self.is_held() && !self.stop.is_cancelled()
    }

    /// Waits, unless it is to stop.
    async fn rest(&self, wait: Duration) {
        self.stop.run_until_cancelled(tokio::time::sleep(wait)).await;
    }

    /// Sends one wave. Answers what became of its first events; of those that follow nobody knows, and the sink takes nothing
    /// at present. `attempts`: how many each event has had. `blame`: whether it is the sink's fault when all events fail.
    async fn send(
        &self,
        wave: &[Event],
        attempts: impl Fn(&Event) -> u32,
        blame: bool,
    ) -> Vec<Option<Failure>> {
        let mut answers = match self.sink.publish(wave).await {
            Ok(answers) => answers,
            Err(down) => {
                let mut wait = down.retry_after;
                if down.for_good {
                    self.pause(&down.to_string()).await;
                    // Until then we have looked around, and hold nothing.
                    wait = Some(PAUSED_WAIT);
                }
                self.trip(&down.to_string(), wait).await;
                return Vec::new();
            }
        };
        if blame && let Some(why) = self.breaker.blames(&answers) {
            self.trip(&format!("every event fails: {why}"), None).await;
            answers.truncate(FAILURES_MAX);
        } else if self.breaker.close() {
            self.report(None).await;
        }
        wave.iter().zip(answers).map(|(event, answer)| self.end(event, attempts(event), answer)).collect()
    }

    /// What follows from the sink's answer for an event; `None`: it is delivered.
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
        let why: String = why.chars().take(WHY_CHARS_MAX).collect();
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

    /// The sink takes nothing: nothing goes out for a while.
    async fn trip(&self, why: &str, asked: Option<Duration>) {
        let wait = self.breaker.trip(asked, fastrand::f64());
        let subscription = &self.publisher.subscription;
        tracing::warn!(
            subscription,
            why,
            wait_ms = wait.as_millis(),
            "the sink takes nothing; publishing pauses"
        );
        self.report(Some(why)).await;
    }

    async fn pause(&self, why: &str) {
        let subscription = &self.publisher.subscription;
        tracing::error!(
            subscription,
            why,
            "the receiver wants no more events; the subscription is paused until somebody resumes it"
        );
        if let Err(error) = self.store.pause_subscription(subscription, why).await {
            tracing::warn!(subscription, %error, "the subscription could not be paused");
        }
    }

    async fn report(&self, down: Option<&str>) {
        if let Err(error) = self.store.report_sink(&self.publisher, down).await {
            let subscription = &self.publisher.subscription;
            tracing::warn!(subscription, %error, "the state of the sink could not be written down");
        }
    }

    /// The lease that was asked for at `asked_at` was given.
    fn held_from(&self, asked_at: Instant) {
        // For a publisher that holds nothing any more this is without effect.
        self.held_until.send_replace(asked_at + self.options.lease);
    }

    /// Others may hold what we held.
    fn lost(&self) {
        self.held_until.send_replace(Instant::now());
    }
}

/// Whether an aggregate waits after this failure.
fn parks(failure: &Failure) -> bool {
    matches!(failure.then, Undelivered::Retry(_) | Undelivered::Halt)
}

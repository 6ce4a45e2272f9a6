//! Runner: passes the messages of a source to a handler.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use milepost_core::error::Cause;
use milepost_core::event::Aggregate;
use milepost_core::ident::EventId;
use milepost_core::port::{InboxCache, InboxStore, StoreResult};
use milepost_core::retry::RetryPolicy;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::lanes::Lanes;
use super::taking::{Ended, Failed, Memory, Message, caught, take_in, tell};
use super::{Handler, Incoming, Malformed, Receipt, Source};

/// How often the runner abandons gaps and looks for events in the inbox that have become ready.
const UPKEEP_EVERY: Duration = Duration::from_secs(2);
/// Limit of one upkeep step: about this number of events for abandoned gaps, and this number of ready aggregates.
const UPKEEP_MAX: u32 = 500;
/// The first and the longest wait while a broker is unavailable.
const DOWN_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The maximum number of events with a failure count. When it is reached, all counts are cleared, and backoffs start again at the shortest delay.
const FAILED_MAX: usize = 10_000;

/// Settings of a runner.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The maximum number of messages in progress.
    pub in_flight_max: usize,
    /// How long a failed event waits before its next attempt.
    pub backoff: RetryPolicy,
}

impl Default for RunnerOptions {
    /// 100 messages, backoff from one second to five minutes.
    fn default() -> Self {
        let backoff = RetryPolicy { cap: Duration::from_secs(300), ..RetryPolicy::default() };
        Self { in_flight_max: 100, backoff }
    }
}

/// Counters of a runner.
#[derive(Debug, Default)]
pub struct Counts {
    /// Events that were handled and acknowledged.
    pub handled: AtomicU64,
    /// Failed attempts of handlers.
    pub failed: AtomicU64,
    /// Messages that were not events.
    pub malformed: AtomicU64,
    /// Redelivered events that were acknowledged without running the handler, because the cache had recorded them.
    pub remembered: AtomicU64,
}

/// A consumer of events.
pub struct Runner {
    source: Box<dyn Source>,
    handler: Arc<dyn Handler>,
    options: RunnerOptions,
    inbox: Option<(Arc<dyn InboxStore>, String)>,
    memory: Option<Memory>,
    counts: Arc<Counts>,
}

/// A piece of work for an aggregate.
enum Work {
    Event(Box<Message>),
    Drain,
}

/// The result of a piece of work.
struct Done {
    aggregate: Aggregate,
    ended: Ended,
}

impl Runner {
    /// Creates a consumer of a source.
    pub fn new(source: impl Source + 'static, handler: Arc<dyn Handler>) -> Self {
        let counts = Arc::default();
        Self {
            source: Box::new(source),
            handler,
            options: RunnerOptions::default(),
            inbox: None,
            memory: None,
            counts,
        }
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: RunnerOptions) -> Self {
        self.options = options;
        self
    }

    /// Maintains the inbox of this name: abandons gaps, and [drains](Handler::drain) aggregates whose events have become ready.
    #[must_use]
    pub fn inbox(mut self, store: Arc<dyn InboxStore>, consumer: impl Into<String>) -> Self {
        self.inbox = Some((store, consumer.into()));
        self
    }

    /// Asks this cache first whether the consumer of this name has processed an event, so that most redelivered events need no transaction. Use it
    /// only with handlers that process events through an inbox: the inbox decides, also when the cache is unavailable or empty.
    #[must_use]
    pub fn cache(mut self, cache: Arc<dyn InboxCache>, consumer: impl Into<String>) -> Self {
        self.memory = Some(Memory { cache, consumer: consumer.into() });
        self
    }

    /// Returns the counters, which are updated while the runner runs.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Runs until `stop` is cancelled. Then it accepts no more messages, finishes and acknowledges those in progress, and returns the rest to the
    /// broker.
    pub async fn run(self, stop: CancellationToken) {
        let Self { source, handler, options, inbox, memory, counts } = self;
        let places = Arc::new(Semaphore::new(options.in_flight_max.max(1)));
        let (bring, mut brought) = mpsc::channel(1);
        let intake = tokio::spawn(take(source, bring, places, stop.clone()));
        let (wants, mut ready) = mpsc::channel(1);
        let upkeep =
            inbox.map(|(store, consumer)| tokio::spawn(look_after(store, consumer, wants, stop.clone())));
        let mut desk = Desk::new(handler, memory, options.backoff, counts);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = desk.working.join_next_with_id(), if !desk.working.is_empty() => desk.ended(done).await,
                Some((incoming, place)) = brought.recv() => desk.incoming(incoming, place).await,
                Some(aggregate) = ready.recv() => desk.enter(aggregate, Work::Drain),
            }
        }
        drop(brought);
        desk.stop().await;
        for task in [Some(intake), upkeep].into_iter().flatten() {
            // The task ends on the same cancellation.
            let _ = task.await;
        }
    }
}

/// Work in progress, and the work that waits for it.
struct Desk {
    handler: Arc<dyn Handler>,
    memory: Option<Memory>,
    backoff: RetryPolicy,
    counts: Arc<Counts>,
    lanes: Lanes<Work>,
    working: JoinSet<Done>,
    /// Number of failures of each event.
    failures: HashMap<EventId, u32>,
}

impl Desk {
    fn new(
        handler: Arc<dyn Handler>,
        memory: Option<Memory>,
        backoff: RetryPolicy,
        counts: Arc<Counts>,
    ) -> Self {
        let (lanes, working, failures) = (Lanes::new(), JoinSet::new(), HashMap::new());
        Self { handler, memory, backoff, counts, lanes, working, failures }
    }

    async fn incoming(&mut self, incoming: Incoming, place: OwnedSemaphorePermit) {
        let Incoming { event, receipt } = incoming;
        match event {
            Ok(event) => {
                let aggregate = event.aggregate.clone();
                self.enter(aggregate, Work::Event(Box::new(Message { event, receipt, _place: place })));
            }
            Err(malformed) => self.malformed(&malformed, receipt).await,
        }
    }

    fn enter(&mut self, aggregate: Aggregate, work: Work) {
        if let Some(work) = self.lanes.enter(&aggregate, work) {
            self.begin(aggregate, work);
        }
    }

    fn begin(&mut self, aggregate: Aggregate, work: Work) {
        let (handler, memory) = (Arc::clone(&self.handler), self.memory.clone());
        self.working.spawn(async move {
            let ended = match work {
                Work::Event(message) => take_in(handler.as_ref(), memory.as_ref(), message).await,
                Work::Drain => match caught(handler.drain(&aggregate)).await {
                    Ok(()) => Ended::Drained,
                    Err(why) => Ended::Failed(Failed { message: None, why }),
                },
            };
            Done { aggregate, ended }
        });
    }

    async fn ended(&mut self, done: Result<(tokio::task::Id, Done), JoinError>) {
        // Panics of handlers are caught, and no task is aborted while the desk exists, so a join error is not expected.
        let Ok((_, Done { aggregate, ended })) = done else { return };
        match ended {
            Ended::Drained | Ended::PutOff => {}
            Ended::Remembered => drop(self.counts.remembered.fetch_add(1, Ordering::Relaxed)),
            Ended::Handled(id) => {
                self.failures.remove(&id);
                self.counts.handled.fetch_add(1, Ordering::Relaxed);
            }
            Ended::Failed(Failed { message, why }) => self.failed(&aggregate, message, &why).await,
        }
        if let Some(next) = self.lanes.leave(&aggregate) {
            self.begin(aggregate, next);
        }
    }

    async fn failed(&mut self, aggregate: &Aggregate, message: Option<Box<Message>>, why: &Cause) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        let Some(message) = message else {
            tracing::warn!(%aggregate, error = %why,
                "an event kept in the inbox could not be processed; trying again");
            return;
        };
        let Message { event, receipt, _place } = *message;
        if self.failures.len() >= FAILED_MAX {
            self.failures.clear();
        }
        let times = self.failures.entry(event.id).or_default();
        *times = times.saturating_add(1);
        let after = self.backoff.delay(*times, fastrand::f64());
        let (id, sequence) = (event.id, event.sequence);
        tracing::warn!(%id, %aggregate, sequence, times, ?after, error = %why,
            "an event could not be processed; the broker will redeliver it");
        tell(receipt.retry(after)).await;
    }

    /// Handles a message that is not an event. It delays no other message.
    async fn malformed(&self, malformed: &Malformed, receipt: Box<dyn Receipt>) {
        self.counts.malformed.fetch_add(1, Ordering::Relaxed);
        tracing::error!(place = malformed.place, why = malformed.why, "a message is not an event");
        match self.handler.malformed(malformed).await {
            Ok(()) => tell(receipt.refuse()).await,
            Err(why) => {
                tracing::warn!(place = malformed.place, error = %why,
                    "the message could not be stored; the broker will redeliver it");
                tell(receipt.retry(self.backoff.delay(1, fastrand::f64()))).await;
            }
        }
    }

    /// Finishes work in progress and returns the rest to the broker.
    async fn stop(mut self) {
        let returned = self.lanes.give_back().into_iter().filter_map(|work| match work {
            Work::Event(message) => Some(async move { tell(message.receipt.retry(Duration::ZERO)).await }),
            Work::Drain => None,
        });
        join_all(returned).await;
        while let Some(done) = self.working.join_next_with_id().await {
            self.ended(done).await;
        }
    }
}

/// Receives messages while there is room for them.
async fn take(
    mut source: Box<dyn Source>,
    bring: mpsc::Sender<(Incoming, OwnedSemaphorePermit)>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
) {
    let mut wait = DOWN_WAITS.0;
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((source.next().await, place))
        };
        let Some(Some((incoming, place))) = stop.run_until_cancelled(next).await else { return };
        match incoming {
            Ok(incoming) => {
                wait = DOWN_WAITS.0;
                if bring.send((incoming, place)).await.is_err() {
                    return;
                }
            }
            Err(down) => {
                tracing::warn!(place = down.place, why = down.why, "the broker cannot be read; trying again");
                if stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    return;
                }
                wait = (wait * 2).min(DOWN_WAITS.1);
            }
        }
    }
}

/// Abandons gaps, and sends the aggregates whose events in the inbox have become ready.
async fn look_after(
    store: Arc<dyn InboxStore>,
    consumer: String,
    wants: mpsc::Sender<Aggregate>,
    stop: CancellationToken,
) {
    let mut looks = tokio::time::interval_at(Instant::now() + UPKEEP_EVERY, UPKEEP_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(looks.tick()).await.is_some() {
        match look(store.as_ref(), &consumer).await {
            Ok(ready) => {
                for aggregate in ready {
                    if wants.send(aggregate).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => tracing::warn!(
                consumer,
                error = error.chain(),
                "the maintenance of the inbox failed; trying again"
            ),
        }
    }
}

async fn look(store: &dyn InboxStore, consumer: &str) -> StoreResult<Vec<Aggregate>> {
    let given_up = store.give_up_gaps(Some(consumer), UPKEEP_MAX).await?;
    if given_up.gaps > 0 {
        let (gaps, letters) = (given_up.gaps, given_up.letters);
        tracing::warn!(
            consumer,
            gaps,
            letters,
            "the inbox stopped waiting for missing events; see the dead letters"
        );
    }
    store.inbox_ready(consumer, UPKEEP_MAX).await
}

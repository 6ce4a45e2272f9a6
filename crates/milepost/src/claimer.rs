//! Takes jobs while there is room for them, and sleeps when there are none.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::batches;
use crate::executor;
use crate::incarnation::Shared;

/// How long a claimer that is behind waits for more free places, so that its claims stay large.
const GATHER: Duration = Duration::from_millis(2);
/// How often it compares what it has in hand with what the store says.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The same while a handler is asked to stop: it may be fenced off meanwhile.
const LOOK_EVERY_WHILE_STOPPING: Duration = Duration::from_secs(5);
/// The same while a run is in hand that the store does not know.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest wait between tries while the store does not answer.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// How many claims are under way at once while there is more to be had: while one waits for its commit to
/// reach the disk, the other looks for rows.
const CLAIMS_MAX: usize = 3;

/// One claim under way, with the places kept for what it brings.
type UnderWay = BoxFuture<'static, Answered>;

/// What became of a claim.
struct Answered {
    /// The places kept for what it brought.
    places: OwnedSemaphorePermit,
    answer: StoreResult<Vec<ClaimedJob>>,
    /// Whether nothing was in hand when it was made, so that nobody here could make anything ready any more.
    alone: bool,
}

pub(crate) struct Claimer {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    claim_id: i32,
    /// Whether the last claim was filled: then there is probably more.
    behind: bool,
    failures: u32,
    /// Whether a claim failed, so that the store may hold jobs for us that we do not know of.
    in_doubt: bool,
    /// Whether nothing is left of what it was to do.
    done: bool,
    looked_at: Instant,
    /// Runs in hand that the store did not know at the last look. When it does not know them at the next either,
    /// their handlers are asked to stop, and at the one after that they are dropped.
    unknown: HashSet<Run>,
}

impl Claimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let places = Arc::new(Semaphore::new(shared.options.concurrency));
        Self {
            shared,
            places,
            claim_id: 0,
            behind: false,
            failures: 0,
            in_doubt: false,
            done: false,
            looked_at: Instant::now(),
            unknown: HashSet::new(),
        }
    }

    /// Runs until the worker stops claiming, loses its lease, or has nothing more to do. A claim that is under way is
    /// waited for, so that what it brings is not left lying.
    pub(crate) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut under_way = FuturesUnordered::new();
        tokio::select! {
            () = shared.stop_claiming.cancelled() => {}
            () = shared.lost.cancelled() => return,
            () = self.claim_for_ever(&mut under_way) => return,
        }
        loop {
            tokio::select! {
                answered = under_way.next() => match answered {
                    Some(Answered { places, answer: Ok(jobs), .. }) => self.start(jobs, places),
                    Some(_) => {}
                    None => return,
                },
                () = shared.lost.cancelled() => return,
            }
        }
    }

    async fn claim_for_ever(&mut self, under_way: &mut FuturesUnordered<UnderWay>) {
        loop {
            if self.in_doubt || self.look_in().is_zero() {
                // What the store says must not include what a claim under way is about to bring.
                self.settle(under_way).await;
                self.reconcile().await;
            }
            let claims_max = if self.behind && !self.shared.until_idle { CLAIMS_MAX } else { 1 };
            if under_way.len() < claims_max {
                let answered = tokio::select! {
                    biased;
                    () = tokio::time::sleep(self.look_in()) => continue,
                    places = Self::free_places(&self.shared, &self.places, self.behind) => {
                        let Some(places) = places else { return };
                        under_way.push(self.claim(places));
                        continue;
                    }
                    Some(answered) = under_way.next() => answered,
                };
                self.take(answered, under_way.is_empty()).await;
            } else if let Some(answered) = under_way.next().await {
                self.take(answered, under_way.is_empty()).await;
            }
            if self.shared.lost.is_cancelled() || self.done {
                return;
            }
        }
    }

    /// Waits for all claims that are under way.
    async fn settle(&mut self, under_way: &mut FuturesUnordered<UnderWay>) {
        while let Some(answered) = under_way.next().await {
            self.take(answered, false).await;
        }
    }

    /// Whether batches had something left to be worked out, which may have made jobs.
    async fn advanced(&self) -> bool {
        batches::advance(&self.shared).await.unwrap_or_else(|error| {
            tracing::warn!(error = error.chain(), "batches could not be advanced; trying again");
            true
        })
    }

    /// Takes what a claim brought. `last`: no other claim is under way.
    async fn take(&mut self, Answered { places, answer, alone }: Answered, last: bool) {
        match answer {
            Ok(jobs) => {
                self.failures = 0;
                self.behind = jobs.len() >= places.num_permits();
                if !jobs.is_empty() {
                    self.start(jobs, places);
                } else if last {
                    drop(places);
                    self.done = self.shared.until_idle && alone && !self.advanced().await;
                    if !self.done {
                        self.idle().await;
                    }
                }
            }
            Err(StoreError::WorkerLost(_)) => self.shared.lost.cancel(),
            Err(error) => {
                drop(places);
                self.back_off(&error).await;
            }
        }
    }

    /// Waits for at least one free place and takes all there are, up to a batch.
    async fn free_places(
        shared: &Shared,
        all: &Arc<Semaphore>,
        behind: bool,
    ) -> Option<OwnedSemaphorePermit> {
        let batch = shared.options.claim_batch.min(shared.options.concurrency);
        let mut places = all.clone().acquire_owned().await.ok()?;
        if behind && all.available_permits() + 1 < batch / 2 {
            let more = u32::try_from(batch / 2 - 1).unwrap_or(0);
            if let Ok(more) = tokio::time::timeout(GATHER, all.clone().acquire_many_owned(more)).await {
                places.merge(more.ok()?);
            }
        }
        let more = all.available_permits().min(batch - places.num_permits().min(batch));
        if let Ok(more) = all.clone().try_acquire_many_owned(u32::try_from(more).unwrap_or(0)) {
            places.merge(more);
        }
        Some(places)
    }

    fn claim(&mut self, places: OwnedSemaphorePermit) -> UnderWay {
        self.claim_id = self.claim_id.wrapping_add(1).max(1);
        let shared = self.shared.clone();
        let claim = Claim {
            worker: shared.worker,
            claim_id: self.claim_id,
            queues: shared.options.queues.clone(),
            kinds: shared.kinds.names(),
            limit: u32::try_from(places.num_permits()).unwrap_or(u32::MAX),
            thorough: shared.until_idle,
        };
        async move {
            let alone = shared.flight.len() == 0;
            let answer = shared.store.claim(&claim).await;
            Answered { places, answer, alone }
        }
        .boxed()
    }

    fn start(&self, jobs: Vec<ClaimedJob>, mut places: OwnedSemaphorePermit) {
        self.shared.stats.count_claimed(&jobs);
        let stops = self.shared.flight.board(jobs.iter().map(|job| job.run));
        for (job, stop) in jobs.into_iter().zip(stops) {
            if let Some(place) = places.split(1) {
                executor::start(self.shared.clone(), job, stop, place);
            }
        }
    }

    /// How long until the next look at what the store says.
    fn look_in(&self) -> Duration {
        let every = match () {
            () if !self.unknown.is_empty() => LOOK_AGAIN,
            () if self.shared.flight.is_stopping() => LOOK_EVERY_WHILE_STOPPING,
            () => LOOK_EVERY,
        };
        every.saturating_sub(self.looked_at.elapsed())
    }

    /// Waits for a hint, or for the poll interval; one that is to leave when nothing is left, also until nothing is
    /// in hand.
    async fn idle(&self) {
        let shared = &self.shared;
        let interval = shared.options.poll_interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        tokio::select! {
            () = shared.ready.notified() => {}
            () = shared.flight.emptied(), if shared.until_idle => {}
            () = tokio::time::sleep(interval) => {}
        }
    }

    /// After an error nobody knows whether the claim was made: the store has to be asked what we hold.
    async fn back_off(&mut self, error: &StoreError) {
        tracing::warn!(error = error.chain(), "jobs could not be claimed; trying again");
        let wait = (Duration::from_millis(50) * 2u32.pow(self.failures.min(8))).min(RETRY_WAIT_MAX);
        self.failures += 1;
        self.in_doubt = true;
        tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
    }

    /// Takes in hand what the store says we hold, and lets go of what it says we do not. No claim may be under
    /// way.
    async fn reconcile(&mut self) {
        // Looked at before the store is asked: a run that ends in between is not one whose claim was lost.
        let in_hand = self.shared.flight.all();
        let handlers = self.shared.flight.handlers();
        let Ok(held) = self.shared.store.held(self.shared.worker).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        };
        self.in_doubt = false;
        self.looked_at = Instant::now();
        let known: HashSet<Run> = held.iter().map(|job| job.run).collect();

        let unknown: HashSet<Run> = handlers.into_iter().filter(|run| !known.contains(run)).collect();
        for &run in unknown.intersection(&self.unknown) {
            tracing::warn!(job = %run.job, token = %run.token, "the store has given this run up; stopping its handler");
            self.shared.flight.give_up(run);
        }
        self.unknown = unknown;

        for job in held.into_iter().filter(|job| !in_hand.contains(&job.run)) {
            tracing::warn!(job = %job.run.job, claim_id = job.claim_id, "the answer to a claim was lost; running its job");
            self.shared.stats.adopted.add(1);
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            self.start(vec![job], place);
        }
    }
}

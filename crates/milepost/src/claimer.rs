//! Claims jobs while there are free places, and sleeps while there are no jobs.

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
use crate::shared::Shared;

/// How long a claimer that is behind waits for more free places, so that its claims stay large.
const GATHER: Duration = Duration::from_millis(2);
/// The interval at which it compares the runs in hand with those in the store.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The interval while a handler is asked to stop, because the run may be fenced off.
const LOOK_EVERY_WHILE_STOPPING: Duration = Duration::from_secs(5);
/// The interval while a run in hand is unknown to the store.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The longest wait between attempts while the store does not answer.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(5);

/// The maximum number of concurrent claims while more jobs are available: while one claim waits for its commit to reach the disk, another
/// searches for rows.
const CLAIMS_MAX: usize = 3;

/// A claim in flight, with the places reserved for its jobs.
type UnderWay = BoxFuture<'static, Answered>;

/// The result of a claim.
struct Answered {
    /// The places reserved for its jobs.
    places: OwnedSemaphorePermit,
    answer: StoreResult<Vec<ClaimedJob>>,
    /// Whether no run was in hand when the claim was made, so that no run here could make further jobs ready.
    alone: bool,
}

pub(crate) struct Claimer {
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    claim_id: i32,
    /// Whether the last claim was filled, so that there are probably more jobs.
    behind: bool,
    failures: u32,
    /// Whether a claim failed, so that the store may have assigned jobs that this worker does not know.
    in_doubt: bool,
    /// Whether there is nothing left to do.
    done: bool,
    looked_at: Instant,
    /// Runs in hand that were unknown to the store at the last check. If they are unknown at the next check, too, their handlers are asked
    /// to stop; at the check after that they are dropped.
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

    /// Runs until the worker stops claiming, loses its lease, or has nothing left to do. It waits for claims in flight, so that their jobs
    /// are not lost.
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
                // The jobs held according to the store must not include those of a claim in flight.
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

    /// Waits for all claims in flight.
    async fn settle(&mut self, under_way: &mut FuturesUnordered<UnderWay>) {
        while let Some(answered) = under_way.next().await {
            self.take(answered, false).await;
        }
    }

    /// Returns whether deferred batch work was processed, which may have created jobs.
    async fn advanced(&self) -> bool {
        batches::advance(&self.shared).await.unwrap_or_else(|error| {
            tracing::warn!(error = error.chain(), "batches could not be advanced; trying again");
            true
        })
    }

    /// Handles the result of a claim. `last`: no other claim is in flight.
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

    /// Waits for at least one free place and acquires all free places, up to a batch.
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
            let alone = shared.runs.len() == 0;
            let answer = shared.store.claim(&claim).await;
            Answered { places, answer, alone }
        }
        .boxed()
    }

    fn start(&self, jobs: Vec<ClaimedJob>, mut places: OwnedSemaphorePermit) {
        self.shared.stats.count_claimed(&jobs);
        let stops = self.shared.runs.begin(jobs.iter().map(|job| job.run));
        for (job, stop) in jobs.into_iter().zip(stops) {
            if let Some(place) = places.split(1) {
                executor::start(self.shared.clone(), job, stop, place);
            }
        }
    }

    /// Returns the time until the next comparison with the store.
    fn look_in(&self) -> Duration {
        let every = match () {
            () if !self.unknown.is_empty() => LOOK_AGAIN,
            () if self.shared.runs.is_stopping() => LOOK_EVERY_WHILE_STOPPING,
            () => LOOK_EVERY,
        };
        every.saturating_sub(self.looked_at.elapsed())
    }

    /// Waits for a notification or the poll interval; a worker that leaves when idle also waits until no run is in hand.
    async fn idle(&self) {
        let shared = &self.shared;
        let interval = shared.options.poll_interval.mul_f64(0.9 + 0.2 * fastrand::f64());
        tokio::select! {
            () = shared.ready.notified() => {}
            () = shared.runs.emptied(), if shared.until_idle => {}
            () = tokio::time::sleep(interval) => {}
        }
    }

    /// Waits after an error. It is unknown whether the claim was committed, so the store has to be asked for the jobs held.
    async fn back_off(&mut self, error: &StoreError) {
        tracing::warn!(error = error.chain(), "jobs could not be claimed; trying again");
        let wait = (Duration::from_millis(50) * 2u32.pow(self.failures.min(8))).min(RETRY_WAIT_MAX);
        self.failures += 1;
        self.in_doubt = true;
        tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64())).await;
    }

    /// Starts runs that the store has assigned and this worker does not know, and releases runs that the store does not know. No claim may
    /// be in flight.
    async fn reconcile(&mut self) {
        // Read before the store is asked, so that a run that ends in between is not mistaken for a lost claim.
        let in_hand = self.shared.runs.all();
        let handlers = self.shared.runs.handlers();
        let Ok(held) = self.shared.store.held(self.shared.worker).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        };
        self.in_doubt = false;
        self.looked_at = Instant::now();
        let known: HashSet<Run> = held.iter().map(|job| job.run).collect();

        let unknown: HashSet<Run> = handlers.into_iter().filter(|run| !known.contains(run)).collect();
        for &run in unknown.intersection(&self.unknown) {
            tracing::warn!(job = %run.job, token = %run.token,
                "the run is no longer assigned to this worker; stopping its handler");
            self.shared.runs.give_up(run);
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

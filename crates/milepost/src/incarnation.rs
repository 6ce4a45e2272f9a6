//! One incarnation of a worker: from its registration until it shuts down or loses its lease.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::finish::{End, Finish};
use milepost_core::ident::WorkerId;
use milepost_core::port::{Coordination, Store, StoreResult, Wake, WakeStream};
use milepost_core::stats::Stats;
use milepost_core::worker::NewWorker;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::claimer::Claimer;
use crate::completer::{self, Ends};
use crate::coordinator::{self, Coordinator};
use crate::flight::Flight;
use crate::handler::Kinds;
use crate::reporter::Reporter;
use crate::worker::WorkerOptions;
use crate::{batches, heartbeat, maintenance, retention, ticker};

/// The time limit for dropping handlers.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// The state shared by the parts of one incarnation.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) options: WorkerOptions,
    pub(crate) stats: Arc<Stats>,
    pub(crate) worker: WorkerId,
    pub(crate) flight: Flight,
    pub(crate) ends: Ends,
    pub(crate) reporter: Reporter,
    pub(crate) coordinator: Coordinator,
    pub(crate) until_idle: bool,
    pub(crate) tasks: TaskTracker,
    /// Notified when jobs may be ready.
    pub(crate) ready: Notify,
    /// Notified when a job may have a stop request.
    pub(crate) beat_now: Notify,
    /// Notified when batches may have work left.
    pub(crate) advance_now: Notify,
    /// Canceled to stop claims.
    pub(crate) stop_claiming: CancellationToken,
    /// Canceled when the drain time has passed: handlers are dropped and their jobs handed back.
    pub(crate) hand_back: CancellationToken,
    /// Canceled when the lease is lost: handlers are dropped and nothing is written.
    pub(crate) lost: CancellationToken,
    /// Canceled when the store does not answer and the worker stops waiting.
    pub(crate) give_up: CancellationToken,
    /// Canceled when the incarnation has ended.
    pub(crate) ended: CancellationToken,
}

/// Why an incarnation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Left,
    LeaseLost,
}

/// The settings that all incarnations of a worker share.
pub(crate) struct Settings {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) options: WorkerOptions,
    pub(crate) stats: Arc<Stats>,
    pub(crate) coordination: Option<Arc<dyn Coordination>>,
    pub(crate) stop_claiming: CancellationToken,
    /// Whether the worker stops automatically when no job is ready or running.
    pub(crate) until_idle: bool,
}

/// A registered worker, ready to run.
pub(crate) struct Incarnation {
    shared: Arc<Shared>,
    completer: AbortOnDropHandle<()>,
    helpers: Vec<AbortOnDropHandle<()>>,
    /// Ends automatically when the incarnation ends.
    mirror: AbortOnDropHandle<()>,
}

impl Incarnation {
    pub(crate) async fn register(settings: &Settings) -> StoreResult<Self> {
        let options = settings.options.clone();
        let worker = NewWorker {
            name: options.name.clone(),
            queues: options.queues.clone(),
            kinds: settings.kinds.names(),
            lease: options.lease,
            backoffs: settings.kinds.backoffs(),
        };
        let worker = settings.store.register_worker(&worker).await?;
        let (ends, receiver) = Ends::channel();
        let shared = Arc::new(Shared {
            store: settings.store.clone(),
            kinds: settings.kinds.clone(),
            options,
            stats: settings.stats.clone(),
            worker,
            flight: Flight::default(),
            ends,
            reporter: Reporter::default(),
            coordinator: Coordinator::new(settings.coordination.clone()),
            until_idle: settings.until_idle,
            tasks: TaskTracker::new(),
            ready: Notify::new(),
            beat_now: Notify::new(),
            advance_now: Notify::new(),
            stop_claiming: settings.stop_claiming.clone(),
            hand_back: CancellationToken::new(),
            lost: CancellationToken::new(),
            give_up: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        let helpers = vec![
            spawn(heartbeat::run(shared.clone())),
            spawn(maintenance::run(shared.clone())),
            spawn(batches::run(shared.clone())),
            spawn(ticker::run(shared.clone())),
            spawn(retention::run(shared.clone())),
            spawn(listen(shared.clone())),
            spawn(shared.reporter.clone().run(shared.store.clone())),
            spawn(coordinator::listen(shared.clone())),
            spawn(coordinator::announce(shared.clone())),
        ];
        let mirror = spawn(coordinator::mirror(shared.clone()));
        let completer = spawn(completer::run(shared.clone(), receiver));
        Ok(Self { shared, completer, helpers, mirror })
    }

    /// Claims and runs jobs until the worker shuts down, has nothing left to do, or loses its lease.
    pub(crate) async fn run(self) -> Ended {
        Claimer::new(self.shared.clone()).run().await;
        if self.shared.lost.is_cancelled() { self.lose().await } else { self.leave().await }
    }

    /// Drains, hands back unfinished jobs, and retires the worker.
    async fn leave(self) -> Ended {
        let shared = &self.shared;
        shared.tasks.close();
        let drained = tokio::select! {
            drained = tokio::time::timeout(shared.options.drain, shared.tasks.wait()) => drained.is_ok(),
            () = shared.lost.cancelled() => return self.lose().await,
        };
        if !drained {
            for run in shared.flight.handlers() {
                shared.flight.warn(run);
            }
            let _ = tokio::time::timeout(shared.options.hand_back_grace, shared.tasks.wait()).await;
            shared.hand_back.cancel();
            shared.wait_for_tasks().await;
        }
        let flush = shared.reporter.flush(shared.store.as_ref());
        if tokio::time::timeout(shared.options.lease, flush).await.is_err() {
            tracing::warn!("the store did not accept the last progress reports");
        }
        self.settle().await;
        Ended::Left
    }

    /// Waits until the store has acknowledged every end, then retires the worker. The wait is limited, so that an unavailable store does
    /// not block the process forever.
    async fn settle(self) {
        let Self { shared, completer, helpers, mirror } = self;
        if tokio::time::timeout(shared.options.lease, shared.flight.emptied()).await.is_err() {
            tracing::error!(
                jobs = shared.flight.len(),
                "the store did not accept the ends of some runs; their jobs will be rescued"
            );
            shared.give_up.cancel();
        } else {
            shared.leave_word().await;
        }
        shared.ended.cancel();
        let _ = mirror.await;
        drop((completer, helpers));
    }

    /// Drops everything immediately, because another worker may have the jobs.
    async fn lose(self) -> Ended {
        let Self { shared, completer, helpers, mirror } = self;
        shared.stats.leases_lost.add(1);
        shared.tasks.close();
        shared.wait_for_tasks().await;
        shared.ended.cancel();
        drop(helpers);
        // Earlier ends are still sent: they count if no other worker has claimed the job since.
        tokio::spawn(async move {
            let _ = mirror.await;
            shared.flight.emptied().await;
            drop(completer);
        });
        Ended::LeaseLost
    }
}

impl Shared {
    /// Waits until every handler is dropped. A handler that blocks its thread cannot be dropped and is abandoned.
    async fn wait_for_tasks(&self) {
        if tokio::time::timeout(DROP_GRACE, self.tasks.wait()).await.is_err() {
            tracing::error!(
                handlers = self.tasks.len(),
                "handlers that block their thread could not be stopped; they continue after the worker has ended"
            );
        }
    }

    /// Checks the store on every hint, and once at the start, because changes may have been announced before the subscription.
    pub(crate) async fn heed(&self, mut hints: Box<dyn WakeStream>) {
        self.ready.notify_one();
        loop {
            match hints.next().await {
                Wake::Ready => self.ready.notify_one(),
                Wake::Stop => self.beat_now.notify_one(),
                Wake::Batch => self.advance_now.notify_one(),
            }
        }
    }

    /// Signs off, if the store answers in time.
    async fn leave_word(&self) {
        let why = match tokio::time::timeout(self.options.lease, self.sign_off()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.chain(),
            Err(_) => "the store does not answer".to_owned(),
        };
        tracing::warn!(why, "the worker could not sign off; its lease will expire");
    }

    /// Hands back jobs of a claim whose answer was lost, and retires the worker.
    async fn sign_off(&self) -> StoreResult<()> {
        let held = self.store.held(self.worker).await?;
        let note = "handed back at shutdown".to_owned();
        let ends: Vec<Finish> = held
            .into_iter()
            .map(|job| {
                let end = End::Yield { delay: Duration::ZERO, note: note.clone() };
                Finish { run: job.run, end, grouped: job.group.is_some(), task: job.batch.is_some() }
            })
            .collect();
        if !ends.is_empty() {
            tracing::warn!(jobs = ends.len(), "the answer to a claim was lost; handing its jobs back");
            self.store.finish_many(self.worker, &ends).await?;
        }
        self.store.retire_worker(self.worker).await
    }
}

/// Forwards the store's hints to the claimer, the heartbeat and the batch task.
async fn listen(shared: Arc<Shared>) {
    let wakes = loop {
        match shared.store.wakes().await {
            Ok(wakes) => break wakes,
            Err(error) => {
                tracing::warn!(
                    error = error.chain(),
                    "cannot listen for notifications of new jobs; polling instead"
                );
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    };
    shared.heed(wakes).await;
}

fn spawn(task: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(task))
}

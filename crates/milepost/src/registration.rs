//! One registration of a worker, until it shuts down or loses its lease.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::port::{Coordination, Store, StoreResult};
use milepost_core::stats::Stats;
use milepost_core::worker::NewWorker;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::claimer::Claimer;
use crate::coordinator::Coordinator;
use crate::end_channel::Ends;
use crate::handler::Kinds;
use crate::options::WorkerOptions;
use crate::reporter::Reporter;
use crate::runs_in_hand::Runs;
use crate::shared::Shared;
use crate::{batches, completer, coordination, heartbeat, maintenance, retention, ticker};

/// Why a registration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Left,
    LeaseLost,
}

/// The settings that all registrations of a worker share.
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
pub(crate) struct Registration {
    shared: Arc<Shared>,
    completer: AbortOnDropHandle<()>,
    helpers: Vec<AbortOnDropHandle<()>>,
    /// Ends automatically when the registration ends.
    mirror: AbortOnDropHandle<()>,
}

impl Registration {
    pub(crate) async fn register(settings: &Settings) -> StoreResult<Self> {
        let options = settings.options.clone();
        let worker = NewWorker {
            name: options.name.clone(),
            queues: options.queues.clone(),
            kinds: settings.kinds.names(),
            lease: options.lease,
            backoffs: settings.kinds.backoffs(),
            slots: u32::try_from(options.concurrency).ok().and_then(NonZeroU32::new),
        };
        let registered_at = Instant::now();
        let worker = settings.store.register_worker(&worker).await?;
        let (ends, receiver) = Ends::channel();
        let shared = Arc::new(Shared {
            store: settings.store.clone(),
            kinds: settings.kinds.clone(),
            options,
            stats: settings.stats.clone(),
            worker,
            runs: Runs::default(),
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
            spawn(heartbeat::run(shared.clone(), registered_at)),
            spawn(maintenance::run(shared.clone())),
            spawn(batches::run(shared.clone())),
            spawn(ticker::run(shared.clone())),
            spawn(retention::run(shared.clone())),
            spawn(listen(shared.clone())),
            spawn(shared.reporter.clone().run(shared.store.clone())),
            spawn(coordination::listen(shared.clone())),
            spawn(coordination::announce(shared.clone())),
        ];
        let mirror = spawn(coordination::mirror(shared.clone()));
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
            for run in shared.runs.handlers() {
                shared.runs.warn(run);
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
        if tokio::time::timeout(shared.options.lease, shared.runs.emptied()).await.is_err() {
            tracing::error!(
                jobs = shared.runs.len(),
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
            shared.runs.emptied().await;
            drop(completer);
        });
        Ended::LeaseLost
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

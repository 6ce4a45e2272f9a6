//! The state that the tasks of a registered worker share.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::finish::{End, Finish};
use milepost_core::ident::WorkerId;
use milepost_core::port::{Store, StoreResult, Wake, WakeStream};
use milepost_core::stats::Stats;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::coordinator::Coordinator;
use crate::end_channel::Ends;
use crate::handler::Kinds;
use crate::options::WorkerOptions;
use crate::reporter::Reporter;
use crate::runs_in_hand::Runs;

/// The time limit for dropping handlers.
const DROP_GRACE: Duration = Duration::from_secs(5);

/// The state shared by the parts of one registration.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) kinds: Arc<Kinds>,
    pub(crate) options: WorkerOptions,
    pub(crate) stats: Arc<Stats>,
    pub(crate) worker: WorkerId,
    pub(crate) runs: Runs,
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
    /// Canceled when the registration has ended.
    pub(crate) ended: CancellationToken,
}

impl Shared {
    /// Waits until every handler is dropped. A handler that blocks its thread cannot be dropped and is abandoned.
    pub(crate) async fn wait_for_tasks(&self) {
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
    pub(crate) async fn leave_word(&self) {
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

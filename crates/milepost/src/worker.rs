//! A worker: handlers, settings, and its life over incarnations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::job::QUEUE_DEFAULT;
use milepost_core::port::{Coordination, Store, StoreResult};
use milepost_core::retention::RetentionPolicy;
use milepost_core::stats::{SpreadView, Stats, StatsView};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bulk::Bulk;
use crate::context::Context;
use crate::handler::{Handler, Job, JobError, KindOptions, Kinds, Outcome};
use crate::incarnation::{Ended, Incarnation, Settings};

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Its name for people; host and process id unless given.
    pub name: String,
    /// The queues it serves.
    pub queues: Vec<String>,
    /// The most jobs that run at once.
    pub concurrency: usize,
    /// The most jobs taken by one claim.
    pub claim_batch: usize,
    /// How long it may be silent before it is declared dead and its jobs are taken back.
    pub lease: Duration,
    /// How long it goes without looking for work when nothing wakes it.
    pub poll_interval: Duration,
    /// How long jobs may go on after a shutdown was asked for.
    pub drain: Duration,
    /// How long jobs that did not end by then get to stop by themselves before they are handed back.
    pub hand_back_grace: Duration,
    /// How long what is over is kept. Workers of one store should agree: the shortest period wins.
    pub retention: RetentionPolicy,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            name: format!("{}:{}", host(), std::process::id()),
            queues: vec![QUEUE_DEFAULT.to_owned()],
            concurrency: 64,
            claim_batch: 500,
            lease: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            drain: Duration::from_secs(20),
            hand_back_grace: Duration::from_secs(2),
            retention: RetentionPolicy::default(),
        }
    }
}

/// The name of this machine.
#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The name of this machine, where the system tells it.
#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "worker".to_owned())
}

/// Makes a [`Worker`].
#[derive(Clone)]
pub struct WorkerBuilder {
    store: Arc<dyn Store>,
    kinds: Kinds,
    options: WorkerOptions,
    coordination: Option<Arc<dyn Coordination>>,
}

impl WorkerBuilder {
    /// Runs jobs of kind `J::KIND` with this handler.
    #[must_use]
    pub fn handle<J: Job>(mut self, handler: impl Handler<J>) -> Self {
        self.kinds.add(handler);
        self
    }

    /// Runs jobs of a kind that has no type of its own; the payload is the context's, as JSON text. Of the options,
    /// a [`RetryPolicy`](milepost_core::retry::RetryPolicy) alone will do.
    #[must_use]
    pub fn handle_kind<F, Fut>(mut self, kind: &str, options: impl Into<KindOptions>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        self.kinds.add_kind(kind, options, handler);
        self
    }

    /// Runs bulk jobs of this definition, and serves its queue.
    #[must_use]
    pub fn bulk(mut self, bulk: Bulk) -> Self {
        let (name, queue) = (bulk.definition().name.clone(), bulk.definition().queue.clone());
        if !self.options.queues.contains(&queue) {
            self.options.queues.push(queue);
        }
        self.kinds.add_performed(&name, KindOptions::default(), bulk.perform(self.store.clone()));
        self
    }

    /// Serves these queues instead of the default one.
    #[must_use]
    pub fn queues<Q: Into<String>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.options.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// Changes the settings.
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut WorkerOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Uses a helper beside the store, such as Redis (`milepost-redis`), for sooner wake-ups and stops. Nothing
    /// depends on it.
    #[must_use]
    pub fn coordination(mut self, helper: Arc<dyn Coordination>) -> Self {
        self.coordination = Some(helper);
        self
    }

    /// Registers the worker and starts it.
    ///
    /// # Errors
    /// When the store cannot be reached, or a setting cannot be.
    pub async fn start(self) -> StoreResult<Worker> {
        self.launch(false).await
    }

    /// Runs all that is ready, with what that makes ready in turn, and returns what was done when nothing is left: no
    /// job that could be claimed now, and none that runs. Jobs whose time has not come, such as retries that wait,
    /// stay. May be called again and again: for tests, and for programs that others start now and then.
    ///
    /// Dropped before it returns, it takes no further jobs, and what runs is ended as at a shutdown.
    ///
    /// # Errors
    /// When the store cannot be reached, or a setting cannot be.
    pub async fn drain(&self) -> StoreResult<StatsView> {
        let mut worker = self.clone().launch(true).await?;
        let _stop = worker.stop_claiming.clone().drop_guard();
        worker.ended().await;
        Ok(worker.stats())
    }

    async fn launch(self, until_idle: bool) -> StoreResult<Worker> {
        self.options.retention.check()?;
        let stats = Arc::new(Stats::default());
        let stop_claiming = CancellationToken::new();
        let settings = Settings {
            store: self.store,
            kinds: Arc::new(self.kinds),
            options: self.options,
            stats: stats.clone(),
            coordination: self.coordination.clone(),
            stop_claiming: stop_claiming.clone(),
            until_idle,
        };
        let first = Incarnation::register(&settings).await?;
        let task = tokio::spawn(live(settings, first));
        Ok(Worker { stats, coordination: self.coordination, stop_claiming, task })
    }
}

impl fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.names();
        f.debug_struct("WorkerBuilder")
            .field("kinds", &kinds)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A running worker. Dropping it leaves it running; [`shutdown`](Self::shutdown) ends it well.
pub struct Worker {
    stats: Arc<Stats>,
    coordination: Option<Arc<dyn Coordination>>,
    stop_claiming: CancellationToken,
    task: JoinHandle<()>,
}

impl Worker {
    /// A worker on this store, to be given handlers.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>) -> WorkerBuilder {
        WorkerBuilder {
            store,
            kinds: Kinds::default(),
            options: WorkerOptions::default(),
            coordination: None,
        }
    }

    /// What it has done so far.
    #[must_use]
    pub fn stats(&self) -> StatsView {
        self.counters().view()
    }

    /// Its counters, to be looked at from elsewhere, also when it has left.
    #[must_use]
    pub fn counters(&self) -> WorkerCounters {
        WorkerCounters { stats: self.stats.clone(), coordination: self.coordination.clone() }
    }

    /// Takes no further jobs, waits for those that run, hands back those that do not end in time, signs off.
    pub async fn shutdown(mut self) {
        self.stop_claiming.cancel();
        self.ended().await;
    }

    async fn ended(&mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the worker's task ended badly");
        }
    }
}

/// The counters of a worker.
#[derive(Clone)]
pub struct WorkerCounters {
    stats: Arc<Stats>,
    coordination: Option<Arc<dyn Coordination>>,
}

impl WorkerCounters {
    /// What they stand at.
    #[must_use]
    pub fn view(&self) -> StatsView {
        let health = self.coordination.as_ref().map(|helper| helper.health());
        StatsView {
            coordination_up: health.map(|health| health.up),
            coordination_failures: health.map_or(0, |health| health.failures),
            ..self.stats.view()
        }
    }
}

impl WorkerCounters {
    /// How its numbers are spread.
    #[must_use]
    pub fn spread(&self) -> SpreadView {
        self.stats.spread()
    }
}

impl fmt::Debug for WorkerCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkerCounters").field(&self.view()).finish()
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Incarnation after incarnation, until one leaves by itself.
async fn live(settings: Settings, first: Incarnation) {
    let mut incarnation = first;
    while incarnation.run().await == Ended::LeaseLost {
        incarnation = loop {
            if settings.stop_claiming.is_cancelled() {
                return;
            }
            match Incarnation::register(&settings).await {
                Ok(next) => break next,
                Err(error) => {
                    tracing::warn!(error = error.chain(), "the worker could not register; trying again");
                    tokio::time::sleep(Duration::from_millis(500).mul_f64(0.5 + fastrand::f64())).await;
                }
            }
        };
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn a_worker_is_named_after_its_machine_and_its_process() {
        let uname = std::process::Command::new("uname").arg("-n").output().unwrap();
        let host = String::from_utf8(uname.stdout).unwrap();
        let expected = format!("{}:{}", host.trim(), std::process::id());
        assert_eq!(WorkerOptions::default().name, expected);
    }
}

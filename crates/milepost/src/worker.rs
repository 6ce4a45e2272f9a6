//! Workers: handlers and settings, and registrations one after another.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::bulk::dry_run;
use milepost_core::port::{Coordination, Store, StoreResult};
use milepost_core::stats::{SpreadView, Stats, StatsView};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bulk::{self, Bulk};
use crate::context::Context;
use crate::handler::{Handler, Job, KindOptions, Kinds};
use crate::options::WorkerOptions;
use crate::outcome::{JobError, Outcome};
use crate::registration::{Ended, Registration, Settings};

/// Builds a [`Worker`].
#[derive(Clone)]
pub struct WorkerBuilder {
    store: Arc<dyn Store>,
    kinds: Kinds,
    options: WorkerOptions,
    coordination: Option<Arc<dyn Coordination>>,
}

impl WorkerBuilder {
    /// Registers a handler for jobs of kind `J::KIND`.
    #[must_use]
    pub fn handle<J: Job>(mut self, handler: impl Handler<J>) -> Self {
        self.kinds.add(handler);
        self
    }

    /// Registers a handler for a kind without a Rust type; the payload is in the context, as JSON text. The options can be just a
    /// [`RetryPolicy`](milepost_core::retry::RetryPolicy).
    #[must_use]
    pub fn handle_kind<F, Fut>(mut self, kind: &str, options: impl Into<KindOptions>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        self.kinds.add_kind(kind, options, handler);
        self
    }

    /// Registers a bulk job, and serves the queue of its definition.
    #[must_use]
    pub fn bulk(mut self, bulk: Bulk) -> Self {
        let (name, queue) = (bulk.definition().name.clone(), bulk.definition().queue.clone());
        if !self.options.queues.contains(&queue) {
            self.options.queues.push(queue);
        }
        if dry_run::is_rolled_back(bulk.definition()) {
            let perform = bulk::dry_run::perform(bulk.clone());
            self.kinds.add_performed(&dry_run::kind(&name), KindOptions::default(), perform);
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

    /// Uses a coordination helper in addition to the store, such as Redis (`milepost-redis`), for faster notifications and stops. It is
    /// optional: the worker does not depend on it.
    #[must_use]
    pub fn coordination(mut self, helper: Arc<dyn Coordination>) -> Self {
        self.coordination = Some(helper);
        self
    }

    /// Registers the worker and starts it.
    ///
    /// # Errors
    /// If the store cannot be reached, or a setting is invalid.
    pub async fn start(self) -> StoreResult<Worker> {
        self.launch(false).await
    }

    /// Runs all ready jobs, including those that become ready in the process, and returns the counts when nothing is left: no job can be claimed
    /// now, and none runs. Jobs whose time has not come, such as waiting retries, are not run. It can be called repeatedly, in tests and in
    /// programs that are started periodically.
    ///
    /// If the future is dropped before it returns, no further jobs are claimed, and running jobs are ended as at a shutdown.
    ///
    /// # Errors
    /// If the store cannot be reached, or a setting is invalid.
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
        let first = Registration::register(&settings).await?;
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

/// A running worker. It keeps running when this value is dropped; use [`shutdown`](Self::shutdown) to end it.
pub struct Worker {
    stats: Arc<Stats>,
    coordination: Option<Arc<dyn Coordination>>,
    stop_claiming: CancellationToken,
    task: JoinHandle<()>,
}

impl Worker {
    /// Returns a builder for a worker on this store.
    #[must_use]
    pub fn builder(store: Arc<dyn Store>) -> WorkerBuilder {
        WorkerBuilder {
            store,
            kinds: Kinds::default(),
            options: WorkerOptions::default(),
            coordination: None,
        }
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> StatsView {
        self.counters().view()
    }

    /// Returns its counters, which can be read from elsewhere and after the worker has ended.
    #[must_use]
    pub fn counters(&self) -> WorkerCounters {
        WorkerCounters { stats: self.stats.clone(), coordination: self.coordination.clone() }
    }

    /// Stops claiming, waits for running jobs, hands back those that do not end in time, and signs off.
    pub async fn shutdown(mut self) {
        self.stop_claiming.cancel();
        self.ended().await;
    }

    async fn ended(&mut self) {
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the worker's task panicked or was aborted");
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
    /// Returns the current values.
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
    /// Returns the distributions of its measurements.
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

/// Runs under one registration after another, until one ends without losing its lease.
async fn live(settings: Settings, first: Registration) {
    let mut registration = first;
    while registration.run().await == Ended::LeaseLost {
        registration = loop {
            if settings.stop_claiming.is_cancelled() {
                return;
            }
            match Registration::register(&settings).await {
                Ok(next) => break next,
                Err(error) => {
                    tracing::warn!(error = error.chain(), "the worker could not register; trying again");
                    tokio::time::sleep(Duration::from_millis(500).mul_f64(0.5 + fastrand::f64())).await;
                }
            }
        };
    }
}

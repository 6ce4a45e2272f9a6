//! The workers and publishers that run in the server's process.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Error, Result};
use clap::ValueEnum;
use futures::future::{BoxFuture, join_all, pending};
use milepost::{Coordination, Worker};
use milepost_cli_support::operations;
use milepost_core::port::Store;
use milepost_notify::{Notifier, Target};
use milepost_server::metrics::Counts;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ServeArgs;
use super::numbers::{PublisherNumbers, WorkerNumbers};
use crate::config::{Config, NotifyEntry};
use crate::relay::Publishers;
use crate::work::{self, At, WorkerArgs};

/// A part of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The HTTP API
    Api,
    /// Workers for the kinds and bulk jobs of the configuration
    Work,
    /// Publishers for its subscriptions
    Relay,
}

impl Part {
    /// Returns whether the configuration contains work for this part.
    pub(super) fn has_anything_to_do(self, config: Option<&Config>) -> bool {
        match self {
            Self::Api => true,
            Self::Work => config.is_some_and(work::has_work),
            Self::Relay => config.is_some_and(|config| !config.subscriptions.is_empty()),
        }
    }

    pub(super) const fn verb(self) -> &'static str {
        match self {
            Self::Api => "serve",
            Self::Work => "run",
            Self::Relay => "publish",
        }
    }

    pub(super) const fn sections(self) -> &'static str {
        match self {
            Self::Api => "section for it",
            Self::Work => "[kinds.NAME] and no [bulk.NAME]",
            Self::Relay => "[subscription.NAME]",
        }
    }
}

/// The running workers and publishers.
#[derive(Default)]
pub(super) struct Parts {
    workers: Vec<Worker>,
    /// The worker that runs operations on many jobs.
    operations: Option<Worker>,
    publishers: Option<Publishers>,
    /// The task that sends messages about alerts.
    notifier: Option<JoinHandle<()>>,
}

impl Parts {
    /// Starts the parts that the configuration requires. `configured` is the configuration and the path of its file.
    pub(super) async fn start(
        args: &ServeArgs,
        configured: Option<(Config, PathBuf)>,
        helper: Option<Arc<dyn Coordination>>,
        at: At,
        stop: &CancellationToken,
    ) -> Result<Self> {
        let retention = configured.as_ref().map(|(config, _)| config.retention.policy()).unwrap_or_default();
        let operations = if args.wants(Part::Api) {
            let start = async || operations::start(&at.database, retention).await;
            Some(at.wait.until_reachable(&at.address, start).await?)
        } else {
            None
        };
        let Some((mut config, file)) = configured else { return Ok(Self { operations, ..Self::default() }) };
        let publishes = args.wants(Part::Relay) && Part::Relay.has_anything_to_do(Some(&config));
        let store = at.database.store();
        let targets = if args.wants(Part::Api) { targets(&config)? } else { Vec::new() };
        let alerts_of = Arc::clone(&store);
        // Before the publishers start, which store their subscriptions: a configuration that is refused changes nothing. Without kinds, too:
        // limits, schedules and DAGs apply to jobs that programs in other languages run.
        let prepared = match args.wants(Part::Work) {
            true => Some(work::prepare(&mut config, &file, at).await?),
            false => None,
        };
        let publishers = publishes.then(|| Publishers::start(store, &config, None, stop)).transpose()?;
        let workers = match prepared {
            Some(prepared) => prepared.start(config, &file, WorkerArgs::default(), helper).await?,
            None => Vec::new(),
        };
        let notifier = (!targets.is_empty()).then(|| notifier(alerts_of, targets, stop));
        Ok(Self { workers, operations, publishers, notifier })
    }

    /// Returns the counters of the parts.
    pub(super) fn counts(&self) -> Vec<Box<dyn Counts>> {
        let mut counts: Vec<Box<dyn Counts>> = Vec::new();
        let workers = self.workers.iter().chain(&self.operations);
        counts.push(Box::new(WorkerNumbers(workers.map(Worker::counters).collect())));
        if let Some(publishers) = &self.publishers {
            counts.push(Box::new(PublisherNumbers(publishers.counted())));
        }
        counts
    }

    /// Returns the error that stopped the publishers; waits forever while they run.
    pub(super) async fn failed(&mut self) -> Error {
        if let Some(publishers) = &mut self.publishers
            && let Err(error) = publishers.ended().await
        {
            return error;
        }
        pending().await
    }

    /// Stops the workers and publishers: lets running work finish or hands it back, and waits until it has ended.
    pub(super) async fn leave(self) -> Result<()> {
        join_all(self.workers.into_iter().chain(self.operations).map(Worker::shutdown)).await;
        if let Some(notifier) = self.notifier {
            // A panic of this task is logged, and concerns nothing else.
            let _ = notifier.await;
        }
        match self.publishers {
            Some(mut publishers) => publishers.ended().await,
            None => Ok(()),
        }
    }
}

/// Returns the targets of alerts of the configuration.
fn targets(config: &Config) -> Result<Vec<Target>> {
    let target = |(name, entry): (&String, &NotifyEntry)| {
        entry.target(name).with_context(|| format!("the target {name} of alerts"))
    };
    config.notify.iter().map(target).collect()
}

/// Starts the task that records alerts, and sends messages about them to the targets.
fn notifier(store: Arc<dyn Store>, targets: Vec<Target>, stop: &CancellationToken) -> JoinHandle<()> {
    let of = Arc::clone(&store);
    let observe = Box::new(move || -> BoxFuture<'static, _> {
        let store = Arc::clone(&of);
        Box::pin(async move { milepost_server::alerts(&store).await })
    });
    tokio::spawn(Notifier::new(store, targets, observe).run(stop.clone()))
}

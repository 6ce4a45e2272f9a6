//! The publishers of a process: one for each subscription of a configuration.

use std::sync::Arc;

use anyhow::{Context, Result};
use milepost_core::port::{RelayStore, Store};
use milepost_relay::publisher::{self, PublisherStats};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::config::Config;

/// Running publishers. They run until their token is cancelled; dropping this value stops them immediately.
pub(crate) struct Publishers {
    running: JoinSet<Result<()>>,
    counted: Vec<(String, Arc<PublisherStats>)>,
    _forgetting: AbortOnDropHandle<()>,
}

impl Publishers {
    /// Starts a publisher for each subscription. `label` is their name [default: host and process id].
    pub(crate) fn start(
        store: Arc<dyn Store>,
        config: &Config,
        label: Option<String>,
        stop: &CancellationToken,
    ) -> Result<Self> {
        let label = label.unwrap_or_else(|| milepost::WorkerOptions::default().name);
        let (mut running, mut counted) = (JoinSet::new(), Vec::new());
        for (name, entry) in &config.subscriptions {
            let destination = entry.destination(name, &config.folder)?;
            let options = entry.options(name, label.clone())?;
            let stats = Arc::new(PublisherStats::default());
            counted.push((name.clone(), stats.clone()));
            let (name, stop) = (name.clone(), stop.clone());
            let store: Arc<dyn RelayStore> = store.clone();
            running.spawn(async move {
                let published = publisher::publish(store, destination, options, stats, stop).await;
                published.with_context(|| format!("the subscription {name} is not published"))
            });
        }
        // Deletes old events as workers do, so that the log does not grow without limit where no workers run.
        let forgetting = milepost::forget_events(store, config.retention.policy().events);
        Ok(Self { running, counted, _forgetting: AbortOnDropHandle::new(tokio::spawn(forgetting)) })
    }

    /// Waits until all publishers have ended, or one has failed.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        while let Some(ended) = self.running.join_next().await {
            ended.context("a publisher panicked")??;
        }
        Ok(())
    }

    /// Returns the statistics of each subscription's publisher.
    pub(crate) fn counted(&self) -> Vec<(String, Arc<PublisherStats>)> {
        self.counted.clone()
    }
}

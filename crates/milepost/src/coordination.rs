//! The tasks that exchange messages with the coordination helper.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::ident::Run;
use milepost_core::port::Coordination;

use crate::shared::Shared;

/// The minimum duration of runs that are locked; shorter runs cause no calls.
const LINGER: Duration = Duration::from_millis(5);
/// How often in a lease the worker's heartbeat and its locks are renewed.
const MIRRORS_PER_LEASE: u32 = 8;
/// Locks last for half a lease, so that a dead worker's locks expire before its jobs are recovered: a lease is longer than this part of it
/// plus the time between two heartbeats.
const LOCKS_PER_LEASE: u32 = 2;

/// Processes the helper's hints.
pub(crate) async fn listen(shared: Arc<Shared>) {
    if let Some(helper) = &shared.coordinator.helper {
        shared.heed(helper.hints()).await;
    }
}

/// Announces jobs that became ready here to other workers.
pub(crate) async fn announce(shared: Arc<Shared>) {
    let Some(helper) = &shared.coordinator.helper else { return };
    loop {
        shared.coordinator.became_ready.notified().await;
        helper.announce_ready().await;
    }
}

/// Keeps the worker's heartbeat and the locks of its runs up to date, and removes them at the end.
pub(crate) async fn mirror(shared: Arc<Shared>) {
    let Some(helper) = &shared.coordinator.helper else { return };
    let mut locks = Locks { shared: &shared, helper: helper.as_ref(), told: HashSet::new() };
    tokio::select! {
        () = locks.keep() => {}
        () = shared.ended.cancelled() => {}
    }
    locks.let_go().await;
    helper.leave(shared.worker).await;
}

/// The locks of running handlers.
struct Locks<'a> {
    shared: &'a Shared,
    helper: &'a dyn Coordination,
    told: HashSet<Run>,
}

impl Locks<'_> {
    async fn keep(&mut self) {
        let lease = self.shared.options.lease;
        loop {
            let renew_at = Instant::now() + lease / MIRRORS_PER_LEASE;
            self.helper.beat(self.shared.worker, lease).await;
            self.adjust(true).await;
            let changed = &self.shared.coordinator.changed;
            // Renewed in time, no matter how often the runs change.
            while Instant::now() < renew_at
                && tokio::time::timeout_at(renew_at.into(), changed.notified()).await.is_ok()
            {
                tokio::time::sleep(LINGER).await;
                self.adjust(false).await;
            }
        }
    }

    /// Sets the locks of new runs, or of `all`, and removes those of finished runs.
    async fn adjust(&mut self, all: bool) {
        let now = self.shared.coordinator.lock().clone();
        let gone: Vec<Run> = self.told.difference(&now).copied().collect();
        let new: Vec<Run> = now.iter().filter(|run| all || !self.told.contains(run)).copied().collect();
        self.told.extend(&now);
        if !gone.is_empty() {
            self.helper.unlock(&gone).await;
        }
        if !new.is_empty() && self.helper.lock(&new, self.shared.options.lease / LOCKS_PER_LEASE).await {
            // The stop request came before this worker knew of the claim, or while it was not connected.
            self.shared.beat_now.notify_one();
        }
        self.told = now;
    }

    async fn let_go(&mut self) {
        let told: Vec<Run> = self.told.drain().collect();
        self.helper.unlock(&told).await;
    }
}

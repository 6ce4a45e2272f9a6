//! Use of the optional coordination helper (such as Redis): the messages to it, and the effect of its hints.
//!
//! The helper decides nothing. Its hints make the worker query the store; its locks make a later run wait briefly for an older one to stop.
//! All messages to it are sent by separate tasks, so that no claim, end or heartbeat waits for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::ident::Run;
use milepost_core::port::Coordination;
use tokio::sync::Notify;

use crate::incarnation::Shared;

/// How long a run waits for an older one that still holds the job's lock.
const OLDER_STOPS_IN: Duration = Duration::from_secs(1);
/// The interval between two checks of that lock.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The minimum duration of runs that are locked; shorter runs cause no calls.
const LINGER: Duration = Duration::from_millis(5);
/// How often in a lease the worker's heartbeat and its locks are renewed.
const MIRRORS_PER_LEASE: u32 = 8;
/// Locks last for half a lease, so that a dead worker's locks expire before its jobs are recovered: a lease is longer than this part of it
/// plus the time between two heartbeats.
const LOCKS_PER_LEASE: u32 = 2;

/// The messages of an incarnation to the helper.
pub(crate) struct Coordinator {
    helper: Option<Arc<dyn Coordination>>,
    /// The runs whose handlers are running.
    at_work: Mutex<HashSet<Run>>,
    /// Notified when they have changed.
    changed: Notify,
    /// Notified when a job became ready here that other workers may not check for.
    made_ready: Notify,
}

impl Coordinator {
    pub(crate) fn new(helper: Option<Arc<dyn Coordination>>) -> Self {
        Self { helper, at_work: Mutex::default(), changed: Notify::new(), made_ready: Notify::new() }
    }

    /// Registers a running handler for the lifetime of the returned value; its job is locked in the helper during that time.
    pub(crate) fn at_work(&self, run: Run) -> Option<AtWork<'_>> {
        self.helper.as_ref()?;
        self.lock().insert(run);
        self.changed.notify_one();
        Some(AtWork { coordinator: self, run })
    }

    /// Announces that a job became ready here.
    pub(crate) fn made_ready(&self) {
        self.made_ready.notify_one();
    }

    /// Waits briefly for an older run of the job to stop. A first run has no older one.
    pub(crate) async fn let_older_stop(&self, run: Run) {
        let Some(helper) = self.helper.as_ref().filter(|_| run.token.0 > 1) else { return };
        let began = Instant::now();
        while helper.is_held_by_older(run).await {
            if began.elapsed() >= OLDER_STOPS_IN {
                tracing::warn!(job = %run.job, token = %run.token,
                    "an older run still holds the job's lock; continuing, because the store fences the older run");
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Run>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running handler.
pub(crate) struct AtWork<'a> {
    coordinator: &'a Coordinator,
    run: Run,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.coordinator.lock().remove(&self.run);
        self.coordinator.changed.notify_one();
    }
}

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
        shared.coordinator.made_ready.notified().await;
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

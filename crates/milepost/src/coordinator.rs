//! The helper beside the store, if there is one: what it is told, and how far it is heeded.
//!
//! It decides nothing. Its hints make the worker ask the store; its locks make a later run wait a little for an
//! older one to stop. All it is told is told by tasks of their own, so that no claim, end or heartbeat waits for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::ident::Run;
use milepost_core::port::Coordination;
use tokio::sync::Notify;

use crate::incarnation::Shared;

/// How long a run waits for an older one that still holds the job's lock.
const OLDER_STOPS_IN: Duration = Duration::from_secs(1);
/// How often it looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long runs must last to be locked; shorter ones cost nothing.
const LINGER: Duration = Duration::from_millis(5);
/// How often in a lease the worker's word and its locks are renewed.
const MIRRORS_PER_LEASE: u32 = 8;
/// A dead worker's locks are gone before its jobs are taken back: a lease is longer than this part of itself and
/// the time between two heartbeats.
const LOCKS_PER_LEASE: u32 = 2;

/// What the parts of an incarnation have to say.
pub(crate) struct Coordinator {
    helper: Option<Arc<dyn Coordination>>,
    /// The runs whose handlers are at work.
    at_work: Mutex<HashSet<Run>>,
    /// They have changed.
    changed: Notify,
    /// Something was made ready here that others may not look for.
    made_ready: Notify,
}

impl Coordinator {
    pub(crate) fn new(helper: Option<Arc<dyn Coordination>>) -> Self {
        Self { helper, at_work: Mutex::default(), changed: Notify::new(), made_ready: Notify::new() }
    }

    /// A handler is at work for as long as the answer stands; meanwhile its job is locked.
    pub(crate) fn at_work(&self, run: Run) -> Option<AtWork<'_>> {
        self.helper.as_ref()?;
        self.lock().insert(run);
        self.changed.notify_one();
        Some(AtWork { coordinator: self, run })
    }

    /// Something was made ready here.
    pub(crate) fn made_ready(&self) {
        self.made_ready.notify_one();
    }

    /// Gives an older run that is still at the job a little time to stop. A first run has none before it.
    pub(crate) async fn let_older_stop(&self, run: Run) {
        let Some(helper) = self.helper.as_ref().filter(|_| run.token.0 > 1) else { return };
        let began = Instant::now();
        while helper.is_held_by_older(run).await {
            if began.elapsed() >= OLDER_STOPS_IN {
                tracing::warn!(job = %run.job, token = %run.token,
                    "an older run still holds the job's lock; going on: whatever it tells the store is fenced");
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Run>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handler at work.
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

/// Heeds the helper's hints.
pub(crate) async fn listen(shared: Arc<Shared>) {
    if let Some(helper) = &shared.coordinator.helper {
        shared.heed(helper.hints()).await;
    }
}

/// Tells others what was made ready here.
pub(crate) async fn announce(shared: Arc<Shared>) {
    let Some(helper) = &shared.coordinator.helper else { return };
    loop {
        shared.coordinator.made_ready.notified().await;
        helper.announce_ready().await;
    }
}

/// Keeps the worker's word and the locks of its runs as they should be, and takes them back in the end.
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

/// The locks of the runs at work.
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
            // Busy or not, it is renewed in time.
            while Instant::now() < renew_at
                && tokio::time::timeout_at(renew_at.into(), changed.notified()).await.is_ok()
            {
                tokio::time::sleep(LINGER).await;
                self.adjust(false).await;
            }
        }
    }

    /// Sets the locks of runs that are new, or of `all`, and takes back those of runs that are over.
    async fn adjust(&mut self, all: bool) {
        let now = self.shared.coordinator.lock().clone();
        let gone: Vec<Run> = self.told.difference(&now).copied().collect();
        let new: Vec<Run> = now.iter().filter(|run| all || !self.told.contains(run)).copied().collect();
        self.told.extend(&now);
        if !gone.is_empty() {
            self.helper.unlock(&gone).await;
        }
        if !new.is_empty() && self.helper.lock(&new, self.shared.options.lease / LOCKS_PER_LEASE).await {
            // Asked to stop before we knew of the claim, or while nobody heard it.
            self.shared.beat_now.notify_one();
        }
        self.told = now;
    }

    async fn let_go(&mut self) {
        let told: Vec<Run> = self.told.drain().collect();
        self.helper.unlock(&told).await;
    }
}

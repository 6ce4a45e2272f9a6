//! Use of the optional coordination helper (such as Redis): the messages to it, and the effect of its hints.
//!
//! The helper decides nothing. Its hints make the worker query the store; its locks make a later run wait briefly for an older one to stop.
//! The tasks of `coordination` send all messages to it, so that no claim, end or heartbeat waits for it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::ident::Run;
use milepost_core::port::Coordination;
use tokio::sync::Notify;

/// How long a run waits for an older one that still holds the job's lock.
const OLDER_STOPS_IN: Duration = Duration::from_secs(1);
/// The interval between two checks of that lock.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The messages of a worker to the helper.
pub(crate) struct Coordinator {
    pub(crate) helper: Option<Arc<dyn Coordination>>,
    /// The runs whose handlers are running.
    at_work: Mutex<HashSet<Run>>,
    /// Notified when they have changed.
    pub(crate) changed: Notify,
    /// Notified when a job became ready here that other workers may not check for.
    pub(crate) became_ready: Notify,
}

impl Coordinator {
    pub(crate) fn new(helper: Option<Arc<dyn Coordination>>) -> Self {
        Self { helper, at_work: Mutex::default(), changed: Notify::new(), became_ready: Notify::new() }
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
        self.became_ready.notify_one();
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

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashSet<Run>> {
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

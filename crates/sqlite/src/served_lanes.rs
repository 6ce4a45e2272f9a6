//! The queues and kinds that the workers of this process serve.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use milepost_core::ident::WorkerId;
use milepost_core::worker::NewWorker;

/// A queue and a kind.
pub(crate) type Lane = (String, String);

/// The lanes of every worker that is registered by this process and has not shut down.
#[derive(Default)]
pub(crate) struct Served(Mutex<HashMap<WorkerId, Vec<Lane>>>);

impl Served {
    /// Adds a worker that starts.
    pub(crate) fn add(&self, id: WorkerId, worker: &NewWorker) {
        let lanes = worker
            .queues
            .iter()
            .flat_map(|queue| worker.kinds.iter().map(|kind| (queue.clone(), kind.clone())))
            .collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, lanes);
    }

    /// Removes a worker that has shut down or was declared dead.
    pub(crate) fn remove(&self, id: WorkerId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Returns every served lane once.
    pub(crate) fn lanes(&self) -> Vec<Lane> {
        let served = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes: BTreeSet<&Lane> = served.values().flatten().collect();
        lanes.into_iter().cloned().collect()
    }
}

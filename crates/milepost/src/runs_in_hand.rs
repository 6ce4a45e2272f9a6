//! The runs that this worker has in hand: from their claim until the store has acknowledged their end.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::transition::Verb;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The tokens that control a running handler.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunControl {
    /// Asks the handler to stop.
    pub(crate) stop: CancellationToken,
    /// Drops the handler without storing its end, because the store has released its run.
    pub(crate) cut: CancellationToken,
}

/// One run in hand.
#[derive(Debug)]
struct Entry {
    token: RunToken,
    control: RunControl,
    stop_verb: Option<Verb>,
    /// Whether its handler has finished and its end is being stored.
    ending: bool,
}

/// All runs in hand.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: Mutex<HashMap<JobId, Entry>>,
    /// Notified when no runs are left.
    emptied: Notify,
}

impl Runs {
    /// Adds runs; returns their controles, in order.
    pub(crate) fn begin(&self, runs: impl Iterator<Item = Run>) -> Vec<RunControl> {
        let mut all = self.lock();
        runs.map(|run| {
            let control = RunControl::default();
            let entry = Entry { token: run.token, control: control.clone(), stop_verb: None, ending: false };
            all.insert(run.job, entry);
            control
        })
        .collect()
    }

    /// Asks a run to stop. Returns whether it is in hand.
    pub(crate) fn stop(&self, run: Run, verb: Verb) -> bool {
        let mut runs = self.lock();
        let Some(entry) = runs.get_mut(&run.job).filter(|entry| entry.token == run.token) else {
            return false;
        };
        entry.stop_verb = Some(verb);
        entry.control.stop.cancel();
        true
    }

    /// Releases a run that the store does not know: its handler is asked to stop, and dropped if it was already asked.
    pub(crate) fn give_up(&self, run: Run) {
        if let Some(entry) = self.lock().get_mut(&run.job).filter(|entry| entry.token == run.token) {
            if entry.control.stop.is_cancelled() {
                entry.control.cut.cancel();
            }
            entry.stop_verb.get_or_insert(Verb::Cancel);
            entry.control.stop.cancel();
        }
    }

    /// Returns whether any handler was asked to stop and has not finished.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().values().any(|entry| entry.stop_verb.is_some() && !entry.ending)
    }

    /// Asks a run to stop because its worker shuts down. Its job is handed back, unless another stop request exists.
    pub(crate) fn warn(&self, run: Run) {
        if let Some(entry) = self.lock().get_mut(&run.job).filter(|entry| entry.token == run.token) {
            entry.stop_verb.get_or_insert(Verb::Yield);
            entry.control.stop.cancel();
        }
    }

    /// Marks a run's handler as finished; returns the verb of its stop request, if there was one.
    pub(crate) fn ending(&self, run: Run) -> Option<Verb> {
        let mut all = self.lock();
        let entry = all.get_mut(&run.job).filter(|entry| entry.token == run.token)?;
        entry.ending = true;
        entry.stop_verb
    }

    /// Removes runs whose end the store has acknowledged.
    pub(crate) fn land(&self, runs: impl Iterator<Item = Run>) {
        let mut all = self.lock();
        for run in runs {
            if all.get(&run.job).is_some_and(|entry| entry.token == run.token) {
                all.remove(&run.job);
            }
        }
        if all.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Waits until no runs are left.
    pub(crate) async fn emptied(&self) {
        let mut emptied = pin!(self.emptied.notified());
        loop {
            // Registers before checking, so that no notification is missed in between.
            emptied.as_mut().enable();
            if self.len() == 0 {
                return;
            }
            emptied.as_mut().await;
            emptied.set(self.emptied.notified());
        }
    }

    /// Returns all runs in hand.
    pub(crate) fn all(&self) -> HashSet<Run> {
        self.lock().iter().map(|(&job, entry)| Run { job, token: entry.token }).collect()
    }

    /// Returns the runs whose handlers have not finished.
    pub(crate) fn handlers(&self) -> Vec<Run> {
        let all = self.lock();
        all.iter()
            .filter(|(_, entry)| !entry.ending)
            .map(|(&job, entry)| Run { job, token: entry.token })
            .collect()
    }

    /// Returns the number of runs in hand.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The runs that this worker has in hand: from their claim until the store has acknowledged their end.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::transition::Verb;
use tokio_util::sync::CancellationToken;

/// One run in hand.
#[derive(Debug)]
struct Entry {
    token: RunToken,
    stop: CancellationToken,
    stop_verb: Option<Verb>,
    /// Its handler is done, its end is on the way to the store.
    ending: bool,
}

/// All runs in hand.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    runs: Mutex<HashMap<JobId, Entry>>,
}

impl Flight {
    /// Takes runs in hand; answers their stop tokens, in order.
    pub(crate) fn board(&self, runs: impl Iterator<Item = Run>) -> Vec<CancellationToken> {
        let mut all = self.lock();
        runs.map(|run| {
            let stop = CancellationToken::new();
            let entry = Entry { token: run.token, stop: stop.clone(), stop_verb: None, ending: false };
            all.insert(run.job, entry);
            stop
        })
        .collect()
    }

    /// Asks a run to stop.
    pub(crate) fn stop(&self, run: Run, verb: Verb) {
        if let Some(entry) = self.lock().get_mut(&run.job).filter(|entry| entry.token == run.token) {
            entry.stop_verb = Some(verb);
            entry.stop.cancel();
        }
    }

    /// Asks a run to stop because its worker leaves: its job is handed back, unless more was asked of it.
    pub(crate) fn warn(&self, run: Run) {
        if let Some(entry) = self.lock().get_mut(&run.job).filter(|entry| entry.token == run.token) {
            entry.stop_verb.get_or_insert(Verb::Yield);
            entry.stop.cancel();
        }
    }

    /// Marks a run's handler as done; answers with which verb it was asked to stop, if it was.
    pub(crate) fn ending(&self, run: Run) -> Option<Verb> {
        let mut all = self.lock();
        let entry = all.get_mut(&run.job).filter(|entry| entry.token == run.token)?;
        entry.ending = true;
        entry.stop_verb
    }

    /// Lets go of runs whose end the store has acknowledged.
    pub(crate) fn land(&self, runs: impl Iterator<Item = Run>) {
        let mut all = self.lock();
        for run in runs {
            if all.get(&run.job).is_some_and(|entry| entry.token == run.token) {
                all.remove(&run.job);
            }
        }
    }

    /// All runs in hand.
    pub(crate) fn all(&self) -> HashSet<Run> {
        self.lock().iter().map(|(&job, entry)| Run { job, token: entry.token }).collect()
    }

    /// Runs whose handlers are not done.
    pub(crate) fn handlers(&self) -> Vec<Run> {
        let all = self.lock();
        all.iter()
            .filter(|(_, entry)| !entry.ending)
            .map(|(&job, entry)| Run { job, token: entry.token })
            .collect()
    }

    /// How many runs are in hand.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Storage of progress and checkpoints of runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use milepost_core::ident::Run;
use milepost_core::port::{Store, StoreResult};
use milepost_core::worker::{Progress, Report};
use tokio_util::sync::CancellationToken;

use crate::reporter::Reporter;

/// Stores progress and checkpoints.
#[derive(Clone)]
pub(crate) enum RunReports {
    /// In the store; progress is stored through the reporter.
    Store { store: Arc<dyn Store>, reporter: Reporter },
    /// In memory.
    Notes(Arc<Notes>),
}

impl RunReports {
    /// Stores progress without making the run wait. A run that turns out to be fenced is asked to stop.
    pub(crate) fn progress(&self, run: Run, progress: Progress, stop: &CancellationToken) {
        match self {
            Self::Store { reporter, .. } => reporter.progress(run, progress, stop),
            Self::Notes(notes) => notes.lock().progress.push(progress),
        }
    }

    /// Stores a checkpoint, if given. Returns whether the run still owns its job.
    pub(crate) async fn report(&self, run: Run, checkpoint: Option<String>) -> StoreResult<bool> {
        match self {
            Self::Store { store, .. } => {
                let report = Report { run, progress: None, checkpoint };
                let accepted = store.report_many(std::slice::from_ref(&report)).await?;
                Ok(accepted.first() == Some(&true))
            }
            Self::Notes(notes) => {
                if let Some(checkpoint) = checkpoint {
                    notes.checkpoint(checkpoint);
                }
                Ok(true)
            }
        }
    }

    /// Returns the last checkpoint.
    pub(crate) async fn last_checkpoint(&self, run: Run) -> StoreResult<Option<String>> {
        match self {
            Self::Store { store, .. } => store.checkpoint(run.job).await,
            Self::Notes(notes) => {
                let words = notes.lock();
                Ok(words.checkpoints.last().or(notes.earlier.as_ref()).cloned())
            }
        }
    }
}

/// Progress and checkpoints of one run, in memory.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The last checkpoint of an earlier attempt, as JSON text.
    pub(crate) earlier: Option<String>,
    /// The number of the checkpoint during which the run is asked to stop.
    pub(crate) stop_at: Option<usize>,
    /// Canceled to ask the run to stop.
    pub(crate) asked_to_stop: CancellationToken,
    words: Mutex<Words>,
}

/// The reports of a run, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pub(crate) progress: Vec<Progress>,
    pub(crate) checkpoints: Vec<String>,
}

impl Notes {
    /// Returns the reports so far.
    pub(crate) fn words(&self) -> Words {
        self.lock().clone()
    }

    fn checkpoint(&self, checkpoint: String) {
        let mut words = self.lock();
        words.checkpoints.push(checkpoint);
        if self.stop_at == Some(words.checkpoints.len()) {
            self.asked_to_stop.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

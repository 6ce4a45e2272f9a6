//! What operators do to batches.

use std::time::Duration;

use super::error::InvalidBatch;
use crate::audit::check_reason;
use crate::dag::state::TaskState;
use crate::dag::version::Version;
use crate::duration::check_wait;
use crate::ident::BatchId;

/// What cannot be done to a batch while something of it runs, in the words of [`InvalidBatch`].
pub const IN_ANOTHER_VERSION: &str =
    "rerun in another version while tasks run; wait for them, or abort the batch";

/// Something an operator does to a batch.
#[derive(Clone, Debug)]
pub struct BatchOperation {
    /// Which batch.
    pub batch: BatchId,
    /// The generation that the operator has seen; with another one by now nothing is done.
    pub generation: Option<u32>,
    /// How long running jobs get to stop by themselves before they are fenced off (abort, cancel).
    pub grace: Duration,
    /// Why; stands in the history.
    pub note: Option<String>,
    /// What.
    pub what: BatchVerb,
}

impl BatchOperation {
    /// Checks its grace time and its reason.
    ///
    /// # Errors
    /// [`InvalidBatch::Operation`].
    pub fn check(&self) -> Result<(), InvalidBatch> {
        check_wait("grace_ms", self.grace)
            .and_then(|()| check_reason(self.note.as_deref()))
            .map_err(InvalidBatch::Operation)
    }
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchVerb {
    /// Nothing starts any more, what runs is asked to stop; to be resumed.
    Abort,
    /// Goes on where it was stopped.
    Resume,
    /// Gives these tasks up, those of them that have not ended; with all of them the batch.
    Cancel {
        /// Their numbers.
        tasks: Vec<u32>,
    },
    /// Says how a task ended: succeeded, skipped or failed.
    Mark {
        /// Its number.
        task: u32,
        /// How.
        state: TaskState,
    },
    /// Runs these tasks again, in a new generation: each is decided anew when its predecessors have ended.
    Rerun {
        /// Their numbers.
        tasks: Vec<u32>,
    },
    /// The same, and what has failed or was aborted in the batches that other tasks of it are, at any depth. What has succeeded there keeps
    /// its results; the tasks that these batches are become active again, and go on from their ends.
    RerunFailed {
        /// Numbers of tasks of the batch itself.
        tasks: Vec<u32>,
        /// The inner batches that the operator has seen.
        inside: Vec<SeenBatch>,
    },
    /// The same in another version of its DAG, which the batch has from then on. A task is the one with the same key: it keeps its
    /// state and its job. Those that the version does not have are given up, those that only it has are decided.
    RerunIn {
        /// The version.
        version: Version,
        /// The numbers that the tasks have in it; there may be none.
        tasks: Vec<u32>,
        /// Also what has failed in the batches that other tasks are, as in [`RerunFailed`](Self::RerunFailed).
        inside: Option<Vec<SeenBatch>>,
    },
}

/// An inner batch as an operator has seen it; in another generation by now nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenBatch {
    /// The batch.
    pub batch: BatchId,
    /// Its generation.
    pub generation: u32,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchOperated {
    /// How many tasks were changed.
    pub changed: u64,
    /// How many run and were asked to stop.
    pub stopping: u64,
    /// The generation of the batch now.
    pub generation: u32,
}

impl BatchOperated {
    /// What of it the batch itself does not show; `None`: no task was changed.
    #[must_use]
    pub fn told(&self) -> Option<serde_json::Value> {
        let told = serde_json::json!({ "changed": self.changed, "stopping": self.stopping });
        (self.changed + self.stopping > 0).then_some(told)
    }
}

//! Operations on batches by operators.

use std::time::Duration;

use super::error::InvalidBatch;
use crate::actions::trimmed;
use crate::audit::check_reason;
use crate::dag::state::TaskState;
use crate::dag::version::Version;
use crate::duration::check_wait;
use crate::ident::BatchId;

/// The text in [`InvalidBatch`] for an operation that is not possible while tasks of the batch run.
pub const IN_ANOTHER_VERSION: &str =
    "rerun in another version while tasks run; wait for them, or abort the batch";

/// An operation on a batch.
#[derive(Clone, Debug)]
pub struct BatchOperation {
    /// The batch.
    pub batch: BatchId,
    /// The generation that the operator has read. If the batch has another one by now, nothing is done.
    pub generation: Option<u32>,
    /// How long running jobs have to stop on their own before they are fenced (abort, cancel).
    pub grace: Duration,
    /// The reason, recorded in the history.
    pub note: Option<String>,
    /// The operation.
    pub what: BatchVerb,
}

impl BatchOperation {
    /// Returns the reason as it is recorded: without surrounding whitespace, and none if it is blank.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.note.as_deref().and_then(trimmed)
    }

    /// Checks its grace time and its reason.
    ///
    /// # Errors
    /// [`InvalidBatch::Operation`].
    pub fn check(&self) -> Result<(), InvalidBatch> {
        check_wait("grace_ms", self.grace)
            .and_then(|()| check_reason(self.reason()))
            .map_err(InvalidBatch::Operation)
    }
}

/// The operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchVerb {
    /// Stops the batch: no task starts, and running tasks are asked to stop. The batch can be resumed.
    Abort,
    /// Resumes a stopped batch.
    Resume,
    /// Cancels those of these tasks that have not ended; with all tasks, the batch is canceled.
    Cancel {
        /// Their numbers.
        tasks: Vec<u32>,
    },
    /// Sets the outcome of a task: succeeded, skipped or failed.
    Mark {
        /// Its number.
        task: u32,
        /// The outcome.
        state: TaskState,
    },
    /// Runs these tasks again in a new generation. Each is decided again when its predecessors have ended.
    Rerun {
        /// Their numbers.
        tasks: Vec<u32>,
    },
    /// Like `Rerun`, and also reruns failed and aborted tasks in the inner batches of other tasks, at any depth. Succeeded tasks there keep
    /// their results; the tasks that are inner batches become active again and continue when their batches end.
    RerunFailed {
        /// Numbers of tasks of the batch itself.
        tasks: Vec<u32>,
        /// The inner batches that the operator has read.
        inside: Vec<SeenBatch>,
    },
    /// Reruns tasks in another version of the DAG, which the batch uses from then on. Tasks are matched by key and keep their
    /// state and their job. Tasks that the version does not contain are canceled; tasks that only it contains are decided.
    RerunIn {
        /// The version.
        version: Version,
        /// The numbers of the tasks in that version; may be empty.
        tasks: Vec<u32>,
        /// Whether to also rerun failed tasks in inner batches, as in [`RerunFailed`](Self::RerunFailed).
        inside: Option<Vec<SeenBatch>>,
    },
}

impl BatchVerb {
    /// Returns the operation as a participle, for error messages.
    #[must_use]
    pub const fn participle(&self) -> &'static str {
        match self {
            Self::Abort => "aborted",
            Self::Resume => "resumed",
            Self::Cancel { .. } => "canceled",
            Self::Mark { state: TaskState::Succeeded, .. } => "marked as succeeded",
            Self::Mark { state: TaskState::Skipped, .. } => "marked as skipped",
            Self::Mark { state: TaskState::Failed, .. } => "marked as failed",
            Self::Mark { .. } => "marked with this state; use succeeded, skipped or failed",
            Self::Rerun { .. } | Self::RerunFailed { .. } => "rerun",
            Self::RerunIn { .. } => IN_ANOTHER_VERSION,
        }
    }
}

/// An inner batch that an operator has read. If it has another generation by now, nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenBatch {
    /// The batch.
    pub batch: BatchId,
    /// Its generation.
    pub generation: u32,
}

/// The result of an operation on a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchOperated {
    /// The number of tasks that were changed.
    pub changed: u64,
    /// The number of running tasks that were asked to stop.
    pub stopping: u64,
    /// The current generation of the batch.
    pub generation: u32,
}

impl BatchOperated {
    /// Returns the details that the batch row itself does not show; `None` when no task was changed.
    #[must_use]
    pub fn told(&self) -> Option<serde_json::Value> {
        let told = serde_json::json!({ "changed": self.changed, "stopping": self.stopping });
        (self.changed + self.stopping > 0).then_some(told)
    }
}

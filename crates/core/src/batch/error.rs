//! What cannot be done with batches.

use thiserror::Error;

use crate::dag::fault::InvalidDag;
use crate::dag::state::{BatchState, TaskState};
use crate::error::InvalidJob;
use crate::ident::BatchId;

/// A batch, or something to be done with one, that cannot be. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBatch {
    /// A name or a key.
    #[error("{0}")]
    Name(InvalidJob),
    /// A setting of an operation: its grace time or its reason.
    #[error("{0}")]
    Operation(InvalidJob),
    /// The definition cannot run.
    #[error("{0}")]
    Dag(#[from] InvalidDag),
    /// There is no such DAG.
    #[error(
        "there is no DAG {name:?}; `milepost batch define FILE` stores one, `milepost batch list --dags` shows them"
    )]
    NoSuchDag {
        /// What was asked for.
        name: String,
    },
    /// There is no such version.
    #[error("the DAG {name:?} has no version {version}; `milepost batch versions {name}` shows them")]
    NoSuchVersion {
        /// The DAG.
        name: String,
        /// What was asked for.
        version: String,
    },
    /// The input cannot be taken.
    #[error("the input cannot be used: {why}")]
    Input {
        /// What is wrong, and where.
        why: String,
    },
    /// The nominal time cannot be taken.
    #[error("the nominal time cannot be used: {why}")]
    NominalTime {
        /// What is wrong.
        why: String,
    },
    /// There is no such batch.
    #[error("there is no batch {0}")]
    NoSuchBatch(BatchId),
    /// The batch has no such task.
    #[error("batch {batch} has no task {task:?}")]
    NoSuchTask {
        /// The batch.
        batch: BatchId,
        /// What was asked for.
        task: String,
    },
    /// The task's state does not allow it.
    #[error("task {task:?} of batch {batch} is {state}: it cannot be {what}")]
    Task {
        /// The batch.
        batch: BatchId,
        /// Its key.
        task: String,
        /// Where it stands.
        state: TaskState,
        /// What was to be done, as `marked as skipped`.
        what: &'static str,
    },
    /// The batch's state does not allow it.
    #[error("batch {batch} is {state}: it cannot be {what}")]
    State {
        /// The batch.
        batch: BatchId,
        /// Where it stands.
        state: BatchState,
        /// What was to be done, as `resumed`.
        what: &'static str,
    },
    /// Another operator was faster.
    #[error("batch {0} was rerun meanwhile; look at it again")]
    Overtaken(BatchId),
    /// Nothing would be done.
    #[error("there is nothing to rerun in batch {0}")]
    NothingToRerun(BatchId),
    /// The items of a list are what a version of another batch says.
    #[error(
        "batch {0} is over a list and has no version of its own: rerun the task of the other batch that it is"
    )]
    OverAList(BatchId),
    /// A job of a batch is rerun with what follows from it.
    #[error(
        "job {job} is task {task:?} of batch {batch}; `milepost batch rerun {batch} --task {task}` runs it again"
    )]
    JobOfBatch {
        /// The job.
        job: crate::ident::JobId,
        /// Its batch.
        batch: BatchId,
        /// Its task's key.
        task: String,
    },
    /// Batches in batches in batches.
    #[error("batches would lie more than {depth_max} deep in one another")]
    TooDeep {
        /// The limit.
        depth_max: u32,
    },
}

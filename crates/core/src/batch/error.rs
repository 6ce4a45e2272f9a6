//! Errors of operations on batches.

use thiserror::Error;

use super::SIGNALS_MAX;
use crate::dag::fault::InvalidDag;
use crate::dag::state::{BatchState, TaskState};
use crate::ident::BatchId;
use crate::job::error::InvalidJob;

/// An invalid batch, or an invalid operation on one. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBatch {
    /// The name or the key is invalid.
    #[error("{0}")]
    Name(InvalidJob),
    /// A setting of an operation is invalid: its grace time or its reason.
    #[error("{0}")]
    Operation(InvalidJob),
    /// The definition cannot run.
    #[error("{0}")]
    Dag(#[from] InvalidDag),
    /// The DAG does not exist.
    #[error(
        "there is no DAG {name:?}; `milepost batch define FILE` stores one, `milepost batch list --dags` shows them"
    )]
    NoSuchDag {
        /// The requested name.
        name: String,
    },
    /// The version does not exist.
    #[error("the DAG {name:?} has no version {version}; `milepost batch versions {name}` shows them")]
    NoSuchVersion {
        /// The DAG.
        name: String,
        /// The requested version.
        version: String,
    },
    /// The input is invalid.
    #[error("the input cannot be used: {why}")]
    Input {
        /// The reason and the location.
        why: String,
    },
    /// The nominal time is invalid.
    #[error("the nominal time cannot be used: {why}")]
    NominalTime {
        /// The reason.
        why: String,
    },
    /// The batch does not exist.
    #[error("there is no batch {0}")]
    NoSuchBatch(BatchId),
    /// The batch has no such task.
    #[error("batch {batch} has no task {task:?}")]
    NoSuchTask {
        /// The batch.
        batch: BatchId,
        /// The requested key.
        task: String,
    },
    /// No task of the batch waits for a signal with this name.
    #[error("no task of batch {batch} waits for a signal {name:?}{}", signals(.known))]
    NoSuchSignal {
        /// The batch.
        batch: BatchId,
        /// The name of the signal.
        name: String,
        /// The names of its signals, or some of them.
        known: Vec<String>,
    },
    /// The signal is invalid.
    #[error("the signal cannot be used: {why}")]
    Signal {
        /// The reason.
        why: String,
    },
    /// The batch keeps as many signals with this name as it can.
    #[error("batch {0} already keeps {SIGNALS_MAX} signals with this name, the maximum")]
    TooManySignals(BatchId),
    /// The task's state does not allow the operation.
    #[error("task {task:?} of batch {batch} is {state}: it cannot be {what}")]
    Task {
        /// The batch.
        batch: BatchId,
        /// Its key.
        task: String,
        /// Its state.
        state: TaskState,
        /// The attempted operation, such as `marked as skipped`.
        what: &'static str,
    },
    /// The batch's state does not allow the operation.
    #[error("batch {batch} is {state}: it cannot be {what}")]
    State {
        /// The batch.
        batch: BatchId,
        /// Its state.
        state: BatchState,
        /// The attempted operation, such as `resumed`.
        what: &'static str,
    },
    /// The batch was rerun by another operator in the meantime.
    #[error("batch {0} was rerun in the meantime; read its state again")]
    Overtaken(BatchId),
    /// No task matches the rerun.
    #[error("there is nothing to rerun in batch {0}")]
    NothingToRerun(BatchId),
    /// The batch consists of the items of a list, which are defined by a task of another batch.
    #[error(
        "batch {0} runs the items of a list and has no separate version: rerun its task in the parent batch"
    )]
    OverAList(BatchId),
    /// A job that is a task of a batch cannot be rerun on its own, only with its downstream tasks.
    #[error(
        "job {job} is task {task:?} of batch {batch}; rerun it with `milepost batch rerun {batch} --task {task}`"
    )]
    JobOfBatch {
        /// The job.
        job: crate::ident::JobId,
        /// Its batch.
        batch: BatchId,
        /// Its task's key.
        task: String,
    },
    /// The batches are nested too deeply.
    #[error("batches would be nested more than {depth_max} levels deep")]
    TooDeep {
        /// The limit.
        depth_max: u32,
    },
}

fn signals(known: &[String]) -> String {
    match known {
        [] => "; its DAG has no task with a signal".to_owned(),
        known => format!("; its signals are: {}", known.join(", ")),
    }
}

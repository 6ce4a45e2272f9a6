//! Rows of DAG versions, batches and tasks as shown to operators.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::nominal::NominalTime;
use super::wait::WaitView;
use crate::dag::state::{BatchState, Counts, TaskState};
use crate::dag::version::Version;
use crate::event::StartedBy;
use crate::ident::{BatchId, JobId};
use crate::state::JobState;
use crate::transition::Verb;

/// A version of a DAG, as shown in lists.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionView {
    /// The name of the DAG.
    pub dag: String,
    /// Its number among the versions of the DAG, from 1.
    pub number: u32,
    /// A hash of its content.
    pub version: Version,
    /// Whether it is the latest version, which batches get that specify none.
    pub latest: bool,
    /// The number of its tasks.
    pub tasks: u32,
    /// The number of its edges.
    pub edges: u32,
    /// The number of tasks on its longest path.
    pub depth: u32,
    /// When it was first stored.
    pub created_at: Timestamp,
}

/// The result of defining a DAG.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Defined {
    /// The version with this content, now the latest one.
    #[serde(flatten)]
    pub version: VersionView,
    /// Whether this content was already stored.
    pub known: bool,
}

/// A filter for batches, newest first.
#[derive(Clone, Debug)]
pub struct BatchFilter {
    /// Only of this DAG.
    pub dag: Option<String>,
    /// Only in this state.
    pub state: Option<BatchState>,
    /// Only the one with this key.
    pub key: Option<String>,
    /// Whether to include batches that are tasks of other batches.
    pub inner: bool,
    /// Only those older than this one: the last batch of the previous page.
    pub before: Option<BatchId>,
    /// The maximum number of results.
    pub limit: u32,
}

impl Default for BatchFilter {
    fn default() -> Self {
        Self { dag: None, state: None, key: None, inner: false, before: None, limit: 50 }
    }
}

/// A batch in a list: its state and its progress.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchView {
    /// Its id.
    pub id: BatchId,
    /// Its DAG.
    pub dag: String,
    /// The number of its version.
    pub number: u32,
    /// Its version.
    pub version: Version,
    /// Its key.
    pub key: Option<String>,
    /// Its state.
    pub state: BatchState,
    /// Whether an operator has stopped it: no task starts then.
    pub stopped: bool,
    /// The number of its current run: 1 for the first run, increased by every rerun.
    pub generation: u32,
    /// The number of its tasks in each state.
    pub counts: Counts,
    /// The task of another batch that it implements, if it is an inner batch.
    pub parent: Option<ParentTask>,
    /// The tick that it was started for.
    pub nominal_at: Option<Timestamp>,
    /// The time zone of the tick's date.
    pub nominal_zone: Option<String>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its last task ended.
    pub ended_at: Option<Timestamp>,
}

impl BatchView {
    /// Returns its nominal time.
    #[must_use]
    pub fn nominal(&self) -> Option<NominalTime> {
        NominalTime::of_columns(self.nominal_at, self.nominal_zone.clone())
    }
}

/// A task that is an inner batch.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParentTask {
    /// The batch that contains the task.
    pub batch: BatchId,
    /// Its number; none if the current version of that batch no longer has this task.
    pub task: Option<u32>,
    /// Its key.
    pub key: Option<String>,
    /// Whether the inner batch has one job for each item of a list, instead of a DAG.
    pub items: bool,
}

/// A filter for the tasks of a batch, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    /// Only in these states; empty: all states.
    pub states: Vec<TaskState>,
    /// Only these; empty: all tasks.
    pub tasks: Vec<u32>,
    /// Only those after this one: the last task of the previous page.
    pub after: Option<u32>,
    /// The maximum number of results.
    pub limit: u32,
}

impl Default for TaskFilter {
    fn default() -> Self {
        Self { states: Vec::new(), tasks: Vec::new(), after: None, limit: 1000 }
    }
}

/// A task of a batch.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TaskView {
    /// Its number.
    pub task: u32,
    /// Its key; for an item, its index in the list, from 0.
    pub key: String,
    /// Its state.
    pub state: TaskState,
    /// The generation in which it was last decided.
    pub generation: u32,
    /// The number of its predecessors that have not ended.
    pub pre_cnt: u32,
    /// Its job.
    pub job: Option<JobId>,
    /// Its inner batch.
    pub batch: Option<BatchId>,
    /// The state of its job.
    pub job_state: Option<JobState>,
    /// The number of attempts of its job so far.
    pub attempt: Option<u32>,
    /// When its job or inner batch was created, so that it could run.
    pub released_at: Option<Timestamp>,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The progress reported by its job: the units done, and their total.
    pub progress: Option<(i64, Option<i64>)>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// What it waits for, while it is active or aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitView>,
}

/// A state change of a batch, or of a task that had no job at that time. Changes of jobs are in their histories.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchEntry {
    /// Its position in the history.
    pub pos: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The generation of the batch at that time.
    pub generation: u32,
    /// The task's number; none for the batch itself, or for a task that the current version no longer has.
    pub task: Option<u32>,
    /// The task's key; none for the batch itself.
    pub key: Option<String>,
    /// The job that the task had, if this change removed it.
    pub job: Option<JobId>,
    /// The operation.
    pub verb: Verb,
    /// The state before.
    pub from: Option<String>,
    /// The state after.
    pub to: String,
    /// The reason.
    pub note: Option<String>,
}

/// A batch and its input.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchDetail {
    /// The batch, as shown in lists.
    #[serde(flatten)]
    pub row: BatchView,
    /// Its input.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub input: Box<RawValue>,
    /// The event that started it, if a subscription did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<StartedBy>,
}

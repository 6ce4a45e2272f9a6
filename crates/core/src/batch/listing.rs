//! What operators see of DAGs and batches.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::nominal::NominalTime;
use crate::dag::state::{BatchState, Counts, TaskState};
use crate::dag::version::Version;
use crate::ident::{BatchId, JobId};
use crate::state::JobState;
use crate::transition::Verb;

/// A version of a DAG, as it stands in a list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct VersionView {
    /// The DAG.
    pub dag: String,
    /// Its place among the versions of the DAG, from 1.
    pub number: u32,
    /// Its content.
    pub version: Version,
    /// Whether batches that name no version get this one.
    pub latest: bool,
    /// How many tasks it has.
    pub tasks: u32,
    /// How many edges.
    pub edges: u32,
    /// How many tasks follow one another at most.
    pub depth: u32,
    /// When it was stored first.
    pub created_at: Timestamp,
}

/// What became of a definition.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Defined {
    /// The version that stands for it, now the latest.
    #[serde(flatten)]
    pub version: VersionView,
    /// Whether the same content was there before.
    pub known: bool,
}

/// Which batches to list, newest first.
#[derive(Clone, Debug)]
pub struct BatchFilter {
    /// Only of this DAG.
    pub dag: Option<String>,
    /// Only in this state.
    pub state: Option<BatchState>,
    /// Only the one with this key.
    pub key: Option<String>,
    /// Those that are tasks of others, too.
    pub inner: bool,
    /// Only those older than this one: the last of the page before.
    pub before: Option<BatchId>,
    /// At most so many.
    pub limit: u32,
}

impl Default for BatchFilter {
    fn default() -> Self {
        Self { dag: None, state: None, key: None, inner: false, before: None, limit: 50 }
    }
}

/// A batch on one row: where it stands, and how far it is.
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
    /// Where it stands.
    pub state: BatchState,
    /// Whether an operator has stopped it: nothing starts.
    pub stopped: bool,
    /// Which rerun it is at, from 1 for the first run.
    pub generation: u32,
    /// How many of its tasks stand where.
    pub counts: Counts,
    /// The task that it is, of another batch.
    pub parent: Option<ParentTask>,
    /// The tick that it is for.
    pub nominal_at: Option<Timestamp>,
    /// The time zone of the tick's date.
    pub nominal_zone: Option<String>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When something last changed.
    pub updated_at: Timestamp,
    /// When its last task ended.
    pub ended_at: Option<Timestamp>,
}

impl BatchView {
    /// The tick that it is for.
    #[must_use]
    pub fn nominal(&self) -> Option<NominalTime> {
        NominalTime::of_columns(self.nominal_at, self.nominal_zone.clone())
    }
}

/// A task that is a batch of its own.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ParentTask {
    /// Whose task.
    pub batch: BatchId,
    /// Its number; `None`: the version that the other batch has by now has no such task.
    pub task: Option<u32>,
    /// Its key.
    pub key: Option<String>,
    /// Whether the batch has one job for each item of a list, rather than a DAG of its own.
    pub items: bool,
}

/// Which tasks of a batch to list, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    /// Only in these states; empty: in all.
    pub states: Vec<TaskState>,
    /// Only these; empty: all.
    pub tasks: Vec<u32>,
    /// Only those after this one: the last of the page before.
    pub after: Option<u32>,
    /// At most so many.
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
    /// Its key; of an item its place in the list, from 0.
    pub key: String,
    /// Where it stands.
    pub state: TaskState,
    /// The generation in which it was decided last.
    pub generation: u32,
    /// How many of its predecessors have not ended.
    pub pre_cnt: u32,
    /// Its job.
    pub job: Option<JobId>,
    /// The batch that it is.
    pub batch: Option<BatchId>,
    /// Where its job stands.
    pub job_state: Option<JobState>,
    /// Tries of its job so far.
    pub attempt: Option<u32>,
    /// When its job, or its batch, was made: when it could run.
    pub released_at: Option<Timestamp>,
    /// When the last attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How far its job says it is: done, and of how many.
    pub progress: Option<(i64, Option<i64>)>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// Something that happened to a batch, or to a task that had no job then. What happened to jobs is in theirs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchEntry {
    /// Its place in the order of things.
    pub pos: i64,
    /// When.
    pub at: Timestamp,
    /// The generation of the batch then.
    pub generation: u32,
    /// Which task; `None`: the batch itself, or a task that its version does not have any more.
    pub task: Option<u32>,
    /// The task's key; `None`: the batch itself.
    pub key: Option<String>,
    /// The job that the task had, if this is what took it away.
    pub job: Option<JobId>,
    /// What.
    pub verb: Verb,
    /// Where it stood before.
    pub from: Option<String>,
    /// Where it stood afterwards.
    pub to: String,
    /// Why.
    pub note: Option<String>,
}

/// A batch and its input.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchDetail {
    /// What a list shows.
    #[serde(flatten)]
    pub row: BatchView,
    /// Its input.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub input: Box<RawValue>,
}

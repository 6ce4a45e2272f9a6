//! Rows of DAGs and batches.

use jiff::Timestamp;

use super::{Position, Row};
use crate::dag::rule::{Rule, Tally};
use crate::dag::state::{BatchState, Counts, TaskState};
use crate::ident::{BatchId, JobId};
use crate::trace::Traceparent;
use crate::transition::Verb;

/// A version of a DAG.
#[derive(Clone, Debug)]
pub struct DagVersion {
    /// The id by which tasks and batches refer to it.
    pub id: i64,
    /// The DAG.
    pub name: String,
    /// Its number among the versions of the DAG.
    pub number: u32,
    /// The digest of its content.
    pub version: String,
    /// The number of tasks.
    pub tasks: u32,
    /// The number of edges.
    pub edges: u32,
    /// The number of tasks in its longest chain.
    pub depth: u32,
    /// When it was defined.
    pub created_at: Timestamp,
    /// The schema of inputs, JSON.
    pub input_schema: Option<String>,
    /// Its canonical content.
    pub canonical: String,
}

impl Row for DagVersion {
    fn position(&self) -> Position {
        Position::Number(self.id)
    }

    fn bytes(&self) -> usize {
        self.canonical.len()
    }
}

/// The version that a batch gets if it specifies none.
#[derive(Clone, Debug)]
pub struct Dag {
    /// The DAG.
    pub name: String,
    /// The id of the version.
    pub latest: i64,
    /// When that was last changed.
    pub updated_at: Timestamp,
}

impl Row for Dag {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// A task of a version. Lists of tasks are JSON.
#[derive(Clone, Debug)]
pub struct DagTask {
    /// The id of the version.
    pub version: i64,
    /// Its number.
    pub task: u32,
    /// Its trigger rule.
    pub rule: Rule,
    /// Whether its payload is constant and it has no condition.
    pub plain: bool,
    /// The number of its predecessors.
    pub pre_cnt: u32,
    /// Its key.
    pub key: String,
    /// The kind of its job.
    pub kind: Option<String>,
    /// The queue of its job.
    pub queue: String,
    /// The priority of its job within the queue.
    pub priority: u8,
    /// Its group.
    pub group: Option<String>,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The time limit of an attempt.
    pub timeout_ms: Option<i64>,
    /// The predecessors whose results it reads, JSON.
    pub reads: String,
    /// The rest of its definition, JSON.
    pub spec: String,
    /// Its successors, JSON.
    pub successors: String,
    /// Its predecessors, JSON.
    pub predecessors: String,
}

impl Row for DagTask {
    fn position(&self) -> Position {
        Position::VersionTask(self.version, self.task)
    }

    fn bytes(&self) -> usize {
        self.spec.len() + self.successors.len() + self.predecessors.len()
    }
}

/// A run of a version.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// The DAG.
    pub dag: String,
    /// The id of the version.
    pub version: i64,
    /// Its key.
    pub key: Option<String>,
    /// Its state.
    pub state: BatchState,
    /// Whether an operator has stopped it.
    pub stop: Option<Verb>,
    /// The number of the run: increases with every rerun.
    pub generation: u32,
    /// The number of its tasks in each state.
    pub counts: Counts,
    /// The batch that it is a task of.
    pub parent: Option<BatchId>,
    /// The number of that task.
    pub parent_task: Option<u32>,
    /// The task whose list it processes.
    pub items_of: Option<u32>,
    /// Its nesting depth in other batches.
    pub depth: u32,
    /// Its schedule tick.
    pub nominal_at: Option<Timestamp>,
    /// The time zone of the tick's date.
    pub nominal_zone: Option<String>,
    /// The trace span that it follows from.
    pub traceparent: Option<Traceparent>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Row for Batch {
    fn position(&self) -> Position {
        Position::Batch(self.id)
    }
}

/// The input of a batch.
#[derive(Clone, Debug)]
pub struct BatchInput {
    /// The batch.
    pub batch: BatchId,
    /// Its input, JSON.
    pub input: String,
}

impl Row for BatchInput {
    fn position(&self) -> Position {
        Position::Batch(self.batch)
    }

    fn bytes(&self) -> usize {
        self.input.len()
    }
}

/// The state of a task of a batch.
#[derive(Clone, Debug)]
pub struct BatchTask {
    /// The batch.
    pub batch: BatchId,
    /// The number of the task.
    pub task: u32,
    /// The generation in which it was last decided.
    pub generation: u32,
    /// The outcomes of its predecessors.
    pub tally: Tally,
    /// Its state.
    pub state: TaskState,
    /// Its job.
    pub job: Option<JobId>,
    /// The batch that the task is.
    pub child: Option<BatchId>,
}

impl Row for BatchTask {
    fn position(&self) -> Position {
        Position::Task(self.batch, self.task)
    }
}

/// The end of a task that has not been counted in all successors yet.
#[derive(Clone, Debug)]
pub struct BatchSpread {
    /// Its position in the queue.
    pub pos: i64,
    /// The batch.
    pub batch: BatchId,
    /// The task.
    pub task: u32,
    /// The previous state of the task.
    pub was: TaskState,
    /// The state of the task.
    pub state: TaskState,
    /// The number of successors in which it has been counted.
    pub position: u32,
}

impl Row for BatchSpread {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }
}

/// What a task waits for, or waited for last.
#[derive(Clone, Debug)]
pub struct BatchWait {
    /// The batch.
    pub batch: BatchId,
    /// The number of the task.
    pub task: u32,
    /// The name of the signal.
    pub signal: Option<String>,
    /// When it began to wait.
    pub since: Timestamp,
    /// The time until which it waits.
    pub until: Option<Timestamp>,
    /// The state after that time.
    pub on_timeout: TaskState,
    /// When it is checked next.
    pub check_at: Option<Timestamp>,
    /// The payload of the signal that ended the wait, JSON.
    pub output: Option<String>,
}

impl Row for BatchWait {
    fn position(&self) -> Position {
        Position::Task(self.batch, self.task)
    }

    fn bytes(&self) -> usize {
        self.output.as_ref().map_or(0, String::len)
    }
}

/// A signal for a batch.
#[derive(Clone, Debug)]
pub struct BatchSignal {
    /// Its position among all signals.
    pub pos: i64,
    /// The batch.
    pub batch: BatchId,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its payload, JSON.
    pub payload: String,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// Whether a wait can use it, has used it, or a rerun discarded it.
    pub state: String,
}

impl Row for BatchSignal {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// A history entry of a batch, or of a task that had no job at that time.
#[derive(Clone, Debug)]
pub struct BatchNote {
    /// Its position.
    pub pos: i64,
    /// The batch.
    pub batch: BatchId,
    /// The time.
    pub at: Timestamp,
    /// The generation.
    pub generation: u32,
    /// The task; `None` for the batch itself, or for a task that the current version does not contain.
    pub task: Option<u32>,
    /// The key of a task that the current version does not contain.
    pub key: Option<String>,
    /// The previous job of the task, if this entry removed it.
    pub job: Option<JobId>,
    /// The verb.
    pub verb: Verb,
    /// The state before.
    pub from: Option<String>,
    /// The state after.
    pub to: String,
    /// The reason.
    pub note: Option<String>,
}

impl Row for BatchNote {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.note.as_ref().map_or(0, String::len)
    }
}

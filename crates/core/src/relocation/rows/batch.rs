//! Rows about DAGs and batches.

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
    /// By which tasks and batches name it.
    pub id: i64,
    /// The DAG.
    pub name: String,
    /// Which of its versions.
    pub number: u32,
    /// The digest of its content.
    pub version: String,
    /// How many tasks it has.
    pub tasks: u32,
    /// How many edges.
    pub edges: u32,
    /// How many tasks its longest chain has.
    pub depth: u32,
    /// When it was defined.
    pub created_at: Timestamp,
    /// What inputs have to be like, JSON.
    pub input_schema: Option<String>,
    /// Its content.
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

/// Which version a batch gets that names none.
#[derive(Clone, Debug)]
pub struct Dag {
    /// The DAG.
    pub name: String,
    /// The id of the version.
    pub latest: i64,
    /// Since when.
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
    /// Which task.
    pub task: u32,
    /// When it runs.
    pub rule: Rule,
    /// Whether nothing has to be worked out for it.
    pub plain: bool,
    /// How many tasks it comes after.
    pub pre_cnt: u32,
    /// Its key.
    pub key: String,
    /// The kind of its job.
    pub kind: Option<String>,
    /// Where that waits.
    pub queue: String,
    /// Which jobs of the queue go first.
    pub priority: u8,
    /// Its group.
    pub group: Option<String>,
    /// How many attempts it gets.
    pub max_attempts: u32,
    /// How long an attempt may take.
    pub timeout_ms: Option<i64>,
    /// The predecessors whose results it reads, JSON.
    pub reads: String,
    /// All else that the definition says, JSON.
    pub spec: String,
    /// The tasks that come after it, JSON.
    pub successors: String,
    /// The tasks that it comes after, JSON.
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
    /// Where it stands.
    pub state: BatchState,
    /// Whether an operator stopped it.
    pub stop: Option<Verb>,
    /// Rises with every rerun.
    pub generation: u32,
    /// How many of its tasks stand where.
    pub counts: Counts,
    /// The batch of which it is a task.
    pub parent: Option<BatchId>,
    /// Which task.
    pub parent_task: Option<u32>,
    /// The task over whose list it goes.
    pub items_of: Option<u32>,
    /// How deep it lies in others.
    pub depth: u32,
    /// The tick that it is for.
    pub nominal_at: Option<Timestamp>,
    /// The time zone of the tick's date.
    pub nominal_zone: Option<String>,
    /// The span of a trace that it follows from.
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

/// What a batch was started with.
#[derive(Clone, Debug)]
pub struct BatchInput {
    /// Which batch.
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

/// Where a task of a batch stands.
#[derive(Clone, Debug)]
pub struct BatchTask {
    /// Of which batch.
    pub batch: BatchId,
    /// Which task.
    pub task: u32,
    /// The generation in which it was decided last.
    pub generation: u32,
    /// How its predecessors ended.
    pub tally: Tally,
    /// Where it stands.
    pub state: TaskState,
    /// Its job.
    pub job: Option<JobId>,
    /// The batch that it is.
    pub child: Option<BatchId>,
}

impl Row for BatchTask {
    fn position(&self) -> Position {
        Position::Task(self.batch, self.task)
    }
}

/// An end that waits to be counted.
#[derive(Clone, Debug)]
pub struct BatchSpread {
    /// Its place in the line.
    pub pos: i64,
    /// Of which batch.
    pub batch: BatchId,
    /// Which task.
    pub task: u32,
    /// Where the task stood.
    pub was: TaskState,
    /// Where it stands.
    pub state: TaskState,
    /// In how many successors it is counted.
    pub position: u32,
}

impl Row for BatchSpread {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }
}

/// What happened to a batch, or to a task of it that had no job.
#[derive(Clone, Debug)]
pub struct BatchNote {
    /// Its place.
    pub pos: i64,
    /// Of which batch.
    pub batch: BatchId,
    /// When.
    pub at: Timestamp,
    /// In which generation.
    pub generation: u32,
    /// Which task; `None`: the batch itself, or a task that its version does not have any more.
    pub task: Option<u32>,
    /// The key of one that it does not have.
    pub key: Option<String>,
    /// The job that the task had, if this is what took it away.
    pub job: Option<JobId>,
    /// What.
    pub verb: Verb,
    /// Where it stood.
    pub from: Option<String>,
    /// Where it stands.
    pub to: String,
    /// Why.
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

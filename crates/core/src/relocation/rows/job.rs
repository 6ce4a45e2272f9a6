//! Rows about one job each.

use jiff::Timestamp;

use super::{Position, Row};
use crate::history::HistoryEntry;
use crate::ident::{BatchId, JobId, RunToken, WorkerId};
use crate::state::JobState;
use crate::trace::Traceparent;
use crate::transition::Verb;

/// What was asked.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Which handler runs it.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Its input, JSON.
    pub payload: String,
    /// Its key.
    pub key: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Which jobs of the queue go first.
    pub priority: u8,
    /// How many attempts it was given.
    pub max_attempts: u32,
    /// How long an attempt may take.
    pub timeout_ms: Option<i64>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// The tick that it stands for.
    pub nominal_at: Option<Timestamp>,
    /// The span of a trace that it follows from.
    pub traceparent: Option<Traceparent>,
    /// The batch of which it is a task.
    pub batch: Option<BatchId>,
    /// Which task.
    pub task: Option<u32>,
}

impl Row for Job {
    fn position(&self) -> Position {
        Position::Job(self.id)
    }

    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// Who has a key.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub key: String,
    /// Among the jobs of this kind.
    pub kind: String,
    /// The job that has it.
    pub job: JobId,
    /// When the job ended, if the key has outlived it.
    pub job_ended_at: Option<Timestamp>,
}

impl Row for Key {
    fn position(&self) -> Position {
        Position::Key(self.key.clone(), self.kind.clone())
    }

    fn bytes(&self) -> usize {
        self.key.len()
    }
}

/// How far a job said it was.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Which job.
    pub job: JobId,
    /// Units done.
    pub done: Option<i64>,
    /// Units in all.
    pub total: Option<i64>,
    /// A word for people.
    pub message: Option<String>,
    /// Where its next attempt can go on from, JSON.
    pub checkpoint: Option<String>,
    /// When it said so.
    pub updated_at: Timestamp,
}

impl Row for Progress {
    fn position(&self) -> Position {
        Position::Job(self.job)
    }

    fn bytes(&self) -> usize {
        len(&self.message) + len(&self.checkpoint)
    }
}

impl Row for HistoryEntry {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        len(&self.error_code) + len(&self.error_message) + len(&self.note)
    }
}

/// The right of one job of a group to be under way.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Which group.
    pub group: String,
    /// Its number.
    pub slot: i64,
    /// Who holds it.
    pub job: JobId,
}

impl Row for Slot {
    fn position(&self) -> Position {
        Position::Slot(self.group.clone(), self.slot)
    }
}

/// How a job ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which job.
    pub id: JobId,
    /// How.
    pub state: JobState,
    /// When.
    pub ended_at: Timestamp,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// The token of its last claim.
    pub token: RunToken,
    /// Tries it had.
    pub attempt: u32,
    /// Tries it might have had.
    pub max_attempts: u32,
    /// What its handler returned, JSON.
    pub result: Option<String>,
}

impl Row for Ended {
    fn position(&self) -> Position {
        Position::Job(self.id)
    }

    fn bytes(&self) -> usize {
        len(&self.result)
    }
}

/// Where a job stands that needs attention.
#[derive(Clone, Debug)]
pub struct Live {
    /// Which job.
    pub id: JobId,
    /// Which handler runs it.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Which jobs of the queue go first.
    pub priority: u8,
    /// Where it stands.
    pub state: JobState,
    /// When it may be claimed.
    pub ready_at: Option<Timestamp>,
    /// When it wants to start, while it is blocked.
    pub due_at: Option<Timestamp>,
    /// When the current attempt began.
    pub started_at: Option<Timestamp>,
    /// When it failed for good, if it did.
    pub failed_at: Option<Timestamp>,
    /// Tries so far.
    pub attempt: u32,
    /// Tries it may have.
    pub max_attempts: u32,
    /// The token of its last claim.
    pub token: RunToken,
    /// Who holds it.
    pub worker: Option<WorkerId>,
    /// Under which claim.
    pub claim_id: Option<i32>,
    /// Its group.
    pub group: Option<String>,
    /// What was asked of the running job.
    pub stop_verb: Option<Verb>,
    /// When it is fenced off at the latest.
    pub stop_at: Option<Timestamp>,
    /// Why it was asked to stop.
    pub stop_note: Option<String>,
}

impl Row for Live {
    fn position(&self) -> Position {
        Position::Job(self.id)
    }

    fn bytes(&self) -> usize {
        len(&self.stop_note)
    }
}

fn len(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

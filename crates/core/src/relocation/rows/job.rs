//! Rows of jobs.

use jiff::Timestamp;

use super::{Position, Row};
use crate::history::HistoryEntry;
use crate::ident::{BatchId, JobId, RunToken, WorkerId};
use crate::state::JobState;
use crate::trace::Traceparent;
use crate::transition::Verb;

/// A job as enqueued.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its kind, which determines the handler.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its input, JSON.
    pub payload: String,
    /// Its key.
    pub key: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its priority within the queue.
    pub priority: u8,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The time limit of an attempt.
    pub timeout_ms: Option<i64>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// Its schedule tick.
    pub nominal_at: Option<Timestamp>,
    /// The trace span that it follows from.
    pub traceparent: Option<Traceparent>,
    /// The batch that it is a task of.
    pub batch: Option<BatchId>,
    /// The number of that task.
    pub task: Option<u32>,
    /// Whether a later job has taken its key.
    pub key_released: bool,
}

impl Row for Job {
    fn position(&self) -> Position {
        Position::Job(self.id)
    }

    fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// A key and the job that has it.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub key: String,
    /// The kind within which it is unique.
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

/// The progress and the checkpoint that a job reported.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The job.
    pub job: JobId,
    /// Units done.
    pub done: Option<i64>,
    /// The total number of units.
    pub total: Option<i64>,
    /// A message for users.
    pub message: Option<String>,
    /// The state from which its next attempt can resume, JSON.
    pub checkpoint: Option<String>,
    /// When it was reported.
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

/// A slot of a group, held by one of its jobs.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The group.
    pub group: String,
    /// Its number.
    pub slot: i64,
    /// The job that holds it.
    pub job: JobId,
}

impl Row for Slot {
    fn position(&self) -> Position {
        Position::Slot(self.group.clone(), self.slot)
    }
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The job.
    pub id: JobId,
    /// Its final state.
    pub state: JobState,
    /// When it ended.
    pub ended_at: Timestamp,
    /// When its last attempt began.
    pub started_at: Option<Timestamp>,
    /// The token of its last claim.
    pub token: RunToken,
    /// The number of attempts it had.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The result of its handler, JSON.
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

/// The state of an unfinished job.
#[derive(Clone, Debug)]
pub struct Live {
    /// The job.
    pub id: JobId,
    /// Its kind, which determines the handler.
    pub kind: String,
    /// Its queue.
    pub queue: String,
    /// Its priority within the queue.
    pub priority: u8,
    /// Its state.
    pub state: JobState,
    /// The time from which it may be claimed.
    pub ready_at: Option<Timestamp>,
    /// The start time requested for a blocked job.
    pub due_at: Option<Timestamp>,
    /// When the current attempt began.
    pub started_at: Option<Timestamp>,
    /// When it failed permanently, if it did.
    pub failed_at: Option<Timestamp>,
    /// The number of attempts so far.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// The token of its last claim.
    pub token: RunToken,
    /// The worker that holds it.
    pub worker: Option<WorkerId>,
    /// The claim under which it is held.
    pub claim_id: Option<i32>,
    /// Its group.
    pub group: Option<String>,
    /// The requested stop of a running job.
    pub stop_verb: Option<Verb>,
    /// The time at which it is fenced at the latest.
    pub stop_at: Option<Timestamp>,
    /// The reason for the stop.
    pub stop_note: Option<String>,
    /// Whether a token of its group's rate is reserved for its next start.
    pub start_reserved: bool,
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

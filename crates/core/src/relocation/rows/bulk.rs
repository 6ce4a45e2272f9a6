//! Rows about bulk jobs.

use jiff::Timestamp;

use super::{Position, Row};
use crate::bulk::run::Settings;
use crate::ident::{JobId, RunToken};
use crate::schedule::Source;

/// A bulk job before anybody starts it.
#[derive(Clone, Debug)]
pub struct BulkDefinition {
    /// Its name.
    pub name: String,
    /// What comes out of it.
    pub r#type: Option<String>,
    /// What it is for.
    pub category: Option<String>,
    /// Of which group one runs at a time.
    pub group: String,
    /// Where its jobs wait.
    pub queue: String,
    /// Which of a group goes first.
    pub priority: u8,
    /// How many attempts a run gets.
    pub max_attempts: u32,
    /// How long a chunk shall take.
    pub chunk_ms: i64,
    /// The fewest rows of a chunk.
    pub chunk_rows_min: u32,
    /// The most rows of a chunk.
    pub chunk_rows_max: u32,
    /// Rows a second at most.
    pub rows_per_s: Option<f64>,
    /// The part of the time that chunks may take.
    pub duty: f64,
    /// How many targets may fail.
    pub failures_max: i64,
    /// The bulk job that is started by its end.
    pub then: Option<String>,
    /// What a crash means for its targets.
    pub effects: String,
    /// Where its targets are, when that is another database.
    pub place: Option<String>,
    /// Changes when its statements do.
    pub fingerprint: String,
    /// The columns of the file that its targets come from, JSON.
    pub columns: Option<String>,
    /// Who says so.
    pub source: Source,
    /// When it was last written.
    pub updated_at: Timestamp,
}

impl Row for BulkDefinition {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// How far a run is. Keys are JSON arrays, with values as the store that is left has them.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Which job.
    pub job: JobId,
    /// The run whose targets these are.
    pub origin: JobId,
    /// The run whose failures it tries again.
    pub retry_of: Option<JobId>,
    /// The token of its last worker.
    pub token: RunToken,
    /// What definition it began with.
    pub fingerprint: Option<String>,
    /// When its targets were frozen.
    pub surveyed_at: Option<Timestamp>,
    /// The last target, JSON.
    pub upper: Option<String>,
    /// How many targets there are.
    pub total: Option<i64>,
    /// Whether they were counted.
    pub total_exact: Option<bool>,
    /// Up to which target all is done, JSON.
    pub cursor: Option<String>,
    /// Targets that were applied.
    pub done: i64,
    /// Targets that could not be.
    pub failed: i64,
    /// Chunks so far.
    pub chunks: i64,
    /// How many rows the last chunk was to have.
    pub chunk_rows: Option<u32>,
    /// How long it took.
    pub chunk_ms: Option<i64>,
    /// How long all chunks took.
    pub busy_ms: i64,
    /// How long it was held.
    pub held_ms: i64,
    /// What holds it.
    pub throttle: Option<String>,
    /// Since when.
    pub throttle_since: Option<Timestamp>,
    /// When a worker first took it.
    pub started_at: Option<Timestamp>,
    /// When it last moved.
    pub updated_at: Option<Timestamp>,
    /// When it was done.
    pub ended_at: Option<Timestamp>,
}

impl Row for Bulk {
    fn position(&self) -> Position {
        Position::Job(self.job)
    }

    fn bytes(&self) -> usize {
        [&self.upper, &self.cursor, &self.throttle].into_iter().flatten().map(String::len).sum()
    }
}

/// What operators set for a run.
#[derive(Clone, Debug)]
pub struct BulkSetting {
    /// Which job.
    pub job: JobId,
    /// What they set.
    pub settings: Settings,
    /// How many of its failures went to runs that try them again.
    pub given: i64,
    /// When they last did.
    pub set_at: Timestamp,
}

impl Row for BulkSetting {
    fn position(&self) -> Position {
        Position::Job(self.job)
    }
}

/// A target that could not be applied.
#[derive(Clone, Debug)]
pub struct BulkFailure {
    /// Its place, by which runs that try it again go.
    pub pos: i64,
    /// Of which run.
    pub job: JobId,
    /// Which target, JSON.
    pub key: String,
    /// The database's code.
    pub code: String,
    /// The database's words.
    pub message: String,
    /// When.
    pub at: Timestamp,
    /// The run that tries it again.
    pub retried_by: Option<JobId>,
}

impl Row for BulkFailure {
    fn position(&self) -> Position {
        Position::Number(self.pos)
    }

    fn bytes(&self) -> usize {
        self.key.len() + self.message.len()
    }
}

/// A file whose rows are the targets of a run.
#[derive(Clone, Debug)]
pub struct BulkFile {
    /// Which run.
    pub run: JobId,
    /// Its name for people.
    pub name: String,
    /// How many rows were staged.
    pub rows: i64,
    /// When the run was started; `None`: it is still being staged, or that was cut short.
    pub started_at: Option<Timestamp>,
    /// When somebody last wrote to it.
    pub touched_at: Timestamp,
}

impl Row for BulkFile {
    fn position(&self) -> Position {
        Position::Job(self.run)
    }
}

/// A row of such a file.
#[derive(Clone, Debug)]
pub struct BulkTarget {
    /// Of which run.
    pub run: JobId,
    /// Its number, from 1.
    pub n: i64,
    /// What it holds, JSON.
    pub row: String,
}

impl Row for BulkTarget {
    fn position(&self) -> Position {
        Position::Row(self.run, self.n)
    }

    fn bytes(&self) -> usize {
        self.row.len()
    }
}

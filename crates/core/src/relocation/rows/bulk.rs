//! Rows of bulk jobs.

use jiff::Timestamp;

use super::{Position, Row};
use crate::bulk::settings::Settings;
use crate::ident::{JobId, RunToken};
use crate::schedule::Source;

/// The definition of a bulk job.
#[derive(Clone, Debug)]
pub struct BulkDefinition {
    /// Its name.
    pub name: String,
    /// Its type of output.
    pub r#type: Option<String>,
    /// Its purpose.
    pub category: Option<String>,
    /// Its group, of which one bulk job runs at a time.
    pub group: String,
    /// The queue of its jobs.
    pub queue: String,
    /// Its priority within the group.
    pub priority: u8,
    /// The maximum number of attempts of a run.
    pub max_attempts: u32,
    /// The target duration of a chunk.
    pub chunk_ms: i64,
    /// The minimum number of rows of a chunk.
    pub chunk_rows_min: u32,
    /// The maximum number of rows of a chunk.
    pub chunk_rows_max: u32,
    /// The maximum number of rows per second.
    pub rows_per_s: Option<f64>,
    /// The fraction of the time that chunks may use.
    pub duty: f64,
    /// The maximum number of targets that may fail.
    pub failures_max: i64,
    /// The bulk job that is started when this one ends.
    pub then: Option<String>,
    /// The effect of a crash on its targets.
    pub effects: String,
    /// The database of its targets, if it is not the store's.
    pub place: Option<String>,
    /// A hash that changes when its statements change.
    pub fingerprint: String,
    /// The columns of the file that contains its targets, JSON.
    pub columns: Option<String>,
    /// Its statements and their parameters, JSON.
    pub statements: Option<String>,
    /// Its origin: an operator or a configuration.
    pub source: Source,
    /// When it was last written.
    pub updated_at: Timestamp,
}

impl Row for BulkDefinition {
    fn position(&self) -> Position {
        Position::Name(self.name.clone())
    }
}

/// The state of a run. Keys are JSON arrays with values in the format of the source store.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// The job.
    pub job: JobId,
    /// The run that the targets belong to.
    pub origin: JobId,
    /// The run whose failures it retries.
    pub retry_of: Option<JobId>,
    /// The run token of its last worker.
    pub token: RunToken,
    /// The fingerprint of the definition that it began with.
    pub fingerprint: Option<String>,
    /// When its set of targets was fixed.
    pub surveyed_at: Option<Timestamp>,
    /// The last target, JSON.
    pub upper: Option<String>,
    /// The number of targets.
    pub total: Option<i64>,
    /// Whether the number is exact.
    pub total_exact: Option<bool>,
    /// The key up to which all targets are processed, JSON.
    pub cursor: Option<String>,
    /// The number of applied targets.
    pub done: i64,
    /// The number of failed targets.
    pub failed: i64,
    /// The number of chunks so far.
    pub chunks: i64,
    /// The planned number of rows of the last chunk.
    pub chunk_rows: Option<u32>,
    /// The duration of the last chunk.
    pub chunk_ms: Option<i64>,
    /// The total duration of all chunks.
    pub busy_ms: i64,
    /// How long it was paused by throttles.
    pub held_ms: i64,
    /// The throttle that pauses it.
    pub throttle: Option<String>,
    /// Since when the throttle pauses it.
    pub throttle_since: Option<Timestamp>,
    /// When a worker first took it.
    pub started_at: Option<Timestamp>,
    /// When its progress last changed.
    pub updated_at: Option<Timestamp>,
    /// When it was complete.
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

/// The settings that operators chose for a run.
#[derive(Clone, Debug)]
pub struct BulkSetting {
    /// The job.
    pub job: JobId,
    /// The settings.
    pub settings: Settings,
    /// The number of its failures that were passed to runs that retry them.
    pub given: i64,
    /// When the settings were last changed.
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
    /// Its position, which is the key of runs that retry it.
    pub pos: i64,
    /// The run.
    pub job: JobId,
    /// The key of the target, JSON.
    pub key: String,
    /// The database's error code.
    pub code: String,
    /// The database's error message.
    pub message: String,
    /// The time.
    pub at: Timestamp,
    /// The run that retries it.
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
    /// The run.
    pub run: JobId,
    /// Its name for operators.
    pub name: String,
    /// The number of staged rows.
    pub rows: i64,
    /// When the run was started; `None` while it is being staged, or if the upload was aborted.
    pub started_at: Option<Timestamp>,
    /// When it was last written to.
    pub touched_at: Timestamp,
}

impl Row for BulkFile {
    fn position(&self) -> Position {
        Position::Job(self.run)
    }
}

/// A staged row of a file.
#[derive(Clone, Debug)]
pub struct BulkTarget {
    /// The run.
    pub run: JobId,
    /// Its number, from 1.
    pub n: i64,
    /// Its content, JSON.
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

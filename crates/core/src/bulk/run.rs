//! State of one run of a bulk job: its position, the results of its chunks, and its settings.

use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::key::Key;
use super::settings::Settings;
use crate::ident::{JobId, Run};
use crate::transition::Verb;

/// A worker's request to a store to process a run.
#[derive(Clone, Debug)]
pub struct Order {
    /// The job, and the run token that every chunk carries.
    pub run: Run,
    /// Its parameters, as JSON text.
    pub payload: String,
    /// The schedule tick that it belongs to.
    pub nominal_at: Option<Timestamp>,
}

/// The position of a run when a worker takes it.
#[derive(Clone, Debug)]
pub struct Position {
    /// The run that the targets belong to: this run, or the one whose failures it retries.
    pub origin: JobId,
    /// The key up to which all targets are processed; `None` at the beginning.
    pub cursor: Option<Key>,
    /// Whether its last target has been determined.
    pub surveyed: bool,
    /// The number of targets, if known.
    pub total: Option<Total>,
    /// The counts so far.
    pub counts: Counts,
    /// The planned number of rows of the last chunk; for a run with effects outside the store's database, of the chunk
    /// that was in progress.
    pub chunk_rows: Option<u32>,
    /// The settings that operators chose.
    pub settings: Settings,
}

/// The number of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Total {
    /// The number of rows.
    pub rows: u64,
    /// Whether they were counted; if not, the number is an estimate.
    pub exact: bool,
}

/// The numbers of processed targets and chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TargetCounts))]
pub struct Counts {
    /// Targets that were applied.
    pub done: u64,
    /// Targets that failed, one per key in the table of failures: targets with the same key fail together.
    pub failed: u64,
    /// The number of chunks.
    pub chunks: u64,
}

/// The set of targets of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The last target; `None` when there are no targets.
    pub upper: Option<Key>,
    /// The number of targets.
    pub total: Option<Total>,
}

/// The result of a survey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surveyed {
    /// The set of targets is fixed.
    Frozen(Survey),
    /// The survey has to wait, for this reason.
    Held(String),
}

/// The result of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunked {
    /// It is committed.
    Done(ChunkDone),
    /// It was not started: the run was asked to stop.
    Stopped(Verb),
}

/// A committed chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkDone {
    /// The number of targets that it read.
    pub rows: u32,
    /// The number of these that failed.
    pub failed: u32,
    /// The counts of the run, including all chunks before.
    pub counts: Counts,
    /// Whether there are no further targets.
    pub exhausted: bool,
    /// The settings that operators chose, as of the start of the chunk.
    pub settings: Settings,
}

/// The results of a chunk's targets, collected part by part.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// The number of processed targets.
    pub targets: u32,
    /// The keys whose targets could not be applied.
    pub failures: Vec<TargetFailure>,
    /// The number of failed targets. Targets with the same key fail together, as one failure.
    pub failed: u32,
    /// The key after which the next chunk begins.
    pub cursor: Option<Key>,
    /// Whether there are no further targets.
    pub exhausted: bool,
}

impl Parts {
    /// The number of failures after which a chunk is committed early, so that it does not take much longer than others.
    pub const FAILURES_MAX: usize = 8;

    /// Creates an empty result that starts after this key.
    #[must_use]
    pub fn behind(cursor: Option<Key>) -> Self {
        Self { cursor, ..Self::default() }
    }

    /// Records the failure of a target that is the only one with its key.
    pub fn fail(&mut self, key: Key, code: String, message: String) {
        self.failures.push(TargetFailure::new(key, code, message));
        self.failed += 1;
    }

    /// Returns the number of failures.
    #[must_use]
    pub fn failures_count(&self) -> u32 {
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    /// Returns the chunk that these parts form once they are committed.
    #[must_use]
    pub fn done(&self, counts: Counts, settings: Settings) -> ChunkDone {
        let (rows, failed, exhausted) = (self.targets, self.failures_count(), self.exhausted);
        ChunkDone { rows, failed, counts, exhausted, settings }
    }
}

/// Why a run is paused, and for how long since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The throttle that pauses it; `None` when it is not paused any more.
    pub throttle: Option<String>,
    /// How long it was paused.
    pub held: Duration,
}

/// A dry run: chunks that are applied and rolled back.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The number of rows of each chunk.
    pub rows: u32,
    /// The number of chunks.
    pub chunks: u32,
    /// The first rows of the file that contains the targets, if there is one.
    pub staged: Vec<String>,
}

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// The number of rows and the duration of each chunk.
    pub chunks: Vec<(u32, Duration)>,
    /// The number of targets.
    pub total: Option<Total>,
    /// The first failure, if a target failed.
    pub failure: Option<TargetFailure>,
}

/// A target that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TargetFailure {
    /// Its position in the table of failures.
    pub pos: i64,
    /// The key of the target.
    pub key: Key,
    /// The error code of the database.
    pub code: String,
    /// The error message of the database.
    pub message: String,
    /// When it failed.
    pub at: Timestamp,
    /// The run that retries it.
    pub retried_by: Option<JobId>,
}

/// A chunk, as passed to the function that applies it.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The job, and the token of its run.
    pub run: Run,
    /// The run that the targets belong to: this run, or the one whose failures it retries.
    pub origin: JobId,
    /// The run's parameters, as JSON text.
    pub payload: &'a str,
    /// The key up to which all targets are processed.
    pub cursor: Option<&'a Key>,
    /// The targets, each a JSON object as text, in key order.
    pub targets: &'a [Target],
}

/// One target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its key.
    pub key: Key,
    /// The columns that the source selects, as JSON text.
    pub row: String,
}

/// An invalid target. The function of a chunk returns this error so that the target is recorded as a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct BadTarget {
    /// A stable name of the problem.
    pub code: String,
    /// A description for users.
    pub message: String,
}

impl TargetFailure {
    /// Creates a failure that is not stored yet; the store assigns its position and its time.
    #[must_use]
    pub fn new(key: Key, code: String, message: String) -> Self {
        Self { pos: 0, key, code, message, at: Timestamp::UNIX_EPOCH, retried_by: None }
    }
}

impl Chunk<'_> {
    /// Deserializes the targets.
    ///
    /// # Errors
    /// [`BadTarget`] when a target does not match the type.
    pub fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>, BadTarget> {
        let read = |target: &Target| {
            serde_json::from_str(&target.row)
                .map_err(|error| BadTarget { code: "target".to_owned(), message: error.to_string() })
        };
        self.targets.iter().map(read).collect()
    }
}

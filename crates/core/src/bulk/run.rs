//! One run of a bulk job: where it is, what each chunk brings, what it is told.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunk::{Load, Sizing};
use super::error::InvalidBulk;
use super::key::Key;
use crate::ident::{JobId, Run};
use crate::job::NewJob;
use crate::transition::Verb;

/// What a worker asks a store to work on.
#[derive(Clone, Debug)]
pub struct Order {
    /// The job and the token that every chunk carries.
    pub run: Run,
    /// Its parameters, as JSON text.
    pub payload: String,
    /// The tick that it stands for.
    pub nominal_at: Option<Timestamp>,
}

/// Where a run is when a worker takes it.
#[derive(Clone, Debug)]
pub struct Position {
    /// The run whose targets these are: itself, or the one whose failures it tries again.
    pub origin: JobId,
    /// Up to which target all is done; `None`: it begins.
    pub cursor: Option<Key>,
    /// Whether its last target is known.
    pub surveyed: bool,
    /// How many targets there are, if that is known.
    pub total: Option<Total>,
    /// What was done so far.
    pub counts: Counts,
    /// How many rows the last chunk was to have, or, of one that is done elsewhere, the one that was in hand.
    pub chunk_rows: Option<u32>,
    /// What operators set.
    pub settings: Settings,
}

/// How many targets there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Total {
    /// So many.
    pub rows: u64,
    /// Whether they were counted, or estimated.
    pub exact: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TargetCounts))]
pub struct Counts {
    /// Targets that were applied.
    pub done: u64,
    /// Those that could not be, by their keys, as they stand in the table of failures: targets of one key fail together.
    pub failed: u64,
    /// Chunks.
    pub chunks: u64,
}

/// Which targets a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The last one; `None`: there is none at all.
    pub upper: Option<Key>,
    /// How many there are.
    pub total: Option<Total>,
}

/// What became of a survey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surveyed {
    /// The targets stand.
    Frozen(Survey),
    /// It has to wait, for this.
    Held(String),
}

/// What became of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunked {
    /// It is committed.
    Done(ChunkDone),
    /// It was not begun: the run was told to stop.
    Stopped(Verb),
}

/// A chunk that is committed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkDone {
    /// Targets that it read.
    pub rows: u32,
    /// Of these, those that failed.
    pub failed: u32,
    /// What stands now, with all chunks before.
    pub counts: Counts,
    /// Whether there are no further targets.
    pub exhausted: bool,
    /// What operators set, as of the chunk's beginning.
    pub settings: Settings,
}

/// What the targets of a chunk come to, part by part.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Targets that were looked at.
    pub targets: u32,
    /// Keys whose targets could not be applied.
    pub failures: Vec<TargetFailure>,
    /// How many targets that are: those of one key fail together, as one failure.
    pub failed: u32,
    /// Behind which key the next chunk begins.
    pub cursor: Option<Key>,
    /// Whether there are no further targets.
    pub exhausted: bool,
}

impl Parts {
    /// After so many failures a chunk is committed as far as it came, so that it does not take much longer than others.
    pub const FAILURES_MAX: usize = 8;

    /// Nothing yet, behind this key.
    #[must_use]
    pub fn behind(cursor: Option<Key>) -> Self {
        Self { cursor, ..Self::default() }
    }

    /// Keeps that a target failed that has its key alone.
    pub fn fail(&mut self, key: Key, code: String, message: String) {
        self.failures.push(TargetFailure::new(key, code, message));
        self.failed += 1;
    }

    /// How many failures there are.
    #[must_use]
    pub fn failures_count(&self) -> u32 {
        u32::try_from(self.failures.len()).unwrap_or(u32::MAX)
    }

    /// The chunk that these make, once they are committed.
    #[must_use]
    pub fn done(&self, counts: Counts, settings: Settings) -> ChunkDone {
        let (rows, failed, exhausted) = (self.targets, self.failures_count(), self.exhausted);
        ChunkDone { rows, failed, counts, exhausted, settings }
    }
}

/// What operators set while it runs; `None`: as the definition says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BulkSettings))]
pub struct Settings {
    /// Rows a second at most.
    pub rows_per_s: Option<f64>,
    /// The part of the time that chunks may take.
    pub duty: Option<f64>,
    /// How long a chunk shall take.
    pub chunk_ms: Option<u64>,
    /// The fewest rows of a chunk.
    pub chunk_rows_min: Option<u32>,
    /// The most rows of a chunk.
    pub chunk_rows_max: Option<u32>,
}

/// How long a chunk may be told to take at most, in ms.
pub const CHUNK_MS_MAX: u64 = 600_000;
/// How many rows a chunk may be told to have at most.
pub const CHUNK_ROWS_MAX: u32 = 1_000_000;

impl Settings {
    /// What chunks are to be like.
    #[must_use]
    pub fn sizing(&self, defined: Sizing) -> Sizing {
        let rows_min = self.chunk_rows_min.unwrap_or(defined.rows_min);
        Sizing {
            target: self.chunk_ms.map_or(defined.target, Duration::from_millis),
            rows_min,
            rows_max: self.chunk_rows_max.unwrap_or(defined.rows_max).max(rows_min),
        }
    }

    /// Refuses what would stop a run for good, or let it go without any bound.
    ///
    /// # Errors
    /// [`InvalidBulk::Setting`].
    pub fn check(&self) -> Result<(), InvalidBulk> {
        let refuse = |name, given: String, range| Err(InvalidBulk::Setting { name, given, range });
        if let Some(rate) = self.rows_per_s.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return refuse("rows_per_s", rate.to_string(), "a number of rows a second over 0");
        }
        if let Some(duty) = self.duty.filter(|duty| !(*duty > 0.0 && *duty <= 1.0)) {
            return refuse("duty", duty.to_string(), "over 0 and at most 1");
        }
        if let Some(ms) = self.chunk_ms.filter(|ms| !(1..=CHUNK_MS_MAX).contains(ms)) {
            return refuse("chunk_ms", ms.to_string(), "from 1 to 600000");
        }
        let (min, max) = (self.chunk_rows_min, self.chunk_rows_max);
        for (name, rows) in [("chunk_rows_min", min), ("chunk_rows_max", max)] {
            if let Some(rows) = rows.filter(|rows| !(1..=CHUNK_ROWS_MAX).contains(rows)) {
                return refuse(name, rows.to_string(), "from 1 to 1000000");
            }
        }
        match min.zip(max) {
            Some((min, max)) if min > max => {
                let given = format!("{min} with a chunk_rows_max of {max}");
                refuse("chunk_rows_min", given, "no more than that")
            }
            _ => Ok(()),
        }
    }

    /// How much of the database it may take.
    #[must_use]
    pub fn load(&self, defined: Load) -> Load {
        Load { rows_per_s: self.rows_per_s.or(defined.rows_per_s), duty: self.duty.unwrap_or(defined.duty) }
    }

    /// These, and where they say nothing, the others.
    #[must_use]
    pub fn over(self, others: Self) -> Self {
        Self {
            rows_per_s: self.rows_per_s.or(others.rows_per_s),
            duty: self.duty.or(others.duty),
            chunk_ms: self.chunk_ms.or(others.chunk_ms),
            chunk_rows_min: self.chunk_rows_min.or(others.chunk_rows_min),
            chunk_rows_max: self.chunk_rows_max.or(others.chunk_rows_max),
        }
    }
}

/// Why a run rests, and for how long it did since it last said so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// What holds it; `None`: nothing any more.
    pub throttle: Option<String>,
    /// How long it was held.
    pub held: Duration,
}

/// Chunks to be done and rolled back.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// How many rows each has.
    pub rows: u32,
    /// How many.
    pub chunks: u32,
    /// The first rows of the file that the targets come from, if they do.
    pub staged: Vec<String>,
}

/// A few chunks that were rolled back.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rehearsal {
    /// How many rows each had, and how long it took.
    pub chunks: Vec<(u32, Duration)>,
    /// How many targets there are.
    pub total: Option<Total>,
    /// The first failure, if a target failed.
    pub failure: Option<TargetFailure>,
}

/// A target that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TargetFailure {
    /// Its place in the table of failures.
    pub pos: i64,
    /// Which target.
    pub key: Key,
    /// The database's code.
    pub code: String,
    /// The database's words.
    pub message: String,
    /// When.
    pub at: Timestamp,
    /// The run that tries it again.
    pub retried_by: Option<JobId>,
}

/// A chunk in the hands of a function.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The job, and the token of its run.
    pub run: Run,
    /// The run that the targets belong to: this one, or the one whose failures it tries again.
    pub origin: JobId,
    /// The run's parameters, as JSON text.
    pub payload: &'a str,
    /// Up to which target all is done.
    pub cursor: Option<&'a Key>,
    /// The targets, each a JSON object as text, in the order of their keys.
    pub targets: &'a [Target],
}

/// One target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its key.
    pub key: Key,
    /// What the source selects of it, as JSON text.
    pub row: String,
}

/// A target that cannot be what it is: the chunk's function says so to have it found and kept as a failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct BadTarget {
    /// A stable name of what is wrong.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
}

impl TargetFailure {
    /// One that was not kept yet: its place and its time are the store's to give.
    #[must_use]
    pub fn new(key: Key, code: String, message: String) -> Self {
        Self { pos: 0, key, code, message, at: Timestamp::UNIX_EPOCH, retried_by: None }
    }
}

impl Chunk<'_> {
    /// The targets as a type.
    ///
    /// # Errors
    /// [`BadTarget`] when one does not fit.
    pub fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>, BadTarget> {
        let read = |target: &Target| {
            serde_json::from_str(&target.row)
                .map_err(|error| BadTarget { code: "target".to_owned(), message: error.to_string() })
        };
        self.targets.iter().map(read).collect()
    }

    /// A job for each target, keyed by the run and the target.
    ///
    /// # Errors
    /// [`BadTarget`] when a target is not JSON.
    pub fn child_jobs(&self, template: &NewJob) -> Result<Vec<NewJob>, BadTarget> {
        let child = |target: &Target| {
            let job = NewJob::from_json(template.kind.clone(), target.row.clone())
                .map_err(|error| BadTarget { code: "target".to_owned(), message: error.to_string() })?;
            let key = serde_json::Value::from(target.key.0.clone());
            Ok(NewJob {
                queue: template.queue.clone(),
                priority: template.priority,
                group: template.group.clone(),
                max_attempts: template.max_attempts,
                timeout: template.timeout,
                key: Some(format!("{}:{key}", self.origin)),
                ..job
            })
        };
        self.targets.iter().map(child).collect()
    }
}

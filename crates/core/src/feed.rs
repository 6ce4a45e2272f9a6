//! Live feed of state changes of jobs and batches.
//!
//! The feed is read from the history tables. A client that reconnects resumes at its last position without gaps or duplicates.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::ident::{BatchId, JobId, WorkerId};
use crate::state::JobState;
use crate::transition::Verb;

/// The maximum length of a position's text, in bytes. A few hundred transactions in flight need that much.
const POSITION_BYTES_MAX: usize = 16 * 1024;

/// The maximum number of changes between a position and now; the feed does not resume from older positions.
pub const CHANGES_BEHIND_MAX: u32 = 200_000;

/// A position in the feed. Its text is opaque: only the store that issued it interprets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition(String);

impl FeedPosition {
    /// Creates a position from the store's text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for FeedPosition {
    type Err = InvalidFeed;

    fn from_str(text: &str) -> Result<Self, InvalidFeed> {
        let usable = text.len() <= POSITION_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        if usable { Ok(Self(text.to_owned())) } else { Err(InvalidFeed::NotAPosition) }
    }
}

/// A position that the feed cannot resume from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidFeed {
    /// The text is not a position that the feed issued.
    #[error("this is not a position of the feed; omit it to begin with new changes")]
    NotAPosition,
    /// The position was issued by another store, or by this store before it was restored from a backup.
    #[error(
        "the position is from another store, or from this one before it was restored; omit it to begin with new changes"
    )]
    Foreign,
    /// More than [`CHANGES_BEHIND_MAX`] changes have happened since; it is faster to list the current state.
    #[error(
        "more than {CHANGES_BEHIND_MAX} changes have happened since this position; list the current state, and begin with new changes"
    )]
    TooFarBehind,
}

/// A change in the feed.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Change {
    /// A state change of a job.
    Job(JobChange),
    /// A state change of a batch, or of a task that had no job at that time.
    Batch(BatchChange),
}

/// A state change of a job. The details and the reason are in the job's history at this position.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobChange {
    /// Its position in the histories of jobs.
    pub pos: i64,
    /// The job.
    pub job: JobId,
    /// Its kind; none if the job no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its queue; none if the job no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The batch of which the job is a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchId>,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
    /// The operation.
    pub verb: Verb,
    /// The state before; none at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<JobState>,
    /// The state after.
    pub to: JobState,
    /// The attempt that it belongs to; 0 before the first claim.
    pub attempt: u32,
    /// The worker that made the change, or that lost the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// When the job may be claimed next, if the change sets this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// The stable code of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// A state change of a batch, or of a task of it that had no job at that time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchChange {
    /// Its position in the histories of batches.
    pub pos: i64,
    /// The batch.
    pub batch: BatchId,
    /// The name of its DAG; none if the batch no longer exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// The number of the task; none for the batch itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
    /// The operation.
    pub verb: Verb,
    /// The state before; none at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state after.
    pub to: String,
}

/// Counts of recent starts and ends of attempts: less detail than the feed, at a fraction of its cost.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Counts by second and verb, in no order. Only [`Verb::Claim`], [`Verb::Succeed`], [`Verb::Retry`] and [`Verb::Fail`] are counted.
    pub counted: Vec<Counted>,
    /// The position after the last counted change.
    pub end: FeedPosition,
}

/// How often a verb was applied to jobs within one second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The second, on the store's clock, since 1970.
    pub at_s: i64,
    /// The verb.
    pub verb: Verb,
    /// The number of times.
    pub times: u64,
    /// A random sample of the time the jobs had spent in the previous state, in ms: for a claim the waiting time, for a success the
    /// run time. Empty for other verbs.
    pub took_ms: Vec<u64>,
}

/// The changes that follow a position.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// Each change with the position after it. The changes of one job, and of one batch, are in order.
    pub changes: Vec<(FeedPosition, Change)>,
    /// The position after the page.
    pub end: FeedPosition,
    /// Whether more changes exist than fit on the page.
    pub more: bool,
}

//! The feed: what happens to jobs and batches, as it happens, for those who watch.
//!
//! It is read from the histories, so that who comes back after a pause goes on where it was: nothing is missing, nothing comes twice.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::ident::{BatchId, JobId, WorkerId};
use crate::state::JobState;
use crate::transition::Verb;

/// The longest text of a position: a few hundred transactions in flight take so much.
const POSITION_BYTES_MAX: usize = 16 * 1024;

/// How many changes may lie between a position and now for the feed to go on from there.
pub const CHANGES_BEHIND_MAX: u32 = 200_000;

/// A place in the feed. Its text is the store's own affair, and none other's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedPosition(String);

impl FeedPosition {
    /// A position in the store's own words.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Its text.
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

/// A position that the feed cannot go on from.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidFeed {
    /// It is not one that the feed gave out.
    #[error("this is no position of the feed; leave it out to begin with what happens now")]
    NotAPosition,
    /// It is one of another store, or of this one before it was restored.
    #[error(
        "the position is that of another store, or of this one before it was restored; leave it out to begin with what happens now"
    )]
    Foreign,
    /// So much has happened since that it is quicker to look at what there is.
    #[error(
        "more than {CHANGES_BEHIND_MAX} changes have happened since; look at what there is and begin with what happens now"
    )]
    TooFarBehind,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Change {
    /// To a job.
    Job(JobChange),
    /// To a batch, or to a task of it that had no job then.
    Batch(BatchChange),
}

/// A state change of a job. What it was about, and why, stands in the job's history at this place.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobChange {
    /// Its place in the histories of jobs.
    pub pos: i64,
    /// Which job.
    pub job: JobId,
    /// Its kind; none when the job is gone by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its queue; none when the job is gone by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The batch that it is a task of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchId>,
    /// When, on the store's clock.
    pub at: Timestamp,
    /// What happened.
    pub verb: Verb,
    /// The state before; none at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<JobState>,
    /// The state after.
    pub to: JobState,
    /// The attempt it belongs to; 0 before the first claim.
    pub attempt: u32,
    /// The worker that made it or lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// When the job may be claimed next, where the change says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// A stable name of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
}

/// A state change of a batch, or of a task of it that had no job then.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchChange {
    /// Its place in the histories of batches.
    pub pos: i64,
    /// Which batch.
    pub batch: BatchId,
    /// The name of its DAG; none when the batch is gone by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dag: Option<String>,
    /// The number of the task; none for the batch itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    /// When, on the store's clock.
    pub at: Timestamp,
    /// What happened.
    pub verb: Verb,
    /// The state before; none at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The state after.
    pub to: String,
}

/// What was begun and ended lately, in numbers: less than the feed tells, at a fraction of what it costs.
#[derive(Clone, Debug)]
pub struct Activity {
    /// By second and verb, in no order; [`Verb::Claim`], [`Verb::Succeed`], [`Verb::Retry`] and [`Verb::Fail`] alone.
    pub counted: Vec<Counted>,
    /// The position behind all that was counted.
    pub end: FeedPosition,
}

/// How often something happened to jobs within a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The second, on the store's clock, since 1970.
    pub at_s: i64,
    /// What happened.
    pub verb: Verb,
    /// How often.
    pub times: u64,
    /// How long the jobs had been in the state before, in ms, of some of them, picked by chance: a claim ends a wait, a success a run.
    /// Nothing for other verbs.
    pub took_ms: Vec<u64>,
}

/// What follows a position.
#[derive(Clone, Debug)]
pub struct FeedPage {
    /// Each change with the position behind it: those of one job, and of one batch, in their order.
    pub changes: Vec<(FeedPosition, Change)>,
    /// The position behind the page.
    pub end: FeedPosition,
    /// Whether the page was too small for what there is.
    pub more: bool,
}

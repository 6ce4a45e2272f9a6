//! What operators see of bulk jobs.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::definition::Effects;
use super::key::Key;
use super::run::{Counts, Settings, Total};
use crate::ident::JobId;
use crate::state::JobState;

/// Which bulk jobs to list.
#[derive(Clone, Debug)]
pub struct BulkFilter {
    /// Only this job.
    pub job: Option<JobId>,
    /// Only those of this definition.
    pub name: Option<String>,
    /// Only in this state.
    pub state: Option<JobState>,
    /// Only of this group.
    pub group: Option<String>,
    /// Only with this label.
    pub r#type: Option<String>,
    /// Only with this label.
    pub category: Option<String>,
    /// Only those that are over and older than this one: the last of the page before.
    pub before: Option<JobId>,
    /// At most so many.
    pub limit: u32,
}

impl Default for BulkFilter {
    fn default() -> Self {
        Self {
            job: None,
            name: None,
            state: None,
            group: None,
            r#type: None,
            category: None,
            before: None,
            limit: 50,
        }
    }
}

/// A file whose rows are the targets of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StagedFile {
    /// Its name for people.
    pub name: String,
    /// How many rows were staged.
    pub rows: u64,
}

/// A bulk job on one row: what runs, how far it is, and what holds it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkView {
    /// The job.
    pub id: JobId,
    /// Which definition.
    pub name: String,
    /// Of the definition's labels, what comes out of it.
    pub r#type: Option<String>,
    /// Of the definition's labels, what it is for.
    pub category: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its state.
    pub state: JobState,
    /// What it was asked, if it runs and is to stop.
    pub stopping: Option<crate::transition::Verb>,
    /// Which of its group goes first.
    pub priority: u8,
    /// Its place among those that wait for the group, from 1: who is next.
    pub next: Option<u32>,
    /// When it may start at the earliest, if it waits.
    pub due_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its first chunk began.
    pub started_at: Option<Timestamp>,
    /// When it last moved.
    pub updated_at: Option<Timestamp>,
    /// When it was done.
    pub ended_at: Option<Timestamp>,
    /// Up to which target all is done.
    pub cursor: Option<Key>,
    /// Its last target.
    pub upper: Option<Key>,
    /// How many targets there are.
    pub total: Option<Total>,
    /// What was done.
    #[serde(flatten)]
    pub counts: Counts,
    /// How many rows a chunk has now.
    pub chunk_rows: Option<u32>,
    /// How long the last chunk took, in ms.
    pub chunk_ms: Option<u64>,
    /// How long all chunks took, in ms.
    pub busy_ms: u64,
    /// How long it was held by throttles, in ms.
    pub held_ms: u64,
    /// What holds it now.
    pub throttle: Option<String>,
    /// Since when.
    pub throttle_since: Option<Timestamp>,
    /// What operators set.
    pub settings: Settings,
    /// What a crash means for its targets.
    pub effects: Option<Effects>,
    /// The file that its targets come from, if they do.
    pub file: Option<StagedFile>,
    /// Where its targets are, when that is another database than the store's.
    pub place: Option<String>,
    /// The run whose failures it tries again.
    pub retry_of: Option<JobId>,
}

impl BulkView {
    /// Whether it neither is under way nor waits for its turn.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        use JobState::{Blocked, Pending, RetryWait, Running};
        !matches!(self.state, Running | Pending | RetryWait | Blocked)
    }

    /// Targets it is through with.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.counts.done + self.counts.failed
    }

    /// How much of it is done, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let total = self.total?.rows.max(self.passed());
        Some(if total == 0 { 1.0 } else { self.passed() as f64 / total as f64 })
    }

    /// Rows a second while chunks ran.
    #[must_use]
    pub fn rows_per_busy_s(&self) -> Option<f64> {
        let busy = Duration::from_millis(self.busy_ms).as_secs_f64();
        (busy > 0.0).then(|| self.passed() as f64 / busy)
    }
}

//! Rows of bulk jobs as shown to operators.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::definition::Effects;
use super::key::Key;
use super::run::{Counts, Total};
use super::settings::Settings;
use crate::ident::JobId;
use crate::state::JobState;

/// A filter for bulk jobs.
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
    /// Only with this type label.
    pub r#type: Option<String>,
    /// Only with this category label.
    pub category: Option<String>,
    /// Only finished runs that are older than this one: the last run of the previous page.
    pub before: Option<JobId>,
    /// The maximum number of results.
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
    /// Its display name.
    pub name: String,
    /// The number of rows that were staged.
    pub rows: u64,
}

/// A bulk job in a list: its state, its progress and its throttle.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkView {
    /// The id of its job.
    pub id: JobId,
    /// The name of its definition.
    pub name: String,
    /// The `type` label of its definition: what it produces.
    pub r#type: Option<String>,
    /// The `category` label of its definition: its purpose.
    pub category: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// Its state.
    pub state: JobState,
    /// The operation that is stopping it, if it runs and was asked to stop.
    pub stopping: Option<crate::transition::Verb>,
    /// Its priority within its group.
    pub priority: u8,
    /// Its position among the runs that wait for the group, from 1.
    pub next: Option<u32>,
    /// The earliest time at which it may start, if it waits.
    pub due_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its first chunk began.
    pub started_at: Option<Timestamp>,
    /// When its progress last changed.
    pub updated_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// The key up to which all targets were processed.
    pub cursor: Option<Key>,
    /// The key of its last target.
    pub upper: Option<Key>,
    /// The total number of targets.
    pub total: Option<Total>,
    /// The numbers of processed targets and chunks.
    #[serde(flatten)]
    pub counts: Counts,
    /// The current number of rows per chunk.
    pub chunk_rows: Option<u32>,
    /// The duration of the last chunk, in ms.
    pub chunk_ms: Option<u64>,
    /// The total duration of all chunks, in ms.
    pub busy_ms: u64,
    /// The total time for which throttles delayed it, in ms.
    pub held_ms: u64,
    /// The throttle that delays it now.
    pub throttle: Option<String>,
    /// When that throttle began to delay it.
    pub throttle_since: Option<Timestamp>,
    /// The settings of operators.
    pub settings: Settings,
    /// What a crash means for its targets.
    pub effects: Option<Effects>,
    /// The file that its targets were read from, if any.
    pub file: Option<StagedFile>,
    /// The name of the database of its targets, if it is not the store's.
    pub place: Option<String>,
    /// The run whose failures it retries.
    pub retry_of: Option<JobId>,
}

impl BulkView {
    /// Returns whether the run is neither running nor waiting to run.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// Returns the number of processed targets, including failed ones.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.counts.done + self.counts.failed
    }

    /// Returns the processed share, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let total = self.total?.rows.max(self.passed());
        Some(if total == 0 { 1.0 } else { self.passed() as f64 / total as f64 })
    }

    /// Returns the rows per second of chunk time, without pauses.
    #[must_use]
    pub fn rows_per_busy_s(&self) -> Option<f64> {
        let busy = Duration::from_millis(self.busy_ms).as_secs_f64();
        (busy > 0.0).then(|| self.passed() as f64 / busy)
    }
}

//! Store port for job search.

use async_trait::async_trait;

use super::StoreResult;
use crate::history::HistoryEntry;
use crate::ident::JobId;
use crate::listing::{JobsFound, LastFailure};
use crate::search::JobFilter;

/// Search of jobs by content.
#[async_trait]
pub trait SearchStore: Send + Sync {
    /// Reads at most [`SCAN_MAX`](crate::search::SCAN_MAX) jobs, newest first, and returns the matching ones.
    async fn search_jobs(&self, filter: &JobFilter) -> StoreResult<JobsFound>;

    /// Returns the last failure of each of these jobs that has one, in no order. Reads only these jobs.
    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>>;

    /// Returns the last known state change of each of these jobs that has one, in no order. Reads only these jobs.
    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>>;
}

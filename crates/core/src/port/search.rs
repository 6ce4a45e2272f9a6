//! The port of those who look for jobs.

use async_trait::async_trait;

use super::StoreResult;
use crate::history::HistoryEntry;
use crate::ident::JobId;
use crate::search::{JobSearch, JobsFound, LastFailure};

/// Finds jobs by what is in them.
#[async_trait]
pub trait SearchStore: Send + Sync {
    /// Looks at no more than [`SCAN_MAX`](crate::search::SCAN_MAX) jobs, newest first, and answers those that fit.
    async fn search_jobs(&self, search: &JobSearch) -> StoreResult<JobsFound>;

    /// The last failure of each of these jobs that has failed once, in no order. Reads these jobs and nothing else.
    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>>;

    /// The last state change of each of these jobs of which one is still known, in no order. Reads these jobs and nothing else.
    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>>;
}

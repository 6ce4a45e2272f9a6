//! The jobs of an action by filter.

use thiserror::Error;

use crate::error::StoreError;
use crate::ident::JobId;
use crate::port::SearchStore;
use crate::search::JobFilter;
use crate::state::JobState;

/// The maximum number of jobs that one action changes.
pub const JOBS_MAX: usize = 100_000;
/// The number of jobs read by one query.
const PAGE: u32 = 1_000;

/// The error for a filter whose jobs cannot be changed together.
#[derive(Debug, Error)]
pub enum SelectError {
    /// The filter matches more than [`JOBS_MAX`] jobs.
    #[error(
        "more than {JOBS_MAX} jobs match, the maximum of one action; narrow the filter, for example by a time"
    )]
    TooMany,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns all matching jobs with their states, oldest first. The limit of the filter is ignored.
///
/// # Errors
/// [`SelectError`].
pub async fn select<S>(filter: JobFilter, store: &S) -> Result<Vec<(JobId, JobState)>, SelectError>
where
    S: SearchStore + ?Sized,
{
    let (mut filter, mut jobs) = (JobFilter { limit: PAGE, ..filter }, Vec::new());
    loop {
        let found = store.search_jobs(&filter).await?;
        jobs.extend(found.rows.iter().map(|row| (row.id, row.state)));
        if jobs.len() > JOBS_MAX {
            return Err(SelectError::TooMany);
        }
        match found.next {
            Some(next) => filter.before = Some(next),
            None => break,
        }
    }
    jobs.reverse();
    Ok(jobs)
}

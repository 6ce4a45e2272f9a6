//! Store port for callers that enqueue jobs without their own transaction.

use async_trait::async_trait;

use super::StoreResult;
use crate::error::StoreError;
use crate::job::{Enqueued, KeyHolder, NewJob};

/// Accepts jobs, each call in a separate transaction.
#[async_trait]
pub trait IntakeStore: Send + Sync {
    /// Stores the jobs, all or none, and returns the results in their order. For a job whose key exists, returns the
    /// job that has the key and changes nothing. When this returns `Ok`, the jobs are durable.
    /// [`TooLarge`](crate::error::StoreError::TooLarge) when there are more jobs than one transaction may process; some
    /// stores have such a limit.
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>>;

    /// Stores the jobs like [`enqueue_many`](Self::enqueue_many), unless an open transaction holds what they need, such as a
    /// key. Then nothing is stored, and the result is `None`. Stores without such locks store the jobs.
    async fn enqueue_unless_held(&self, jobs: &[NewJob]) -> StoreResult<Option<Vec<Enqueued>>> {
        self.enqueue_many(jobs).await.map(Some)
    }

    /// Stores the jobs like [`enqueue_many`](Self::enqueue_many). Of those at the positions `together`, either all keys must exist or none;
    /// otherwise nothing is stored, and the error is [`PartlyStored`](crate::error::StoreError::PartlyStored).
    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>>;

    /// Returns the jobs that have the keys of these, in their order; `None` for unused keys. Includes jobs that were deleted and of which
    /// only the key remains.
    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>>;

    /// Stores one job, like [`enqueue_many`](Self::enqueue_many).
    async fn enqueue(&self, job: &NewJob) -> StoreResult<Enqueued> {
        let enqueued = self.enqueue_many(std::slice::from_ref(job)).await?;
        enqueued.first().copied().ok_or(StoreError::NoSuchJob(job.id))
    }
}

/// Returns an error if some of the jobs at the positions `together` existed before a call and others did not.
///
/// # Errors
/// [`StoreError::PartlyStored`]; the caller must roll back.
pub fn check_together(made: &[Enqueued], together: &[usize]) -> Result<(), StoreError> {
    let made = || together.iter().filter_map(|&index| made.get(index));
    let stored = made().filter(|made| made.duplicate).count();
    match made().find(|made| made.duplicate) {
        Some(&Enqueued { job, .. }) if stored < together.len() => {
            Err(StoreError::PartlyStored { stored, given: together.len(), job })
        }
        _ => Ok(()),
    }
}

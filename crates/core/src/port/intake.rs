//! What callers need who have no transaction of their own to join.

use async_trait::async_trait;

use super::StoreResult;
use crate::error::StoreError;
use crate::job::{Enqueued, KeyHolder, NewJob};

/// Accepts jobs, each call in a transaction of its own.
#[async_trait]
pub trait IntakeStore: Send + Sync {
    /// Stores the jobs, all or none, and answers in their order. A job whose key exists is answered with
    /// the job that has it and changes nothing. When this returns `Ok`, the jobs are durable.
    /// [`TooLarge`](crate::error::StoreError::TooLarge) when there are more than one transaction may take, which some
    /// stores bound.
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>>;

    /// The jobs that hold the keys of these, in their order; `None` where nobody does. Finds, too, those that are forgotten but for their
    /// key.
    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>>;

    /// Stores one job, as [`enqueue_many`](Self::enqueue_many) does.
    async fn enqueue(&self, job: &NewJob) -> StoreResult<Enqueued> {
        let enqueued = self.enqueue_many(std::slice::from_ref(job)).await?;
        enqueued.first().copied().ok_or(StoreError::NoSuchJob(job.id))
    }
}

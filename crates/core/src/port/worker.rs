//! Store port for workers.

use std::collections::HashMap;

use async_trait::async_trait;

use super::{StoreResult, WakeStream};
use crate::claim::{Claim, ClaimedJob};
use crate::finish::{Finish, Finished};
use crate::ident::{JobId, WorkerId};
use crate::worker::{Heartbeat, NewWorker, Report};

/// Assigns jobs under leases and records their ends. Every write to a running job carries its run token.
#[async_trait]
pub trait WorkerStore: Send + Sync {
    /// Registers a process incarnation and starts its lease.
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId>;

    /// Renews the lease. [`WorkerLost`](crate::error::StoreError::WorkerLost) when it had expired.
    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat>;

    /// Claims up to `limit` ready jobs: higher priorities first; within a priority the kinds alternate, and each kind
    /// is ordered by due time. [`WorkerLost`](crate::error::StoreError::WorkerLost) when the lease had expired.
    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>>;

    /// Returns the jobs that this worker holds according to the store.
    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>>;

    /// Ends runs, and returns the results in their order. All in one transaction, except when an open transaction of another program holds
    /// some of them: those are not stored, and get the result [`Held`](Finished::Held). When it returns, the others are durable.
    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>>;

    /// Stores progress and checkpoints of runs; returns in their order whether each was accepted (`false`: the token is
    /// outdated, and nothing was changed).
    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>>;

    /// Returns the last checkpoints of those jobs that have one, as JSON text.
    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>>;

    /// Returns the last checkpoint of a job.
    async fn checkpoint(&self, job: JobId) -> StoreResult<Option<String>> {
        Ok(self.checkpoints(&[job]).await?.remove(&job))
    }

    /// Ends a worker that holds no jobs.
    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()>;

    /// Returns a stream of hints that a query is worthwhile. Drop the stream to end it.
    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>>;
}

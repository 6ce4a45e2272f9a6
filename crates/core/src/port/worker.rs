//! What a worker needs.

use std::collections::HashMap;

use async_trait::async_trait;

use super::{StoreResult, WakeStream};
use crate::claim::{Claim, ClaimedJob};
use crate::finish::{Finish, Finished};
use crate::ident::{JobId, WorkerId};
use crate::worker::{Heartbeat, NewWorker, Report};

/// Hands out jobs under leases and takes their ends. Every write of a running job carries its run token.
#[async_trait]
pub trait WorkerStore: Send + Sync {
    /// Registers a process incarnation and starts its lease.
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId>;

    /// Renews the lease. [`WorkerLost`](crate::error::StoreError::WorkerLost) when it had run out.
    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat>;

    /// Takes up to `limit` ready jobs: higher priorities first; within a priority the kinds take turns, and
    /// each kind goes by due time. [`WorkerLost`](crate::error::StoreError::WorkerLost) when the lease ran out.
    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>>;

    /// What the store says this worker holds, whatever the worker remembers.
    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>>;

    /// Ends runs, all in one transaction, and answers in their order. An answer means it is durable.
    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>>;

    /// Stores progress and checkpoints of runs; answers in their order whether each was accepted
    /// (`false`: fenced, nothing was changed).
    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>>;

    /// The last checkpoints of jobs, as JSON text, of those that have one.
    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>>;

    /// The last checkpoint of a job.
    async fn checkpoint(&self, job: JobId) -> StoreResult<Option<String>> {
        Ok(self.checkpoints(&[job]).await?.remove(&job))
    }

    /// Ends a worker that holds nothing any more.
    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()>;

    /// Hints that looking now is worth it. Dropping the stream ends it.
    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>>;
}

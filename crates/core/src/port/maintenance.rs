//! Store port for maintenance: recovery and retention. Any number of processes may call it at the same time.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::ident::JobId;
use crate::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use crate::retry::RetryPolicy;
use crate::worker::Rescued;

/// The backoff of a kind after this attempt failed: `(kind, attempt, policy) → delay`. `policy` is the one that the worker of the
/// attempt registered for the kind, if any.
pub type RetryDelay<'a> = &'a (dyn Fn(&str, u32, Option<&RetryPolicy>) -> Duration + Send + Sync);

/// Recovery and maintenance.
#[async_trait]
pub trait MaintenanceStore: Send + Sync {
    /// Declares workers with an expired lease dead and rescues their jobs, one worker per transaction and at most `limit` jobs per
    /// call. A crash uses up an attempt; a job without attempts left fails. The backoff is the same as on its own worker, whichever
    /// process rescues the job.
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>>;

    /// Ends running jobs that were asked to stop and whose grace time has passed; their runs are fenced.
    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>>;

    /// Gives free group slots to waiting jobs, as far as the rates of the groups allow; returns the number given. Slots
    /// are normally passed on where they become free. This call finds those that a job missed because its enqueue was
    /// not committed yet.
    async fn fill_groups(&self) -> StoreResult<u64>;

    /// Checks whether the store's server was promoted or restored from a backup since the last check, in which case its latest commits
    /// may be missing. Returns the new timeline number, to one caller only. Always `None` on SQLite.
    async fn notice_promotion(&self) -> StoreResult<Option<u32>>;

    /// Returns whether old data may be deleted by the clock: not for ten minutes after it jumped. Ask before each deletion that nobody
    /// asked for.
    async fn may_delete(&self) -> StoreResult<bool>;

    /// Deletes what the policy no longer keeps: at most one batch of each type, each in a transaction that deletes jobs
    /// completely. Jobs that are being changed are skipped, and later changes to a deleted job do not find it. Does
    /// nothing when it is another process's turn.
    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned>;

    /// Counts the rows that can be deleted now. Reads every row that it counts.
    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable>;
}

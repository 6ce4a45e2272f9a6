//! What keeps a store healthy while workers come and go. Any number of processes may call these at once.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::ident::JobId;
use crate::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use crate::retry::RetryPolicy;
use crate::worker::Rescued;

/// How long a job of this kind waits after this attempt failed: `(kind, attempt, policy) → delay`. The policy is what the worker that
/// ran it had for its kind, if it told.
pub type RetryDelay<'a> = &'a (dyn Fn(&str, u32, Option<&RetryPolicy>) -> Duration + Send + Sync);

/// Recovery and upkeep.
#[async_trait]
pub trait MaintenanceStore: Send + Sync {
    /// Declares workers dead whose lease ran out and takes back what they held, a worker a transaction, at
    /// most `limit` jobs a call. A crash spends an attempt; a job whose attempts are spent fails. Whoever rescues a job, it waits as
    /// its own worker would have let it.
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>>;

    /// Ends running jobs that were asked to stop and whose grace time is over; their runs are fenced.
    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>>;

    /// Gives free group slots to jobs that wait for them, as far as the rates of the groups allow; answers how
    /// many. Slots are handed on where they become free; this finds those that a job missed because its
    /// enqueue was not committed yet.
    async fn fill_groups(&self) -> StoreResult<u64>;

    /// Looks whether the server of the store was promoted or restored from a backup since anybody looked, so that its last commits before
    /// can be missing. Returns the number of its timeline, to one caller only. Never so on SQLite.
    async fn notice_promotion(&self) -> StoreResult<Option<u32>>;

    /// Forgets what the policy no longer keeps: of each sort at most one batch, in a transaction of its own that
    /// leaves no part of a job behind. A job that is being changed is passed over, and a change that comes too
    /// late finds no job. Does nothing when it is another process's turn.
    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned>;

    /// How much there is to forget now. Reads all that it counts.
    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable>;
}

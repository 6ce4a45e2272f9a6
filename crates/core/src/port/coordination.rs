//! Ports for a helper beside the store, such as Redis. It carries hints only; correctness never depends on it.

use std::time::Duration;

use async_trait::async_trait;

use super::WakeStream;
use crate::ident::{EventId, JobId, Run, WorkerId};
use crate::transition::Verb;

/// The health of a helper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoordinationHealth {
    /// Whether it responds.
    pub up: bool,
    /// The number of calls that failed or timed out since it was created.
    pub failures: u64,
}

/// The state of an event in a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// Unknown, or the helper is unavailable: the inbox decides. The helper now records that the event is being processed.
    Nothing,
    /// Another process is processing it.
    Processing,
    /// It was processed, and the transaction is committed.
    Done,
}

/// A cache in front of the inbox that records which events a consumer has processed, so that most duplicates need no transaction.
/// The inbox is authoritative: it detects every duplicate that the cache misses. Calls do not fail. Each returns within a bounded
/// time, and immediately while the helper does not respond.
#[async_trait]
pub trait InboxCache: Send + Sync {
    /// Looks up an event before it is processed.
    async fn recall(&self, consumer: &str, event: EventId) -> Remembered;

    /// Records that the event was processed. Call it only after the commit.
    async fn remember(&self, consumer: &str, event: EventId);

    /// Records that the event was not processed after all, so that the next receiver need not wait.
    async fn forget(&self, consumer: &str, event: EventId);
}

/// A helper beside the store, such as Redis. The store is authoritative: everything here may be lost, delayed,
/// duplicated or wrong, and the worst consequence is a delay of about a second. Calls do not fail. Each returns within
/// a bounded time, and immediately while the helper does not respond.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// Publishes for operators that this worker is alive, valid for `ttl`. A missing heartbeat here never makes a worker dead.
    async fn beat(&self, worker: WorkerId, ttl: Duration);

    /// Removes that entry: the worker has left.
    async fn leave(&self, worker: WorkerId);

    /// Marks jobs as being run by these runs, for `ttl`, unless a newer run holds the mark. Returns whether a stop of
    /// one of the jobs was requested, so that the caller should query the store.
    async fn lock(&self, runs: &[Run], ttl: Duration) -> bool;

    /// Removes the marks of these runs.
    async fn unlock(&self, runs: &[Run]);

    /// Returns whether an older run of the job still holds its mark, although the store has assigned the job to this run.
    async fn is_held_by_older(&self, run: Run) -> bool;

    /// Notifies workers that a stop of a job was requested in the store, with [`Verb::Cancel`] or [`Verb::Abort`].
    /// Returns whether the notification was sent.
    async fn flag_stop(&self, job: JobId, verb: Verb) -> bool;

    /// Notifies idle workers that something may have become ready. Call it after the commit. Returns whether the notification was sent.
    async fn announce_ready(&self) -> bool;

    /// Returns the stream of hints from other processes, which are reasons to query the store. After an outage it
    /// yields one hint of each kind, for missed ones.
    fn hints(&self) -> Box<dyn WakeStream>;

    /// Returns its health.
    fn health(&self) -> CoordinationHealth;
}

//! What a helper beside the store may carry: hints, and nothing that decides.

use std::time::Duration;

use async_trait::async_trait;

use super::WakeStream;
use crate::ident::{EventId, JobId, Run, WorkerId};
use crate::transition::Verb;

/// How a helper is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoordinationHealth {
    /// Whether it answers.
    pub up: bool,
    /// How many calls failed or were not answered in time, since it was made.
    pub failures: u64,
}

/// What a helper remembers of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing, or it cannot be asked: the inbox knows. It remembers now that the event is being taken in.
    Nothing,
    /// Somebody is taking it in.
    Processing,
    /// It was taken in, and that is committed.
    Done,
}

/// Remembers beside the inbox which events a consumer has taken in, so that most that come again cost no transaction. The inbox is
/// the truth: what is forgotten here is found there. No call fails; each returns within a bounded time, and at once while the
/// helper does not answer.
#[async_trait]
pub trait InboxCache: Send + Sync {
    /// Asks before an event is taken in.
    async fn recall(&self, consumer: &str, event: EventId) -> Remembered;

    /// It is taken in. To be called after the commit only.
    async fn remember(&self, consumer: &str, event: EventId);

    /// It was not taken in after all: whoever is brought it next need not wait.
    async fn forget(&self, consumer: &str, event: EventId);
}

/// A helper beside the store, such as Redis. The store is the truth: everything here may be lost, late, doubled or
/// made up, and the worst of it is a wait of about a second. So no call fails; each returns within a bounded time,
/// and at once while the helper does not answer.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// Tells people that this worker lives, for as long as `ttl`. No worker is ever declared dead for the want of it.
    async fn beat(&self, worker: WorkerId, ttl: Duration);

    /// Takes the word back: the worker has left.
    async fn leave(&self, worker: WorkerId);

    /// Marks jobs as being run by these runs, for as long as `ttl`, unless a newer run holds the mark. Answers
    /// whether somebody asked one of the jobs to stop, so that asking the store is worth it.
    async fn lock(&self, runs: &[Run], ttl: Duration) -> bool;

    /// Takes back the marks of these runs.
    async fn unlock(&self, runs: &[Run]);

    /// Whether an older run of the job still holds its mark, though the store has given the job to this one.
    async fn is_held_by_older(&self, run: Run) -> bool;

    /// Tells workers that the store has been asked to stop a job with [`Verb::Cancel`] or [`Verb::Abort`]. Answers
    /// whether that was told.
    async fn flag_stop(&self, job: JobId, verb: Verb) -> bool;

    /// Tells idle workers that something may have become ready; to be called after the commit. Answers whether
    /// that was told.
    async fn announce_ready(&self) -> bool;

    /// What others tell: reasons to ask the store. After an outage there is one of each, for what was missed.
    fn hints(&self) -> Box<dyn WakeStream>;

    /// How it is.
    fn health(&self) -> CoordinationHealth;
}

//! What operators need.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::StoreResult;
use crate::audit::check_reason;
use crate::duration::check_wait;
use crate::error::StoreError;
use crate::history::HistoryEntry;
use crate::ident::JobId;
use crate::listing::{JobFilter, JobRow, JobView, QueueKinds, QueueView};
use crate::state::JobState;
use crate::transition::Verb;
use crate::worker::WorkerView;

/// Something an operator does to one job.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What: release, cancel, skip, mark, abort, retry now, resume, rerun or snooze.
    pub verb: Verb,
    /// How long a running job gets to stop by itself before it is fenced off (cancel, abort).
    pub grace: Duration,
    /// How long from now it may not be claimed (snooze, retry now, resume, rerun).
    pub delay: Duration,
    /// Why; stands in the history.
    pub note: Option<String>,
}

impl Operation {
    /// The verb at once, without a note.
    #[must_use]
    pub const fn new(verb: Verb) -> Self {
        Self { verb, grace: Duration::ZERO, delay: Duration::ZERO, note: None }
    }

    /// With this time for a running job to stop by itself.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Not to be claimed before this has passed.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// With the reason.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Checks its waits and its reason.
    ///
    /// # Errors
    /// [`StoreError::Invalid`].
    pub fn check(&self) -> StoreResult<()> {
        check_wait("grace_ms", self.grace)
            .and_then(|()| check_wait("delay_ms", self.delay))
            .and_then(|()| check_reason(self.note.as_deref()))
            .map_err(|invalid| StoreError::Invalid { index: 0, invalid })
    }
}

/// What became of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operated {
    /// The job is in this state now.
    Done(JobState),
    /// The job runs; its worker was asked to stop it, and it is fenced off when the grace time is over.
    StopRequested,
}

/// Looking and intervening.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Does something to one job, in one transaction with its history.
    /// [`Illegal`](crate::error::StoreError::Illegal) when its state does not allow it.
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated>;

    /// Jobs, newest first.
    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>>;

    /// One job, with why it does not run now.
    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>>;

    /// Every state change of a job, oldest first.
    async fn history(&self, job: JobId) -> StoreResult<Vec<HistoryEntry>>;

    /// Every queue that has live jobs, is served or is paused.
    async fn queues(&self) -> StoreResult<Vec<QueueView>>;

    /// The same by kind: the kinds that have the most jobs, at most so many, and all others as one.
    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>>;

    /// Stops claims from a queue, or lets them go on. Answers whether that changed anything.
    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool>;

    /// Workers: the living, and those that ended within the last day.
    async fn workers(&self) -> StoreResult<Vec<WorkerView>>;

    /// How many jobs are in each state. Counts of live states are exact; ended ones may be counted by a scan.
    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>>;
}

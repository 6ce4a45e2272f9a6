//! Store port for operators: inspection and control of jobs, queues and workers.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{JobEdit, StoreResult};
use crate::actions::trimmed;
use crate::audit::check_reason;
use crate::duration::check_wait;
use crate::error::StoreError;
use crate::history::{HistoryEntry, HistoryPart};
use crate::ident::JobId;
use crate::listing::{JobRow, JobView, QueueKinds, QueueView};
use crate::search::JobFilter;
use crate::state::JobState;
use crate::transition::Verb;
use crate::worker::WorkerView;

/// An operation on one job.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The verb, one of those of operators.
    pub verb: Verb,
    /// How long a running job has to stop on its own before it is fenced (cancel, abort).
    pub grace: Duration,
    /// The delay before it may be claimed (snooze, retry now, resume, rerun).
    pub delay: Duration,
    /// The reason, recorded in the history.
    pub note: Option<String>,
}

impl Operation {
    /// Creates an operation without grace time, delay or note.
    #[must_use]
    pub const fn new(verb: Verb) -> Self {
        Self { verb, grace: Duration::ZERO, delay: Duration::ZERO, note: None }
    }

    /// Sets the time that a running job has to stop on its own.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets the delay before the job may be claimed.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Returns the reason as it is recorded: without surrounding whitespace, and none if it is blank.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.note.as_deref().and_then(trimmed)
    }

    /// Checks its durations and its reason.
    ///
    /// # Errors
    /// [`StoreError::Invalid`].
    pub fn check(&self) -> StoreResult<()> {
        check_wait("grace_ms", self.grace)
            .and_then(|()| check_wait("delay_ms", self.delay))
            .and_then(|()| check_reason(self.reason()))
            .map_err(|invalid| StoreError::Invalid { index: 0, invalid })
    }
}

/// The result of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operated {
    /// The job is now in this state.
    Done(JobState),
    /// The job is running; its worker was asked to stop it, and it is fenced when the grace time has passed.
    StopRequested,
}

impl Operated {
    /// Returns its name for programs: the new state, or `stop_requested`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done(state) => state.as_str(),
            Self::StopRequested => "stop_requested",
        }
    }
}

/// Inspection and control by operators.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Applies an operation to one job, in one transaction with its history.
    /// [`Illegal`](crate::error::StoreError::Illegal) when the job's state does not allow it.
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated>;

    /// Changes the payload or the options of a job that does not run, in one transaction with its history, and returns its state.
    /// [`Illegal`](crate::error::StoreError::Illegal) when it runs or has ended.
    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState>;

    /// Waits until a synchronous standby has the commits that earlier reads of this store have seen. Call it before a refusal, or an
    /// answer that nothing changed, that depends on such a read: a failover could undo the commit. Stores without standbys return at once.
    async fn confirm_seen(&self) -> StoreResult<()> {
        Ok(())
    }

    /// Lists jobs by state, kind, queue and key, newest first. The other fields need a [search](super::SearchStore::search_jobs).
    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>>;

    /// Returns one job, with the reason why it does not run now.
    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>>;

    /// Returns one job after an entry in the audit that the actor has seen its hidden values.
    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>>;

    /// Returns state changes of a job, oldest first.
    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>>;

    /// Returns every state change of a job, oldest first. Read in portions; the result may be large.
    async fn complete_history(&self, job: JobId) -> StoreResult<Vec<HistoryEntry>> {
        let limit = 1_000;
        let mut entries: Vec<HistoryEntry> = Vec::new();
        loop {
            let pos = entries.last().map_or(0, |last| last.pos);
            let found = self.history(job, HistoryPart::After { pos, limit }).await?;
            let is_last = found.len() < limit as usize;
            entries.extend(found);
            if is_last {
                return Ok(entries);
            }
        }
    }

    /// Lists every queue that has live jobs, is served or is paused.
    async fn queues(&self) -> StoreResult<Vec<QueueView>>;

    /// Lists the queues with counts by kind: up to `kinds_max` kinds with the most jobs, and the sum of all others.
    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>>;

    /// Stops or resumes claims from a queue. Returns whether that changed anything.
    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool>;

    /// Lists the active workers and those stopped within the last day.
    async fn workers(&self) -> StoreResult<Vec<WorkerView>>;

    /// Counts jobs by state. Counts of live states are exact; counts of ended states may need a scan.
    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>>;
}

//! States of jobs.

use crate::named::named_enum;

named_enum! {
    /// The state of a job. [`crate::transition`] defines the allowed transitions.
    JobState {
        /// Waits for predecessors or for a slot of its group.
        Blocked = "blocked",
        /// May be claimed when its start time is reached.
        Pending = "pending",
        /// Held by a worker under a lease.
        Running = "running",
        /// Failed, and will be claimed again after its backoff.
        RetryWait = "retry_wait",
        /// Failed permanently: a dead letter, kept for an operator.
        Failed = "failed",
        /// Stopped by an operator; can be resumed.
        Aborted = "aborted",
        /// Ended successfully.
        Succeeded = "succeeded",
        /// Canceled by a caller or an operator.
        Canceled = "canceled",
        /// Skipped: it does not run.
        Skipped = "skipped",
    }
}

impl JobState {
    /// Returns whether the job is unfinished, and so has a row in `live`.
    #[must_use]
    pub const fn is_live(self) -> bool {
        !self.is_ended()
    }

    /// Returns whether the job has ended: only an explicit, audited rerun can change it.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Canceled | Self::Skipped)
    }

    /// Returns whether only an operator can make the job run again.
    #[must_use]
    pub const fn is_over(self) -> bool {
        self.is_ended() || matches!(self, Self::Failed | Self::Aborted)
    }

    /// Returns whether the job waits to be claimed.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Pending | Self::RetryWait)
    }

    /// Returns whether a job that has acquired a slot of its group keeps it in this state.
    #[must_use]
    pub const fn holds_group_slot(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::RetryWait)
    }
}

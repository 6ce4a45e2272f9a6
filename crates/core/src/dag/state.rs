//! States of tasks and batches, and how a batch's state follows from those of its tasks.

use serde::{Deserialize, Serialize};

use super::rule::Outcome;
use crate::named::named_enum;
use crate::state::JobState;

named_enum! {
    /// The state of a task of a batch.
    TaskState {
        /// Not decided: predecessors have not ended, or failed.
        Waiting = "waiting",
        /// Its rule is satisfied; its condition and its payload were not evaluated yet, or its batch is stopped.
        Due = "due",
        /// Its job, bulk job or inner batch exists and continues automatically.
        Active = "active",
        /// Failed permanently, unless an operator intervenes.
        Failed = "failed",
        /// Stopped by an operator.
        Aborted = "aborted",
        /// Ended successfully.
        Succeeded = "succeeded",
        /// Skipped by its rule, its condition or an operator.
        Skipped = "skipped",
        /// Canceled.
        Canceled = "canceled",
    }
}

impl TaskState {
    /// Returns the state of a task whose job is in this state.
    #[must_use]
    pub const fn of_job(state: JobState) -> Self {
        match state {
            JobState::Blocked | JobState::Pending | JobState::Running | JobState::RetryWait => Self::Active,
            JobState::Failed => Self::Failed,
            JobState::Aborted => Self::Aborted,
            JobState::Succeeded => Self::Succeeded,
            JobState::Skipped => Self::Skipped,
            JobState::Canceled => Self::Canceled,
        }
    }

    /// Returns the state of a task that is a batch in this state.
    #[must_use]
    pub const fn of_batch(state: BatchState) -> Self {
        match state {
            BatchState::Running => Self::Active,
            BatchState::Done => Self::Succeeded,
            BatchState::Failed => Self::Failed,
            BatchState::Aborted => Self::Aborted,
            BatchState::Canceled => Self::Canceled,
        }
    }

    /// Returns the outcome for the task's successors; `None` while the task has not ended.
    #[must_use]
    pub const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Succeeded => Some(Outcome::Succeeded),
            Self::Failed => Some(Outcome::Failed),
            Self::Skipped => Some(Outcome::Skipped),
            Self::Canceled => Some(Outcome::Canceled),
            Self::Waiting | Self::Due | Self::Active | Self::Aborted => None,
        }
    }

    /// Returns whether only a rerun can change the state.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::Canceled)
    }

    /// Returns whether a task in this state can change to `next`, automatically or by an operator. It is the complete
    /// table of task transitions.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        use TaskState::{Aborted, Active, Canceled, Due, Failed, Skipped, Succeeded, Waiting};
        match (self, next) {
            // Decided; or ended by an operator, whatever the state of its predecessors.
            (Waiting, Due | Active | Failed | Skipped | Succeeded | Canceled) => true,
            // The condition is false or cannot be evaluated; or the job was created.
            (Due, Active | Skipped | Failed | Succeeded | Canceled) => true,
            // Follows its job, its bulk job or its batch.
            (Active, Failed | Aborted | Skipped | Succeeded | Canceled) => true,
            (Failed | Aborted, Active | Succeeded | Canceled) => true,
            // A rerun: decided again in a new generation.
            (Failed | Aborted | Succeeded | Skipped | Canceled, Waiting) => true,
            _ => false,
        }
    }
}

named_enum! {
    /// The state of a batch.
    BatchState {
        /// Some task can continue automatically.
        Running = "running",
        /// Every task succeeded or was skipped.
        Done = "done",
        /// The remaining tasks wait for a failed task; the batch continues when that task is retried, marked or canceled.
        Failed = "failed",
        /// An operator stopped it, or the remaining tasks wait for a task that an operator stopped; it continues when it
        /// is resumed.
        Aborted = "aborted",
        /// Every task has ended, and some were canceled.
        Canceled = "canceled",
    }
}

impl BatchState {
    /// Returns whether only an explicit, audited rerun can change the batch: all its tasks have ended.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Canceled)
    }

    /// Returns whether the batch can be aborted, given whether it is stopped and its task counts. A stopped batch can be
    /// aborted again while some of its tasks still run.
    #[must_use]
    pub const fn can_be_aborted(self, is_stopped: bool, counts: &Counts) -> bool {
        matches!(self, Self::Running | Self::Failed) && (!is_stopped || counts.active > 0)
    }
}

/// The number of tasks of a batch in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TaskCounts))]
pub struct Counts {
    /// Not decided: predecessors have not ended, or failed.
    pub waiting: u64,
    /// Decided to run, but not started.
    pub due: u64,
    /// Pending, running, or waiting for a retry or for their group; they continue automatically.
    pub active: u64,
    /// Failed permanently, unless an operator intervenes.
    pub failed: u64,
    /// Stopped by an operator.
    pub aborted: u64,
    /// Ended successfully.
    pub succeeded: u64,
    /// Skipped by their rules, their conditions or an operator.
    pub skipped: u64,
    /// Canceled.
    pub canceled: u64,
}

impl Counts {
    /// Returns whether a batch with these tasks can be resumed: it is stopped, or some tasks are aborted.
    #[must_use]
    pub const fn can_be_resumed(&self, is_stopped: bool) -> bool {
        is_stopped || self.aborted > 0
    }

    /// Returns the number of all tasks.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.waiting
            + self.due
            + self.active
            + self.failed
            + self.aborted
            + self.succeeded
            + self.skipped
            + self.canceled
    }

    /// Returns the number of tasks that have ended.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.succeeded + self.skipped + self.canceled
    }

    /// Adds a task in this state.
    pub const fn add(&mut self, state: TaskState) {
        let count = match state {
            TaskState::Waiting => &mut self.waiting,
            TaskState::Due => &mut self.due,
            TaskState::Active => &mut self.active,
            TaskState::Failed => &mut self.failed,
            TaskState::Aborted => &mut self.aborted,
            TaskState::Succeeded => &mut self.succeeded,
            TaskState::Skipped => &mut self.skipped,
            TaskState::Canceled => &mut self.canceled,
        };
        *count += 1;
    }

    /// Returns the state of a batch with these tasks. It has ended exactly when all of its tasks have.
    ///
    /// A failed task does not make the batch failed while other tasks can continue. A stopped batch is running until
    /// its last job has stopped. Waiting tasks without any active, failed or aborted task would be a bug; such a batch
    /// is `running`, since it has not ended.
    #[must_use]
    pub const fn state(&self, is_stopped: bool) -> BatchState {
        let can_go_on = self.waiting + self.due > 0;
        if self.active > 0 || (self.due > 0 && !is_stopped) {
            BatchState::Running
        } else if self.aborted > 0 || (is_stopped && can_go_on) {
            BatchState::Aborted
        } else if self.failed > 0 {
            BatchState::Failed
        } else if can_go_on {
            BatchState::Running
        } else if self.canceled > 0 {
            BatchState::Canceled
        } else {
            BatchState::Done
        }
    }
}

impl FromIterator<TaskState> for Counts {
    fn from_iter<I: IntoIterator<Item = TaskState>>(states: I) -> Self {
        let mut counts = Self::default();
        states.into_iter().for_each(|state| counts.add(state));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with every combination of present and absent task states, for a stopped and a running batch.
    fn each(mut check: impl FnMut(Counts, bool)) {
        for bits in 0..1_u64 << 9 {
            let bit = |at: u32| (bits >> at) & 1;
            let counts = Counts {
                waiting: bit(0),
                due: bit(1),
                active: bit(2),
                failed: bit(3),
                aborted: bit(4),
                succeeded: bit(5),
                skipped: bit(6),
                canceled: bit(7),
            };
            check(counts, bit(8) == 1);
        }
    }

    #[test]
    fn a_batch_has_ended_exactly_when_all_its_tasks_have() {
        each(|counts, is_stopped| {
            assert_eq!(counts.state(is_stopped).is_ended(), counts.ended() == counts.total(), "{counts:?}");
        });
    }

    #[test]
    fn what_an_operator_has_to_do_shows_once_nothing_goes_on_by_itself() {
        each(|counts, is_stopped| {
            let expected = match counts {
                Counts { active: 1.., .. } => BatchState::Running,
                Counts { due: 1.., .. } if !is_stopped => BatchState::Running,
                Counts { aborted: 1.., .. } => BatchState::Aborted,
                Counts { waiting: 1.., .. } | Counts { due: 1.., .. } if is_stopped => BatchState::Aborted,
                Counts { failed: 1.., .. } => BatchState::Failed,
                _ => return,
            };
            assert_eq!(counts.state(is_stopped), expected, "{counts:?}");
        });
    }

    #[test]
    fn a_batch_is_done_when_nothing_was_canceled() {
        let counts = Counts { succeeded: 3, skipped: 1, ..Counts::default() };
        assert_eq!(counts.state(false), BatchState::Done);
        assert_eq!(Counts { canceled: 1, ..counts }.state(false), BatchState::Canceled);
    }

    #[test]
    fn every_state_of_a_task_is_counted_once() {
        let counts: Counts = TaskState::ALL.iter().copied().collect();
        assert_eq!((counts.total(), counts.active, counts.ended()), (8, 1, 3));
    }

    #[test]
    fn a_task_that_has_ended_comes_back_by_a_rerun_only() {
        for &from in TaskState::ALL {
            for &to in TaskState::ALL {
                let allowed = from.can_become(to);
                assert!(!from.is_ended() || allowed == (to == TaskState::Waiting), "{from} {to}");
                assert!(from != to || !allowed, "{from} stays");
            }
        }
    }

    #[test]
    fn a_task_is_for_its_successors_what_its_job_is() {
        for &state in JobState::ALL {
            assert_eq!(TaskState::of_job(state).outcome(), Outcome::of(state), "{state}");
        }
    }
}

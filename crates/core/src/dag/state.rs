//! Where a batch stands, by how many of its tasks stand where.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::rule::Outcome;
use crate::state::{JobState, named_enum};

named_enum! {
    /// Where a task of a batch stands.
    TaskState {
        /// Not decided: predecessors are open, or failed.
        Waiting = "waiting",
        /// Its rule holds; its condition and its payload are still to be worked out, or its batch is stopped.
        Due = "due",
        /// Its job, or what else it consists of, goes on by itself.
        Active = "active",
        /// Failed for good, as long as no operator says otherwise.
        Failed = "failed",
        /// Stopped by an operator.
        Aborted = "aborted",
        /// Done.
        Succeeded = "succeeded",
        /// Decided not to run.
        Skipped = "skipped",
        /// Given up.
        Canceled = "canceled",
    }
}

impl TaskState {
    /// The state of a task whose job is in this state.
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

    /// The state of a task that is a batch of its own, in this state.
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

    /// What it is for the tasks that wait for it; `None` while its end is open.
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

    /// Whether nothing more happens to it but for a rerun.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::Canceled)
    }

    /// Whether it can become this, by itself or by an operator's hand. Total; the table of the states of tasks.
    #[must_use]
    pub const fn can_become(self, next: Self) -> bool {
        use TaskState::{Aborted, Active, Canceled, Due, Failed, Skipped, Succeeded, Waiting};
        match (self, next) {
            // Decided; and by hand, whatever its predecessors do.
            (Waiting, Due | Active | Failed | Skipped | Succeeded | Canceled) => true,
            // Its condition is false or has no value; its job is made.
            (Due, Active | Skipped | Failed | Succeeded | Canceled) => true,
            // As its job, its bulk job or its batch goes.
            (Active, Failed | Aborted | Skipped | Succeeded | Canceled) => true,
            (Failed | Aborted, Active | Succeeded | Canceled) => true,
            // A rerun: in a new generation, decided anew.
            (Failed | Aborted | Succeeded | Skipped | Canceled, Waiting) => true,
            _ => false,
        }
    }
}

named_enum! {
    /// The state of a batch.
    BatchState {
        /// Something can still happen by itself.
        Running = "running",
        /// Every task succeeded or was skipped.
        Done = "done",
        /// What is left waits for a task that failed; it goes on when that one is tried again, marked or canceled.
        Failed = "failed",
        /// An operator stopped it, or what is left waits for a task that an operator stopped; it goes on when it is
        /// resumed.
        Aborted = "aborted",
        /// Every task has ended, and some were canceled.
        Canceled = "canceled",
    }
}

impl BatchState {
    /// Whether nothing more happens to the batch but for an explicit, audited rerun: all its tasks have ended.
    #[must_use]
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Canceled)
    }

    /// Whether the batch can be aborted, given whether it is stopped and its tasks: again, too, while some of them still run.
    #[must_use]
    pub const fn can_be_aborted(self, is_stopped: bool, counts: &Counts) -> bool {
        matches!(self, Self::Running | Self::Failed) && (!is_stopped || counts.active > 0)
    }
}

/// How many tasks of a batch stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TaskCounts))]
pub struct Counts {
    /// Not decided yet: predecessors are open, or failed.
    pub waiting: u64,
    /// Decided to run, and not at it yet.
    pub due: u64,
    /// Pending, running, waiting for another try or for their group: they go on by themselves.
    pub active: u64,
    /// Failed for good, as long as no operator says otherwise.
    pub failed: u64,
    /// Stopped by an operator.
    pub aborted: u64,
    /// Done.
    pub succeeded: u64,
    /// Decided not to run.
    pub skipped: u64,
    /// Given up.
    pub canceled: u64,
}

impl Counts {
    /// Whether a batch with these tasks can be resumed: it is stopped, or some of them are.
    #[must_use]
    pub const fn can_be_resumed(&self, is_stopped: bool) -> bool {
        is_stopped || self.aborted > 0
    }

    /// All tasks.
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

    /// Those that have ended.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.succeeded + self.skipped + self.canceled
    }

    /// One more task in this state.
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

    /// The state of a batch whose tasks stand so. It has ended exactly when all of them have.
    ///
    /// A failed task does not make the batch failed while others can go on. One that an operator has stopped is
    /// running until the last of its jobs has stopped. Tasks that wait although nothing is active, failed or
    /// aborted would be a defect; the batch is then `running`, since it has not ended.
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

    /// Every way in which eight kinds of tasks can be there or not, in a batch that is stopped or not.
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

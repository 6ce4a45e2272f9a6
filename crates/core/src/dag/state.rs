//! Where a batch stands, by how many of its tasks stand where.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::state::{JobState, named_enum};

named_enum! {
    /// The state of a batch.
    BatchState {
        /// Something can still happen by itself.
        Running = "running",
        /// Every task succeeded or was skipped.
        Done = "done",
        /// What is left waits for a task that failed; it goes on when that one is tried again, marked or canceled.
        Failed = "failed",
        /// What is left waits for a task that an operator stopped; it goes on when that one is resumed.
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
}

/// How many tasks of a batch stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Not decided yet: predecessors are open, or failed.
    pub waiting: u64,
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
    /// All tasks.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.waiting
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

    /// One more task, whose job is in this state; `None` for a task that is not decided yet.
    pub const fn add(&mut self, state: Option<JobState>) {
        let count = match state {
            None => &mut self.waiting,
            Some(JobState::Blocked | JobState::Pending | JobState::Running | JobState::RetryWait) => {
                &mut self.active
            }
            Some(JobState::Failed) => &mut self.failed,
            Some(JobState::Aborted) => &mut self.aborted,
            Some(JobState::Succeeded) => &mut self.succeeded,
            Some(JobState::Skipped) => &mut self.skipped,
            Some(JobState::Canceled) => &mut self.canceled,
        };
        *count += 1;
    }

    /// The state of a batch whose tasks stand so. It has ended exactly when all of them have.
    ///
    /// A failed task does not make the batch failed while others can go on. Tasks that wait although nothing is
    /// active, failed or aborted would be a defect; the batch is then `running`, since it has not ended.
    #[must_use]
    pub const fn state(&self) -> BatchState {
        if self.active > 0 {
            BatchState::Running
        } else if self.aborted > 0 {
            BatchState::Aborted
        } else if self.failed > 0 {
            BatchState::Failed
        } else if self.waiting > 0 {
            BatchState::Running
        } else if self.canceled > 0 {
            BatchState::Canceled
        } else {
            BatchState::Done
        }
    }
}

impl FromIterator<Option<JobState>> for Counts {
    fn from_iter<I: IntoIterator<Item = Option<JobState>>>(states: I) -> Self {
        let mut counts = Self::default();
        states.into_iter().for_each(|state| counts.add(state));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way in which seven kinds of tasks can be there or not.
    fn each(mut check: impl FnMut(Counts)) {
        for bits in 0..1_u64 << 7 {
            let bit = |at: u32| (bits >> at) & 1;
            check(Counts {
                waiting: bit(0),
                active: bit(1),
                failed: bit(2),
                aborted: bit(3),
                succeeded: bit(4),
                skipped: bit(5),
                canceled: bit(6),
            });
        }
    }

    #[test]
    fn a_batch_has_ended_exactly_when_all_its_tasks_have() {
        each(|counts| {
            assert_eq!(counts.state().is_ended(), counts.ended() == counts.total(), "{counts:?}");
        });
    }

    #[test]
    fn what_an_operator_has_to_do_shows_once_nothing_goes_on_by_itself() {
        each(|counts| {
            let expected = match counts {
                Counts { active: 1.., .. } => BatchState::Running,
                Counts { aborted: 1.., .. } => BatchState::Aborted,
                Counts { failed: 1.., .. } => BatchState::Failed,
                _ => return,
            };
            assert_eq!(counts.state(), expected, "{counts:?}");
        });
    }

    #[test]
    fn a_batch_is_done_when_nothing_was_canceled() {
        let counts = Counts { succeeded: 3, skipped: 1, ..Counts::default() };
        assert_eq!(counts.state(), BatchState::Done);
        assert_eq!(Counts { canceled: 1, ..counts }.state(), BatchState::Canceled);
    }

    #[test]
    fn every_state_of_a_job_is_counted_once() {
        let states = std::iter::once(None).chain(JobState::ALL.iter().copied().map(Some));
        let counts: Counts = states.collect();
        assert_eq!(counts.total(), 10);
        assert_eq!((counts.waiting, counts.active, counts.ended()), (1, 4, 3));
    }
}

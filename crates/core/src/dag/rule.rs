//! Trigger rules: what a task does depending on the outcomes of its predecessors.
//!
//! | rule | runs when all have ended and | is skipped, as soon as this is certain, when | otherwise waits |
//! |---|---|---|---|
//! | `all_success` | all succeeded | one was skipped or canceled | also for a failed one |
//! | `none_failed` | all succeeded or were skipped | one was canceled | also for a failed one |
//! | `one_success` | one succeeded | all were skipped or canceled | also for the failed ones, if none succeeded |
//! | `one_failed` | one failed | all ended and none failed | |
//! | `all_done` | always | never | |
//! | `always` | always; canceling a predecessor or the batch does not cancel it | never | |
//!
//! **A failed predecessor is not final.** It can be retried, marked or canceled. A task whose rule does not hold
//! because of a failed predecessor therefore waits; it is skipped only when its rule can never hold. `one_failed`,
//! `all_done` and `always` are for tasks that continue after a failure: they treat a failed predecessor as ended. An
//! aborted predecessor has not ended for any rule.
//!
//! **The order of ends does not matter.** No rule runs before all predecessors have ended, not even `one_success` and
//! `one_failed`. If these ran at the first such end, the state they read from the other predecessors would depend on
//! timing, and a task would start before its predecessors ended. An early skip is decided only when every possible
//! continuation leads to it. The decision therefore depends only on the final tally, not on the order of ends.

use serde::{Deserialize, Serialize};

use crate::named::named_enum;
use crate::state::JobState;

named_enum! {
    /// When a task runs, depending on the outcomes of its predecessors.
    #[derive(Default)]
    Rule {
        /// All predecessors succeeded.
        #[default]
        AllSuccess = "all_success",
        /// All predecessors have ended, with any outcome.
        AllDone = "all_done",
        /// All predecessors have ended, and at least one succeeded.
        OneSuccess = "one_success",
        /// All predecessors have ended, and at least one failed.
        OneFailed = "one_failed",
        /// Each predecessor succeeded or was skipped.
        NoneFailed = "none_failed",
        /// All predecessors have ended, with any outcome; a canceled subtree or batch does not cancel the task: for cleanup.
        Always = "always",
    }
}

impl Rule {
    /// Returns whether it can hold for a task without predecessors.
    #[must_use]
    pub const fn holds_for_roots(self) -> bool {
        !matches!(self, Self::OneSuccess | Self::OneFailed)
    }
}

named_enum! {
    /// The outcome of a task, for its successors.
    Outcome {
        /// It succeeded.
        Succeeded = "succeeded",
        /// It failed permanently; an operator can retry it.
        Failed = "failed",
        /// It was skipped.
        Skipped = "skipped",
        /// It was canceled.
        Canceled = "canceled",
    }
}

impl Outcome {
    /// Returns the outcome of a job in this state for its successors; `None` while the job has not ended.
    #[must_use]
    pub const fn of(state: JobState) -> Option<Self> {
        match state {
            JobState::Succeeded => Some(Self::Succeeded),
            JobState::Failed => Some(Self::Failed),
            JobState::Skipped => Some(Self::Skipped),
            JobState::Canceled => Some(Self::Canceled),
            JobState::Blocked
            | JobState::Pending
            | JobState::Running
            | JobState::RetryWait
            | JobState::Aborted => None,
        }
    }
}

named_enum! {
    /// What a task does next. A decision other than [`Decision::Wait`] is final.
    Decision {
        /// The decision is still open.
        Wait = "wait",
        /// Its rule is satisfied: it runs, unless its condition is false.
        Run = "run",
        /// Its rule can never be satisfied.
        Skip = "skip",
    }
}

/// The outcomes of a task's predecessors, as counts. Their sum never exceeds the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tally {
    /// The number of predecessors.
    pub total: u32,
    /// The number that succeeded.
    pub succeeded: u32,
    /// The number that failed and were not retried.
    pub failed: u32,
    /// The number that were skipped.
    pub skipped: u32,
    /// The number that were canceled.
    pub canceled: u32,
}

impl Tally {
    /// Creates the tally of a task with this many predecessors, none of which has ended.
    #[must_use]
    pub const fn new(total: u32) -> Self {
        Self { total, succeeded: 0, failed: 0, skipped: 0, canceled: 0 }
    }

    /// Returns the number of predecessors that have not ended: `pre_cnt`.
    #[must_use]
    pub const fn open(&self) -> u32 {
        self.total - self.succeeded - self.failed - self.skipped - self.canceled
    }

    /// Adds the end of a predecessor.
    pub const fn add(&mut self, outcome: Outcome) {
        *self.count(outcome) += 1;
    }

    /// Removes the end of a predecessor that will run again.
    pub const fn take_back(&mut self, outcome: Outcome) {
        *self.count(outcome) -= 1;
    }

    const fn count(&mut self, outcome: Outcome) -> &mut u32 {
        match outcome {
            Outcome::Succeeded => &mut self.succeeded,
            Outcome::Failed => &mut self.failed,
            Outcome::Skipped => &mut self.skipped,
            Outcome::Canceled => &mut self.canceled,
        }
    }

    /// Returns every tally of up to this many predecessors, for tests that compare a store's SQL with [`decide`].
    #[must_use]
    pub fn all(total_max: u32) -> Vec<Self> {
        let mut all = Vec::new();
        for total in 0..=total_max {
            for succeeded in 0..=total {
                for failed in 0..=total - succeeded {
                    for skipped in 0..=total - succeeded - failed {
                        let rest = total - succeeded - failed - skipped;
                        all.extend((0..=rest).map(|canceled| Self {
                            total,
                            succeeded,
                            failed,
                            skipped,
                            canceled,
                        }));
                    }
                }
            }
        }
        all
    }
}

/// Returns what a task with this rule does. It is a total function that implements the table above.
#[must_use]
pub const fn decide(rule: Rule, tally: &Tally) -> Decision {
    let all_ended = tally.open() == 0;
    match rule {
        Rule::AllSuccess if tally.skipped + tally.canceled > 0 => Decision::Skip,
        Rule::NoneFailed if tally.canceled > 0 => Decision::Skip,
        _ if !all_ended => Decision::Wait,
        Rule::AllSuccess | Rule::NoneFailed if tally.failed > 0 => Decision::Wait,
        Rule::AllSuccess | Rule::NoneFailed | Rule::AllDone | Rule::Always => Decision::Run,
        Rule::OneSuccess if tally.succeeded > 0 => Decision::Run,
        Rule::OneSuccess if tally.failed > 0 => Decision::Wait,
        Rule::OneFailed if tally.failed > 0 => Decision::Run,
        Rule::OneSuccess | Rule::OneFailed => Decision::Skip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOTAL_MAX: u32 = 5;

    fn each(mut check: impl FnMut(Rule, Tally)) {
        for tally in Tally::all(TOTAL_MAX) {
            Rule::ALL.iter().for_each(|&rule| check(rule, tally));
        }
    }

    /// The table of the module's documentation, implemented a second time.
    fn table(rule: Rule, tally: &Tally) -> Decision {
        let Tally { total, succeeded, failed, skipped, canceled } = *tally;
        let ended = succeeded + failed + skipped + canceled == total;
        let (runs, skips) = match rule {
            Rule::AllSuccess => (succeeded == total, skipped > 0 || canceled > 0),
            Rule::NoneFailed => (succeeded + skipped == total, canceled > 0),
            Rule::OneSuccess => (ended && succeeded >= 1, skipped + canceled == total),
            Rule::OneFailed => (ended && failed >= 1, ended && failed == 0),
            Rule::AllDone | Rule::Always => (ended, false),
        };
        match (runs, skips) {
            (true, false) => Decision::Run,
            (false, true) => Decision::Skip,
            (false, false) => Decision::Wait,
            (true, true) => panic!("{rule} both runs and skips at {tally:?}"),
        }
    }

    #[test]
    fn every_rule_decides_every_tally_as_the_table_says() {
        each(|rule, tally| assert_eq!(decide(rule, &tally), table(rule, &tally), "{rule} {tally:?}"));
    }

    #[test]
    fn nothing_runs_before_all_predecessors_have_ended() {
        each(|rule, tally| {
            assert!(decide(rule, &tally) != Decision::Run || tally.open() == 0, "{rule} {tally:?}");
        });
    }

    #[test]
    fn a_skip_is_what_every_way_on_leads_to() {
        each(|rule, tally| {
            if decide(rule, &tally) != Decision::Skip {
                return;
            }
            if tally.open() > 0 {
                for &outcome in Outcome::ALL {
                    let mut next = tally;
                    next.add(outcome);
                    assert_eq!(decide(rule, &next), Decision::Skip, "{rule} {tally:?} and {outcome}");
                }
            }
            // A failed predecessor that is retried, and then succeeds or is canceled.
            if tally.failed > 0 {
                for outcome in [Outcome::Succeeded, Outcome::Canceled] {
                    let mut next = tally;
                    next.take_back(Outcome::Failed);
                    assert_ne!(decide(rule, &next), Decision::Run, "{rule} {tally:?} while it runs again");
                    next.add(outcome);
                    assert_eq!(decide(rule, &next), Decision::Skip, "{rule} {tally:?} and then {outcome}");
                }
            }
        });
    }

    #[test]
    fn what_waits_when_all_have_ended_waits_for_a_failed_one() {
        each(|rule, tally| {
            if tally.open() == 0 && decide(rule, &tally) == Decision::Wait {
                assert!(tally.failed > 0, "{rule} {tally:?}");
            }
        });
    }

    #[test]
    fn roots_run_at_once_or_never() {
        for &rule in Rule::ALL {
            let expected = if rule.holds_for_roots() { Decision::Run } else { Decision::Skip };
            assert_eq!(decide(rule, &Tally::new(0)), expected, "{rule}");
        }
    }

    #[test]
    fn tallies_are_enumerated_each_once() {
        let all = Tally::all(TOTAL_MAX);
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        // The number of ways to split up to five predecessors into five groups: C(5 + 5, 5).
        assert_eq!((all.len(), distinct.len()), (252, 252));
    }
}

//! Trigger rules: what a task does by how its predecessors ended.
//!
//! | rule | runs when all have ended and | is skipped, as soon as it is certain, when | else waits |
//! |---|---|---|---|
//! | `all_success` | all succeeded | one was skipped or canceled | also for a failed one |
//! | `none_failed` | all succeeded or were skipped | one was canceled | also for a failed one |
//! | `one_success` | one succeeded | all were skipped or canceled | also for the failed ones, if none succeeded |
//! | `one_failed` | one failed | all ended and none failed | |
//! | `all_done` | always | never | |
//! | `always` | always; a cancel that reaches it from above leaves it out | never | |
//!
//! **A failed predecessor is not the end.** It can be tried again, marked or canceled, so a rule that it keeps from
//! holding waits; only what can never hold any more is skipped. `one_failed`, `all_done` and `always` are for those
//! who want to go on from a failure: for them it has ended. An aborted predecessor has not ended for anybody.
//!
//! **The order of ends does not matter.** No rule runs before all predecessors have ended, not even `one_success`
//! and `one_failed`: were they to run at the first such end, what they see of the others would depend on who came
//! first, and a task would start before its predecessors ended. And a skip that is decided early is one that
//! every way on leads to. So the decision by the last tally is the decision, whatever the way there was.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::state::{JobState, named_enum};

named_enum! {
    /// When a task runs, by how its predecessors ended.
    #[derive(Default)]
    Rule {
        /// All succeeded.
        #[default]
        AllSuccess = "all_success",
        /// All have ended, somehow.
        AllDone = "all_done",
        /// At least one succeeded.
        OneSuccess = "one_success",
        /// At least one failed.
        OneFailed = "one_failed",
        /// Each succeeded or was skipped.
        NoneFailed = "none_failed",
        /// All have ended, somehow; canceling a subtree or the batch leaves it to run: for clearing up.
        Always = "always",
    }
}

impl Rule {
    /// Whether it can hold for a task without predecessors.
    #[must_use]
    pub const fn holds_for_roots(self) -> bool {
        !matches!(self, Self::OneSuccess | Self::OneFailed)
    }
}

named_enum! {
    /// How a task ended, for those that wait for it.
    Outcome {
        /// It is done.
        Succeeded = "succeeded",
        /// It was given up on, for now: an operator can have it tried again.
        Failed = "failed",
        /// It was decided not to run.
        Skipped = "skipped",
        /// It was given up.
        Canceled = "canceled",
    }
}

impl Outcome {
    /// What a job in this state is for its successors; `None` while its end is open.
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
    /// What a task does next. Once it is not [`Decision::Wait`], it stands.
    Decision {
        /// Nothing yet.
        Wait = "wait",
        /// Its rule holds: it runs, unless its condition says no.
        Run = "run",
        /// Its rule can never hold.
        Skip = "skip",
    }
}

/// How the predecessors of a task ended. The counts never exceed the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tally {
    /// How many predecessors there are.
    pub total: u32,
    /// How many succeeded.
    pub succeeded: u32,
    /// How many failed and were not tried again.
    pub failed: u32,
    /// How many were skipped.
    pub skipped: u32,
    /// How many were canceled.
    pub canceled: u32,
}

impl Tally {
    /// Of a task with this many predecessors, none of which has ended.
    #[must_use]
    pub const fn new(total: u32) -> Self {
        Self { total, succeeded: 0, failed: 0, skipped: 0, canceled: 0 }
    }

    /// How many predecessors have not ended: `pre_cnt`.
    #[must_use]
    pub const fn open(&self) -> u32 {
        self.total - self.succeeded - self.failed - self.skipped - self.canceled
    }

    /// One more predecessor ended.
    pub const fn add(&mut self, outcome: Outcome) {
        *self.count(outcome) += 1;
    }

    /// A predecessor that ended is to run again.
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

    /// Every tally of up to so many predecessors, for tests that compare a store's SQL with [`decide`].
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

/// What a task with this rule does. Total, and the table above in code.
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

    /// The table of the module's documentation, said once more in other words.
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
            // One that failed is tried again, marked or canceled.
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
        // Ways to part up to five predecessors into five kinds: C(5 + 5, 5).
        assert_eq!((all.len(), distinct.len()), (252, 252));
    }
}

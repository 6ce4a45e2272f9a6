//! Checks of the jobs: the database against the expected results.

use indicatif::HumanCount;
use milepost::{HistoryEntry, Verb};

use super::ledger::{Facts, Tally};
use super::plan::Plan;
use super::show::Seen;

/// One check of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) what: &'static str,
    pub(super) found: u64,
    /// The meaning of the value, and the expected value.
    pub(super) expected: String,
    pub(super) passed: bool,
}

impl Check {
    pub(super) fn equal(what: &'static str, found: u64, expected: u64, meaning: &str) -> Self {
        let expected_text = match expected {
            0 => meaning.to_owned(),
            _ => format!("{} {meaning}", HumanCount(expected)),
        };
        Self { what, found, expected: expected_text, passed: found == expected }
    }

    pub(super) fn some(what: &'static str, found: u64, meaning: &str) -> Self {
        Self { what, found, expected: meaning.to_owned(), passed: found > 0 }
    }
}

/// Returns whether a state transition reclaimed an attempt from a dead worker.
pub(super) fn is_loss(entry: &HistoryEntry) -> bool {
    entry.verb == Verb::Retry && entry.error_code.as_deref() == Some("lease_lost")
}

/// Returns all checks of the first part.
pub(super) fn verify(plan: Plan, facts: &Facts, seen: &Seen) -> Vec<Check> {
    let tally = facts.tally;
    let rows_of = |place| facts.notifications.get(&place).copied().unwrap_or(0);
    let places = u64::from(plan.places);
    let to_notify = plan.notified().count() as u64;
    let missing = plan.notified().filter(|&place| rows_of(place) == 0).count() as u64;
    let doubled = plan.notified().filter(|&place| rows_of(place) > 1).count() as u64;
    let rows = facts.notifications.values().sum();
    let retried = plan.flaky().filter(|place| facts.retried.contains(place)).count() as u64;
    let dead_letters_fit = plan.dead_letters().eq(facts.dead_letters.iter().copied());
    let mut dead_letters = Check::equal(
        "dead letters",
        facts.dead_letters.len() as u64,
        plan.dead_letters().count() as u64,
        "places have no address",
    );
    dead_letters.passed &= dead_letters_fit;
    vec![
        Check::equal("jobs", tally.jobs, places, "places, one job each"),
        Check::equal("not ended", tally.open, 0, "none is left"),
        Check::equal("notifications", rows, to_notify, "places have an address, one row each"),
        Check::equal("  missing", missing, 0, "none was lost"),
        Check::equal("  doubled", doubled, 0, "none was sent twice"),
        dead_letters,
        Check::equal("tried again", retried, plan.flaky().count() as u64, "places did not answer at first"),
        Check::some("held at the kill", seen.held, "jobs of the killed worker"),
        Check::some("taken back", tally.rescued, "attempts lost with it, and repeated"),
        attempts(facts.tally),
        Check::equal("  ended", tally.ends, tally.attempts, "attempts, one end each"),
        Check::equal("successes", tally.successes, to_notify, "one for each notification"),
    ]
}

/// Checks that every attempt except a job's first one follows a failed or lost attempt.
fn attempts(tally: Tally) -> Check {
    let Tally { jobs, attempts, retries, rescued, .. } = tally;
    let [first, again, lost] = [jobs, retries, rescued].map(HumanCount);
    Check {
        what: "attempts",
        found: attempts,
        expected: format!("{first} + {again} retries + {lost} taken back"),
        passed: attempts == jobs + retries + rescued,
    }
}

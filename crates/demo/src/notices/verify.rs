//! Checks of the bulk jobs: the database against the expected results.

use indicatif::HumanCount;
use milepost::{HistoryEntry, JobState};

use super::Shown;
use super::channels::NoticeFacts;
use crate::verify::{Check, is_loss};

/// Returns all checks of the second part.
pub(super) fn verify(popular: NoticeFacts, nearby: NoticeFacts, shown: &Shown) -> Vec<Check> {
    let mut checks = Vec::new();
    for (names, facts) in [(POPULAR, popular), (NEARBY, nearby)] {
        let NoticeFacts { targets, notices, missing, doubled } = facts;
        checks.push(Check::equal(names[0], notices, targets, names[1]));
        checks.push(Check::equal(names[2], missing, 0, "every target has its row"));
        checks.push(Check::equal(names[3], doubled, 0, "no target has two"));
    }
    let target = nearby.targets > 0 && nearby.targets < popular.targets;
    checks.push(Check {
        what: "runs at once",
        found: overlaps(&shown.histories),
        expected: "only one run of the group at a time".to_owned(),
        passed: overlaps(&shown.histories) == 0 && target,
    });
    // On a slow machine a running process may also lose its lease.
    checks.push(Check::some(
        "taken over",
        shown.histories.iter().flatten().filter(|entry| is_loss(entry)).count() as u64,
        "run of the killed process, from its cursor",
    ));
    checks.push(Check {
        what: "after the abort",
        found: shown.chunks_after_abort,
        expected: "chunk at most: the current one".to_owned(),
        passed: shown.aborted_at > 0 && shown.chunks_after_abort <= 1,
    });
    checks.push(Check {
        what: "resumed at",
        found: shown.aborted_at,
        expected: format!("of {} targets, behind the cursor", HumanCount(shown.aborted_of)),
        passed: shown.aborted_at > 0 && shown.aborted_at < shown.aborted_of,
    });
    checks
}

const POPULAR: [&str; 4] = ["to everybody", "channels, one row each", "  missing", "  doubled"];
const NEARBY: [&str; 4] =
    ["to those nearby", "channels near Istanbul, one row each", "  missing", "  doubled"];

/// Counts how often a run started while another one was running.
fn overlaps(histories: &[Vec<HistoryEntry>]) -> u64 {
    let mut changes: Vec<(usize, &HistoryEntry)> = histories
        .iter()
        .enumerate()
        .flat_map(|(job, history)| history.iter().map(move |entry| (job, entry)))
        .filter(|(_, entry)| entry.to == JobState::Running || entry.from == Some(JobState::Running))
        .collect();
    // At the same time, ends are sorted before starts.
    changes.sort_by_key(|(_, entry)| (entry.at, entry.to == JobState::Running));
    let (mut running, mut overlaps) = (vec![false; histories.len()], 0);
    for (job, entry) in changes {
        running[job] = entry.to == JobState::Running;
        overlaps += u64::from(running[job] && running.iter().filter(|runs| **runs).count() > 1);
    }
    overlaps
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use milepost::{RunToken, Verb};

    use super::*;

    /// A run between two times, in seconds.
    fn run(from: i64, to: i64) -> Vec<HistoryEntry> {
        let entry = |at, verb, from, to| HistoryEntry {
            pos: at,
            job: milepost::JobId::new(),
            at: Timestamp::from_second(at).unwrap(),
            verb,
            from: Some(from),
            to,
            attempt: 1,
            token: RunToken(1),
            worker: None,
            ready_at: None,
            error_code: None,
            error_message: None,
            note: None,
        };
        vec![
            entry(from, Verb::Claim, JobState::Pending, JobState::Running),
            entry(to, Verb::Succeed, JobState::Running, JobState::Succeeded),
        ]
    }

    #[test]
    fn runs_at_once_are_seen_and_runs_in_turn_are_none() {
        assert_eq!(overlaps(&[run(0, 10), run(10, 20)]), 0, "one ends as the other begins");
        assert_eq!(overlaps(&[run(0, 10), run(9, 20)]), 1);
        assert_eq!(overlaps(&[[run(0, 5), run(8, 10)].concat(), run(5, 8)]), 0, "aborted and resumed");
    }
}

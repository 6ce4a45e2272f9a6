//! Checks of the batch: the store and the report against the expected results.

use indicatif::HumanCount;
use milepost::{HistoryEntry, Verb};

use super::facts::{Facts, is_end};
use crate::verify::{Check, is_loss};

/// The number of tasks other than the countries; one of them is the list of countries, and one is skipped.
const TASKS: u64 = 6;

/// Summary of the totals that the batch wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// The sum of places in all lines.
    pub(super) places: u64,
    /// The expected number of places.
    pub(super) places_expected: u64,
    /// The number of countries without exactly one correct line, and of lines for unknown countries.
    pub(super) wrong: u64,
}

/// Returns all checks of the third part; `held` is the number of tasks that the killed worker was running.
pub(super) fn verify(facts: &Facts, report: Report, countries: u64, held: u64) -> Vec<Check> {
    let &Facts { done, tasks, open, skipped, .. } = facts;
    let ran = countries + TASKS - 2;
    let jobs = facts.jobs().count() as u64;
    let successes = |history: &[_]| history.iter().filter(|&entry| is_success(entry)).count();
    let once = |wrong: fn(usize) -> bool| facts.jobs().filter(|job| wrong(successes(job))).count() as u64;
    let lost = facts.changes(is_loss);
    let retries = facts.changes(|entry| entry.verb == Verb::Retry) - lost;
    let attempts = facts.changes(|entry| entry.verb == Verb::Claim);
    let [first, again, back] = [jobs, retries, lost].map(HumanCount);
    vec![
        Check::equal("batches", done, 2, "done: the outer batch and that of the countries"),
        Check::equal("tasks", tasks, countries + TASKS, "of both"),
        Check::equal("  not ended", open, 0, "none is left"),
        Check::equal("  skipped", skipped, 1, "warning: no place is missing"),
        Check::equal("  began too early", facts.too_early(), 0, "all predecessors had ended"),
        Check::equal("successes", facts.changes(is_success), ran, "tasks ran, one accepted end each"),
        Check::equal("  missing", once(|successes| successes == 0), 0, "none was lost"),
        Check::equal("  doubled", once(|successes| successes > 1), 0, "none was doubled"),
        Check::some("held at the kill", held, "tasks of the killed worker"),
        Check::some("taken back", lost, "attempts lost with it, and repeated"),
        Check {
            what: "attempts",
            found: attempts,
            expected: format!("{first} + {again} retries + {back} taken back"),
            passed: attempts == jobs + retries + lost,
        },
        Check::equal("  ended", facts.changes(is_end), attempts, "attempts, one end each"),
        Check::equal("places reported", report.places, report.places_expected, "places in the file"),
        Check::equal("  wrong", report.wrong, 0, "countries that differ from a count without a batch"),
    ]
}

fn is_success(entry: &HistoryEntry) -> bool {
    entry.verb == Verb::Succeed
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use jiff::Timestamp;
    use milepost::{JobId, JobState, RunToken};

    use super::*;

    const REPORT: Report = Report { places: 4, places_expected: 4, wrong: 0 };

    fn entry(pos: i64, verb: Verb, from: JobState, to: JobState) -> HistoryEntry {
        HistoryEntry {
            pos,
            job: JobId::new(),
            at: Timestamp::from_second(pos).unwrap(),
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
        }
    }

    /// A run between two times of the history.
    fn run(from: i64, to: i64) -> Vec<HistoryEntry> {
        use JobState::{Pending, Running, Succeeded};
        vec![entry(from, Verb::Claim, Pending, Running), entry(to, Verb::Succeed, Running, Succeeded)]
    }

    /// A run that was lost with its worker.
    fn lost(from: i64, to: i64) -> Vec<HistoryEntry> {
        use JobState::{Pending, RetryWait, Running};
        let lost = entry(to, Verb::Retry, Running, RetryWait);
        let lost = HistoryEntry { error_code: Some("lease_lost".to_owned()), ..lost };
        vec![entry(from, Verb::Claim, Pending, Running), lost]
    }

    /// Two countries, one of which was reclaimed from a dead worker.
    fn facts() -> Facts {
        let countries = vec![run(3, 4), [lost(3, 5), run(6, 7)].concat()];
        let histories = [
            ("split", vec![run(1, 2)]),
            ("country", countries),
            ("join", vec![run(8, 9)]),
            ("report", vec![run(10, 11)]),
            ("warn", Vec::new()),
            ("clean", vec![run(12, 13)]),
        ];
        let edges = [("split", "country"), ("country", "join"), ("join", "report"), ("join", "warn")];
        Facts {
            done: 2,
            tasks: 8,
            open: 0,
            skipped: 1,
            histories: histories.map(|(task, histories)| (task.to_owned(), histories)).into(),
            edges: edges.map(|(before, task)| (before.to_owned(), task.to_owned())).into(),
        }
    }

    fn failed(facts: &Facts, report: Report) -> Vec<&'static str> {
        let checks = verify(facts, report, 2, 1);
        checks.iter().filter(|check| !check.passed).map(|check| check.what).collect()
    }

    /// Returns the checks that fail if this task has these histories.
    fn failed_with(task: &str, histories: Vec<Vec<HistoryEntry>>) -> Vec<&'static str> {
        let mut facts = facts();
        facts.histories.insert(task.to_owned(), histories);
        failed(&facts, REPORT)
    }

    #[test]
    fn a_batch_in_which_each_task_succeeded_once_and_in_order_passes() {
        assert_eq!(failed(&facts(), REPORT), [""; 0]);
    }

    #[test]
    fn a_task_that_succeeded_twice_or_not_at_all_is_found() {
        let twice = [run(8, 9), run(10, 11)].concat();
        assert_eq!(failed_with("clean", vec![twice]), ["successes", "  doubled", "attempts"]);
        let never = vec![run(3, 4), lost(3, 5)];
        assert_eq!(failed_with("country", never), ["successes", "  missing", "attempts"]);
        assert_eq!(failed_with("clean", vec![Vec::new()]), ["successes", "  missing", "attempts"]);
    }

    #[test]
    fn a_task_that_began_before_one_that_it_waits_for_had_ended_is_found() {
        assert_eq!(failed_with("join", vec![run(5, 9)]), ["  began too early"]);
    }

    #[test]
    fn a_batch_that_is_not_done_and_a_report_that_is_wrong_are_found() {
        let facts = Facts { done: 1, ..facts() };
        assert_eq!(
            failed(&facts, Report { places: 5, wrong: 1, ..REPORT }),
            ["batches", "places reported", "  wrong"]
        );
    }
}

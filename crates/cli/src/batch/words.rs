//! Text descriptions of batches.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::batch::listing::{BatchView, TaskView};
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::dag::version::Version;

pub(super) use milepost_core::format::count;

/// The number of digits of a version that are shown, which is enough to identify it.
pub(super) const VERSION_DIGITS: usize = 12;
/// Replaces the key of a task that the current version of its batch does not have.
pub(super) const GONE: &str = "(gone)";
/// The width of a progress bar.
const BAR: u64 = 30;

/// Formats a number of tasks: `1 task`, `12 tasks`.
pub(super) fn tasks(number: u64) -> String {
    if number == 1 { "1 task".to_owned() } else { format!("{} tasks", count(number)) }
}

/// Lists the first names, and the number of the others.
pub(super) fn some(names: &[impl AsRef<str>], max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(max).map(AsRef::as_ref).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), count(more as u64)),
    }
}

/// Returns the first digits of a version.
pub(super) fn short(version: Version) -> String {
    version.to_string().chars().take(VERSION_DIGITS).collect()
}

/// Formats the number of tasks in each state, for example `3 active, 1 failed`; states that need attention come first.
pub(super) fn counts(counts: &Counts) -> String {
    let all = [
        (TaskState::Failed, counts.failed),
        (TaskState::Aborted, counts.aborted),
        (TaskState::Active, counts.active),
        (TaskState::Due, counts.due),
        (TaskState::Waiting, counts.waiting),
        (TaskState::Succeeded, counts.succeeded),
        (TaskState::Skipped, counts.skipped),
        (TaskState::Canceled, counts.canceled),
    ];
    let some = all.into_iter().filter(|(_, number)| *number > 0);
    some.map(|(state, number)| format!("{} {state}", count(number))).collect::<Vec<_>>().join(", ")
}

/// Returns the completed share in percent. It is rounded down, so that an unfinished batch never shows 100 %.
pub(super) fn percent(counts: &Counts) -> u64 {
    (counts.ended() * 100).checked_div(counts.total()).unwrap_or(100)
}

/// Formats the progress: `12 of 40 tasks ended (30 %)`.
pub(super) fn progress(counts: &Counts) -> String {
    format!("{} of {} ended ({} %)", count(counts.ended()), tasks(counts.total()), percent(counts))
}

/// Formats the progress with a bar: `[=====>    ] 12 of 40 tasks ended (30 %)`.
pub(super) fn bar(counts: &Counts) -> String {
    let done = (counts.ended() * BAR).checked_div(counts.total()).unwrap_or(BAR);
    let head = if done == BAR { "" } else { ">" };
    let bar = "=".repeat(usize::try_from(done).unwrap_or_default()) + head;
    format!("[{bar:<30}] {}", progress(counts))
}

/// Describes the state of a batch and its meaning.
pub(super) fn standing(row: &BatchView) -> String {
    let counts = &row.counts;
    match row.state {
        BatchState::Running if row.stopped => "running: asked to stop, waiting for running jobs".to_owned(),
        BatchState::Running if counts.failed > 0 => {
            format!("running: {} failed, others continue", tasks(counts.failed))
        }
        BatchState::Running => "running".to_owned(),
        BatchState::Done => "done".to_owned(),
        BatchState::Failed if counts.waiting > 0 => {
            format!("failed: {} failed, and {} wait for them", tasks(counts.failed), count(counts.waiting))
        }
        BatchState::Failed => format!("failed: {} failed, all others have ended", tasks(counts.failed)),
        BatchState::Aborted if row.stopped => "aborted: nothing starts until it is resumed".to_owned(),
        BatchState::Aborted => {
            format!("aborted: {} aborted, and no other task can continue", tasks(counts.aborted))
        }
        BatchState::Canceled => format!("canceled: {} canceled", tasks(counts.canceled)),
    }
}

/// Returns commands that can advance a batch, each with its effect.
pub(super) fn remedies(row: &BatchView, failed: &[TaskView]) -> Vec<(String, &'static str)> {
    let id = row.id;
    let mut remedies = Vec::new();
    if row.stopped {
        remedies.push((format!("milepost batch resume {id}"), "resumes it"));
    }
    let mut plain = None;
    for task in failed {
        match (task.batch, task.state) {
            (Some(inner), TaskState::Failed) => {
                remedies.push((format!("milepost batch show {inner}"), "shows its failed tasks"));
            }
            (Some(inner), _) => remedies.push((format!("milepost batch resume {inner}"), "resumes it")),
            (None, _) => plain = plain.or(Some(&task.key)),
        }
    }
    remedies.truncate(3);
    if !failed.is_empty() && !row.state.is_ended() {
        remedies.push((format!("milepost batch rerun {id} --failed"), "reruns the failed tasks"));
    }
    if let Some(key) = plain.filter(|_| !row.state.is_ended()) {
        let mark = format!("milepost batch mark {id} {key} success");
        remedies.push((mark, "continues as if the task had succeeded"));
        remedies.push((
            format!("milepost batch cancel {id} --subtree {key}"),
            "cancels the task and its successors",
        ));
    }
    remedies
}

/// Returns how long a task waited for a worker, and how long it has run so far.
pub(super) fn times(task: &TaskView, now: Timestamp) -> (Option<Duration>, Option<Duration>) {
    let between = |from: Timestamp, to: Timestamp| to.duration_since(from).try_into().unwrap_or_default();
    let until = task.ended_at.unwrap_or(now);
    // An inner batch runs from its creation.
    let started = task.started_at.or(task.released_at.filter(|_| task.batch.is_some()));
    // A task that no longer waits but never started has not waited for a worker.
    let taken = started.or(Some(until).filter(|_| matches!(task.state, TaskState::Active | TaskState::Due)));
    let waited = task.released_at.zip(taken).map(|(released, taken)| between(released, taken));
    (waited, started.map(|started| between(started, until)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_a_bound_are_counted() {
        assert_eq!(some(&["a", "b"], 2), "a, b");
        assert_eq!(some(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn what_is_not_quite_all_is_not_said_to_be() {
        let counts = Counts { succeeded: 999, active: 1, ..Counts::default() };
        assert_eq!(bar(&counts), "[=============================>] 999 of 1,000 tasks ended (99 %)");
        assert_eq!(super::counts(&counts), "1 active, 999 succeeded");
        let done = Counts { succeeded: 1, ..Counts::default() };
        assert_eq!(bar(&done), format!("[{}] 1 of 1 task ended (100 %)", "=".repeat(30)));
    }
}

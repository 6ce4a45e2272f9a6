//! A stacked bar that shows how many jobs or tasks are in each state.

use std::fmt;

use askama::filters::HtmlSafe;
use milepost_core::dag::state::{Counts, TaskState};
use milepost_core::state::JobState;

/// Width of the drawing, in units of its view box.
const WIDTH: f64 = 1000.0;

/// A stacked bar.
#[derive(Clone, Debug)]
pub(crate) struct StateBar {
    counts: Vec<(&'static str, u64)>,
    /// The number for which the bar is full.
    full: u64,
}

impl StateBar {
    /// Creates the bar of jobs by state. `longest`: the number of jobs for which the bar is full, so that bars can be compared.
    pub(crate) fn of_jobs(counts: &[(JobState, i64)], longest: i64) -> Self {
        let order = [
            JobState::Failed,
            JobState::Aborted,
            JobState::RetryWait,
            JobState::Running,
            JobState::Pending,
            JobState::Blocked,
        ];
        let number = |state| counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, number)| *number);
        let counts = order.into_iter().map(|state| (state.as_str(), number(state).unsigned_abs())).collect();
        Self { counts, full: longest.unsigned_abs() }
    }

    /// Creates the bar of tasks by state, ended ones first.
    pub(crate) fn of_tasks(counts: &Counts) -> Self {
        Self {
            counts: by_state(counts).map(|(state, number)| (state.as_str(), number)).to_vec(),
            full: counts.total(),
        }
    }
}

/// Returns the number of tasks in each state, in display order.
pub(crate) const fn by_state(counts: &Counts) -> [(TaskState, u64); 8] {
    [
        (TaskState::Succeeded, counts.succeeded),
        (TaskState::Skipped, counts.skipped),
        (TaskState::Canceled, counts.canceled),
        (TaskState::Failed, counts.failed),
        (TaskState::Aborted, counts.aborted),
        (TaskState::Active, counts.active),
        (TaskState::Due, counts.due),
        (TaskState::Waiting, counts.waiting),
    ]
}

impl fmt::Display for StateBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some: Vec<_> = self.counts.iter().filter(|(_, number)| *number > 0).collect();
        let total = some.iter().map(|(_, number)| number).sum::<u64>().max(self.full);
        let words: Vec<String> = some.iter().map(|(state, number)| format!("{number} {state}")).collect();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(", ") };
        write!(
            f,
            "<svg class=\"stack\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{words}\">"
        )?;
        let mut x = 0.0;
        for (state, number) in some {
            // The minimum width keeps small counts visible.
            let width = (*number as f64 / total as f64 * WIDTH).max(8.0);
            write!(f, "<rect class=\"b-{state}\" x=\"{x:.0}\" width=\"{width:.0}\" height=\"10\"/>")?;
            x += width;
        }
        f.write_str("</svg>")
    }
}

impl HtmlSafe for StateBar {}

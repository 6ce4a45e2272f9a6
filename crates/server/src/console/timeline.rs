//! The timeline of a batch: when each task waited for a worker, and when it ran.

use std::cmp::Reverse;
use std::fmt;

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use milepost_core::batch::listing::TaskView;

use super::batch_tasks::ran;
use super::format::{between, length};

/// Maximum number of tasks in a timeline: those that ran longest.
const TASKS: usize = 50;
/// Width of a drawing, in units of its view box.
const WIDTH: f64 = 1000.0;
/// Minimum width of a bar, which keeps short runs visible.
const LEAST: f64 = 3.0;

/// The tasks of a batch over time.
#[derive(Default)]
pub(super) struct Timeline {
    /// The rows, by the time at which the task could run.
    pub(super) rows: Vec<Row>,
    /// The duration from the first task to the last.
    pub(super) took: String,
    /// Whether there are more tasks that ran.
    pub(super) has_more: bool,
}

/// A task in the timeline.
pub(super) struct Row {
    pub(super) key: String,
    pub(super) waited: String,
    pub(super) ran: String,
    pub(super) drawing: Drawing,
}

/// The bars of a task: the wait, and the run.
pub(super) struct Drawing {
    state: &'static str,
    wait: (f64, f64),
    run: (f64, f64),
}

impl Timeline {
    /// Creates the timeline of the tasks that have begun.
    pub(super) fn of(tasks: &[TaskView], now: Timestamp) -> Self {
        let mut begun: Vec<&TaskView> = tasks.iter().filter(|task| !ran(task, now).is_zero()).collect();
        let has_more = begun.len() > TASKS;
        begun.sort_by_key(|task| Reverse(ran(task, now)));
        begun.truncate(TASKS);
        begun.sort_by_key(|task| (released(task), task.task));
        let from = begun.iter().filter_map(|task| released(task)).min().unwrap_or(now);
        let to = begun.iter().map(|task| task.ended_at.unwrap_or(now)).max().unwrap_or(now);
        let all = between(from, to).as_secs_f64().max(f64::MIN_POSITIVE);
        let x = |at: Timestamp| between(from, at).as_secs_f64() / all * WIDTH;
        let row = |task: &TaskView| {
            let ended = task.ended_at.unwrap_or(now);
            let ready = released(task).unwrap_or(from);
            let started = task.started_at.unwrap_or(ready);
            let waited = between(ready, started);
            Row {
                key: task.key.clone(),
                waited: if waited.is_zero() { String::new() } else { length(waited) },
                ran: length(ran(task, now)),
                drawing: Drawing {
                    state: task.state.as_str(),
                    wait: (x(ready), x(started) - x(ready)),
                    run: (x(started).min(WIDTH - LEAST), (x(ended) - x(started)).max(LEAST)),
                },
            }
        };
        Self { rows: begun.into_iter().map(row).collect(), took: length(between(from, to)), has_more }
    }
}

/// Returns when the task could run.
fn released(task: &TaskView) -> Option<Timestamp> {
    task.released_at.or(task.started_at)
}

impl fmt::Display for Drawing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, wait, run } = self;
        write!(
            f,
            "<svg class=\"stack\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"b-waiting\" x=\"{:.1}\" y=\"4\" width=\"{:.1}\" height=\"2\"/>\
             <rect class=\"b-{state}\" x=\"{:.1}\" width=\"{:.1}\" height=\"10\"/></svg>",
            wait.0, wait.1, run.0, run.1
        )
    }
}

impl HtmlSafe for Drawing {}

#[cfg(test)]
mod tests {
    use milepost_core::dag::state::TaskState;

    use super::*;

    fn task(number: u32, times: [Option<&str>; 3]) -> TaskView {
        let [released_at, started_at, ended_at] =
            times.map(|at| at.map(|at| format!("2026-11-29T00:00:{at}Z").parse().unwrap()));
        TaskView {
            task: number,
            key: format!("t{number}"),
            state: TaskState::Succeeded,
            generation: 1,
            pre_cnt: 0,
            job: None,
            batch: None,
            job_state: None,
            attempt: None,
            released_at,
            started_at,
            ended_at,
            progress: None,
            error: None,
            wait: None,
        }
    }

    #[test]
    fn tasks_are_ordered_by_their_release_and_drawn_where_they_waited_and_ran() {
        let now = "2026-11-29T00:00:20Z".parse().unwrap();
        let tasks = [
            task(0, [Some("10"), Some("15"), None]),
            task(1, [Some("00"), Some("05"), Some("10")]),
            task(2, [Some("00"), None, None]),
        ];
        let timeline = Timeline::of(&tasks, now);
        let rows: Vec<_> =
            timeline.rows.iter().map(|row| (row.key.as_str(), &*row.waited, &*row.ran)).collect();
        assert_eq!(
            rows,
            [("t1", "5 s", "5 s"), ("t0", "5 s", "5 s")],
            "a task that has not begun is left out"
        );
        assert_eq!((timeline.took.as_str(), timeline.has_more), ("20 s", false));
        let drawings: Vec<_> = timeline.rows.iter().map(|row| (row.drawing.wait, row.drawing.run)).collect();
        assert_eq!(drawings, [((0.0, 250.0), (250.0, 250.0)), ((500.0, 250.0), (750.0, 250.0))]);
        assert!(Timeline::of(&[], now).rows.is_empty());
    }

    #[test]
    fn only_the_tasks_that_ran_longest_are_shown() {
        let now = "2026-11-29T00:00:59Z".parse().unwrap();
        let tasks: Vec<TaskView> = (0..60)
            .map(|number| task(number, [Some("00"), Some("00"), Some(&format!("{number:02}"))]))
            .collect();
        let timeline = Timeline::of(&tasks, now);
        let keys: Vec<&str> = timeline.rows.iter().map(|row| row.key.as_str()).collect();
        assert!(timeline.has_more && keys.len() == TASKS && !keys.contains(&"t9") && keys.contains(&"t10"));
    }
}

//! The table of a batch's tasks; tasks that need attention come first.

use anyhow::Result;
use jiff::Timestamp;
use milepost_cli_support::output::{self, printable};
use milepost_cli_support::table::{Column, Field, Listing};
use milepost_core::batch::listing::{TaskFilter, TaskView};
use milepost_core::batch::subject::Subject;
use milepost_core::dag::state::TaskState;
use milepost_core::port::BatchStore;

use super::find;
use super::words;
use crate::time::length;

/// The default number of listed tasks.
const LISTED: u32 = 20;
/// The number of failures that are printed.
const FAILURES: usize = 5;
/// The number of characters of each failure.
const FAILURE_CHARS: usize = 300;
/// The order of states in the list.
const ORDER: [TaskState; 8] = [
    TaskState::Failed,
    TaskState::Aborted,
    TaskState::Active,
    TaskState::Due,
    TaskState::Waiting,
    TaskState::Succeeded,
    TaskState::Skipped,
    TaskState::Canceled,
];

/// Some of the tasks of a batch.
pub(super) struct Tasks {
    pub(super) shown: Vec<TaskView>,
    /// The number of tasks that are not listed.
    left_out: u64,
}

/// Returns the tasks to list: all, those in some states, or the first ones in the order of [`ORDER`].
pub(super) async fn wanted(
    subject: &Subject,
    all: bool,
    states: &[TaskState],
    store: &dyn BatchStore,
) -> Result<Tasks> {
    let id = subject.row.id;
    let mut shown = if all || !states.is_empty() {
        let filter = TaskFilter { states: states.to_vec(), ..TaskFilter::default() };
        find::all_tasks(id, filter, store).await?
    } else {
        let mut first = Vec::new();
        for state in ORDER {
            let limit = LISTED.saturating_sub(u32::try_from(first.len()).unwrap_or(LISTED));
            if limit > 0 {
                let filter = TaskFilter { states: vec![state], limit, ..TaskFilter::default() };
                first.extend(store.batch_tasks(id, &filter).await?);
            }
        }
        first
    };
    // The store returns keys in alphabetical order; the list follows the layers of the DAG.
    let layer = |task: u32| subject.dag.as_ref().map_or(0, |dag| dag.graph().layer(task));
    let rank = |state: TaskState| ORDER.iter().position(|known| *known == state);
    shown.sort_by_key(|task| (if all { None } else { rank(task.state) }, layer(task.task), task.task));
    let left_out = match states {
        [] => subject.row.counts.total().saturating_sub(shown.len() as u64),
        _ => 0,
    };
    Ok(Tasks { shown, left_out })
}

pub(super) fn print(tasks: &Tasks, now: Timestamp) -> Result<()> {
    let mut listing = Listing::new([
        Column::new("TASK"),
        Column::unbroken("STATE"),
        Column::unbroken("WAITED"),
        Column::unbroken("RAN"),
        Column::unbroken("JOB OR BATCH"),
    ]);
    for task in &tasks.shown {
        let (waited, ran) = words::times(task, now);
        let made = task.job.map(|job| job.to_string()).or_else(|| task.batch.map(|batch| batch.to_string()));
        listing.row([
            Field::text(&task.key),
            Field::task_state(task.state),
            Field::maybe(waited.map(length)),
            Field::maybe(ran.map(length)),
            Field::maybe(made),
        ]);
    }
    output::line("\ntasks")?;
    listing.print()?;
    if tasks.left_out > 0 {
        output::line(format_args!(
            "and {} more; list them with --all or --state STATE",
            words::count(tasks.left_out)
        ))?;
    }
    print_failures(tasks)
}

fn print_failures(tasks: &Tasks) -> Result<()> {
    let failures: Vec<(&str, &str)> =
        tasks.shown.iter().filter_map(|task| Some((task.key.as_str(), task.error.as_deref()?))).collect();
    if failures.is_empty() {
        return Ok(());
    }
    output::line("\nfailures")?;
    for (key, error) in failures.iter().take(FAILURES) {
        let cut: String = error.chars().take(FAILURE_CHARS).collect();
        let more = if cut.len() < error.len() { "…" } else { "" };
        let words = printable(cut.trim_end()).replace('\n', "\n    ");
        output::line(format_args!("  {}\n    {words}{more}", printable(key)))?;
    }
    if failures.len() > FAILURES {
        output::line(format_args!("  and {} more", failures.len() - FAILURES))?;
    }
    Ok(())
}

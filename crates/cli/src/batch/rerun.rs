//! `milepost batch rerun`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use milepost_core::batch::listing::{BatchView, TaskFilter, TaskView};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::state::{Counts, TaskState};
use milepost_core::port::BatchStore;
use serde_json::json;

use super::find::{self, Subject, WhichArgs};
use super::operate::{self, WhyArgs};
use super::words;
use crate::output::{self, Outcome};

/// How many names a preview tells.
const NAMES: usize = 12;

const EXAMPLES: &str = "\
What is run again is decided anew, in the version of the DAG that the batch has.
--task runs just these tasks; what comes after them stays as it is, while
--downstream-of takes it along. What waits for a task that failed waits still,
and goes on by itself when --failed has made it succeed.

What would run is shown first. On a terminal it is asked whether to go on; in
scripts --yes says so.

Examples:
  milepost batch rerun 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --failed
  milepost batch rerun settlement --key 2026-11-01 --downstream-of load --yes
  milepost batch rerun settlement --key 2026-11-01 --task report --task mail --note 'new logo'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("what").required(true))]
pub(crate) struct RerunArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// A task by its key, of an item of a list by its place; may be given several times
    #[arg(long = "task", value_name = "TASK", group = "what")]
    tasks: Vec<String>,
    /// A task and all that comes after it; may be given several times
    #[arg(long, value_name = "TASK", group = "what")]
    downstream_of: Vec<String>,
    /// The tasks that have failed or were aborted
    #[arg(long, group = "what")]
    failed: bool,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    why: WhyArgs,
    /// Print one JSON object; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

pub(super) async fn run(args: RerunArgs, store: &dyn BatchStore) -> Result<Outcome> {
    let subject = args.which.subject(store).await?;
    let tasks = chosen(&args, &subject, store).await?;
    if tasks.is_empty() {
        bail!("there is nothing to rerun in batch {}: no task has failed or was aborted", subject.row.id);
    }
    if !args.json {
        output::note(preview(&subject.row, &tasks));
    }
    if !args.yes {
        match output::confirmed("Run them again?")? {
            Some(true) => {}
            Some(false) => bail!("nothing was done"),
            None => bail!("nothing was done, since nobody can be asked here; --yes does it without asking"),
        }
    }
    let numbers = tasks.iter().map(|task| task.task).collect();
    let what = BatchVerb::Rerun { tasks: numbers };
    let operated = operate::operate(&subject, what, &args.why, Duration::ZERO, store).await?;
    let id = subject.row.id;
    if args.json {
        let keys: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
        output::heard_or_not(output::json(&json!({ "batch": id, "operated": operated, "tasks": keys })))?;
    } else {
        let changed = words::tasks(operated.changed);
        let rerun = operated.generation.saturating_sub(1);
        output::deed(format_args!("{id}  rerun {rerun}: {changed} put back"))?;
    }
    Ok(Outcome::Done)
}

/// The tasks that are asked for, as they stand now.
async fn chosen(args: &RerunArgs, subject: &Subject, store: &dyn BatchStore) -> Result<Vec<TaskView>> {
    let mut filter = TaskFilter::default();
    if args.failed {
        filter.states = vec![TaskState::Failed, TaskState::Aborted];
        return find::all_tasks(subject.row.id, filter, store).await;
    }
    let named = subject.tasks(if args.tasks.is_empty() { &args.downstream_of } else { &args.tasks })?;
    filter.tasks = match &subject.dag {
        Some(dag) if args.tasks.is_empty() => dag.graph().downstream(&named),
        _ => named,
    };
    filter.tasks.sort_unstable();
    filter.tasks.dedup();
    find::all_tasks(subject.row.id, filter, store).await
}

/// What will run, and from what it comes back.
fn preview(row: &BatchView, tasks: &[TaskView]) -> String {
    let counts: Counts = tasks.iter().map(|task| task.state).collect();
    let keys: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
    let active = match counts.active {
        0 => String::new(),
        active => format!(
            "\n{} under way: while a job runs it cannot be run again; `milepost batch abort` stops it",
            words::tasks(active)
        ),
    };
    format!(
        "{} of {} in batch {} will run again: {}\nnow {}{active}",
        words::tasks(tasks.len() as u64),
        words::count(row.counts.total()),
        row.id,
        words::some(&keys, NAMES),
        words::counts(&counts),
    )
}

#[cfg(test)]
mod tests {
    use milepost_core::dag::state::BatchState;
    use serde_json::json;

    use super::*;

    fn task(number: u32, state: TaskState) -> TaskView {
        TaskView {
            task: number,
            key: format!("t{number}"),
            state,
            generation: 1,
            pre_cnt: 0,
            job: None,
            batch: None,
            job_state: None,
            attempt: None,
            released_at: None,
            started_at: None,
            ended_at: None,
            progress: None,
            error: None,
        }
    }

    fn batch(tasks: &[TaskView]) -> BatchView {
        let now = jiff::Timestamp::UNIX_EPOCH;
        BatchView {
            id: "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c".parse().unwrap(),
            dag: "d".to_owned(),
            number: 1,
            version: serde_json::from_value(json!("0".repeat(64))).unwrap(),
            key: None,
            state: BatchState::Failed,
            stopped: false,
            generation: 1,
            counts: tasks.iter().map(|task| task.state).collect(),
            parent: None,
            nominal_at: None,
            created_at: now,
            updated_at: now,
            ended_at: None,
        }
    }

    #[test]
    fn a_preview_names_some_tasks_and_counts_the_others() {
        let tasks: Vec<TaskView> = (0..2000).map(|number| task(number, TaskState::Succeeded)).collect();
        let said = preview(&batch(&tasks), &tasks[..14]);
        let names = "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 2 more";
        let id = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
        assert_eq!(
            said,
            format!("14 tasks of 2,000 in batch {id} will run again: {names}\nnow 14 succeeded")
        );
        let said = preview(&batch(&tasks), &[task(0, TaskState::Failed), task(1, TaskState::Active)]);
        assert!(said.contains("now 1 failed, 1 active\n1 task under way"), "{said}");
    }

    #[test]
    fn what_helps_is_told_by_what_failed() {
        let tasks = [task(0, TaskState::Failed), task(1, TaskState::Waiting)];
        let row = batch(&tasks);
        let told = words::remedies(&row, &tasks[..1]);
        let commands: Vec<&str> = told.iter().map(|(command, _)| command.as_str()).collect();
        assert!(commands[0].ends_with("rerun 0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c --failed"), "{commands:?}");
        assert!(
            commands[1].ends_with(" t0 success") && commands[2].ends_with("--subtree t0"),
            "{commands:?}"
        );
        assert_eq!(words::standing(&row), "failed: 1 task failed, and 1 wait for that");
        let aborted = BatchView { stopped: true, state: BatchState::Aborted, ..row };
        assert!(words::remedies(&aborted, &[])[0].0.starts_with("milepost batch resume "));
    }
}

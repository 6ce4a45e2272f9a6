//! What a rerun will do.

use anyhow::{Result, bail};
use milepost_core::batch::listing::{BatchView, TaskFilter, TaskView, VersionView};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::{Counts, TaskState};
use milepost_core::port::BatchStore;

use super::find::{self, Subject};
use super::rerun::ChosenArgs;
use super::words;

/// How many names a preview tells.
const NAMES: usize = 12;

/// Which tasks will run again, and in which version.
pub(super) struct Plan {
    /// The tasks as they stand now, by the numbers that they have now.
    again: Vec<TaskView>,
    /// The version to which the batch goes over, if it does.
    pub(super) change: Option<Change>,
}

/// What another version is to a batch.
pub(super) struct Change {
    pub(super) to: VersionView,
    /// The numbers that the tasks to run again have in it.
    numbers: Vec<u32>,
    /// Keys of tasks that only that version has.
    pub(super) new: Vec<String>,
    /// Keys of tasks that it does not have.
    pub(super) gone: Vec<String>,
    /// Keys of tasks that are defined differently, have ended and will not run again.
    stays: Vec<String>,
}

impl Plan {
    /// In the version that the batch has.
    pub(super) async fn pinned(
        chosen: &ChosenArgs,
        subject: &Subject,
        store: &dyn BatchStore,
    ) -> Result<Self> {
        let filter = TaskFilter { tasks: named(chosen, subject)?, ..failed_only(chosen) };
        let again = find::all_tasks(subject.row.id, filter, store).await?;
        if again.is_empty() {
            bail!("there is nothing to rerun in batch {}: no task has failed or was aborted", subject.row.id);
        }
        Ok(Self { again, change: None })
    }

    /// In the latest version, if that is another one.
    pub(super) async fn latest(
        chosen: &ChosenArgs,
        subject: &Subject,
        store: &dyn BatchStore,
    ) -> Result<Self> {
        let old = subject.dag()?;
        let (to, definition) = store.dag(&subject.row.dag, None).await?;
        if to.version == subject.row.version {
            return Self::pinned(chosen, subject, store).await;
        }
        let then = Subject { row: subject.row.clone(), dag: Some(Dag::check(definition)?) };
        let (dag, named) = (then.dag()?, named(chosen, &then)?);
        let runs = |task: &TaskView| {
            let failed = matches!(task.state, TaskState::Failed | TaskState::Aborted);
            let there = dag.graph().task(&task.key);
            there.is_some_and(
                |number| if chosen.failed { failed } else { named.binary_search(&number).is_ok() },
            )
        };
        let tasks = find::all_tasks(subject.row.id, TaskFilter::default(), store).await?;
        let (again, others): (Vec<TaskView>, Vec<TaskView>) = tasks.into_iter().partition(runs);
        let stays = others.into_iter().filter(|task| task.state.is_ended() && is_mended(old, dag, &task.key));
        let stays = stays.map(|task| task.key).collect();
        let numbers = again.iter().filter_map(|task| dag.graph().task(&task.key)).collect();
        let (new, gone) = (missing(dag, old), missing(old, dag));
        Ok(Self { again, change: Some(Change { to, numbers, new, gone, stays }) })
    }

    /// What it is to the store.
    pub(super) fn verb(&self) -> BatchVerb {
        match &self.change {
            None => BatchVerb::Rerun { tasks: self.again.iter().map(|task| task.task).collect() },
            Some(change) => BatchVerb::RerunIn { version: change.to.version, tasks: change.numbers.clone() },
        }
    }

    /// The keys of the tasks that will run again.
    pub(super) fn keys(&self) -> Vec<&str> {
        self.again.iter().map(|task| task.key.as_str()).collect()
    }

    /// What will run, and from what it comes back.
    pub(super) fn preview(&self, row: &BatchView) -> String {
        let change = self.change.as_ref().map(|change| change.preview(row)).unwrap_or_default();
        let total = words::count(row.counts.total());
        let tasks = format!("{} of {total} in batch {}", words::tasks(self.again.len() as u64), row.id);
        if self.again.is_empty() {
            return format!("{change}{tasks} will run again");
        }
        let counts: Counts = self.again.iter().map(|task| task.state).collect();
        let active = match counts.active {
            active if active > 0 && self.change.is_none() => format!(
                "\n{} under way: while a job runs it cannot be run again; `milepost batch abort` stops it",
                words::tasks(active)
            ),
            _ => String::new(),
        };
        let keys = words::some(&self.keys(), NAMES);
        format!("{change}{tasks} will run again: {keys}\nnow {}{active}", words::counts(&counts))
    }
}

impl Change {
    fn preview(&self, row: &BatchView) -> String {
        let Self { to, new, gone, stays, .. } = self;
        let (from, name) = (format!("version {} ({})", row.number, words::short(row.version)), &to.dag);
        let to = format!("version {} ({})", to.number, words::short(to.version));
        let mut lines = vec![format!("the batch goes over from {from} to {to} of {name}")];
        let mut tell = |keys: &[String], what: &str| {
            if !keys.is_empty() {
                let tasks = words::tasks(keys.len() as u64);
                lines.push(format!("{tasks} {what}: {}", words::some(keys, NAMES)));
            }
        };
        tell(new, "new, to run when their turn comes");
        tell(gone, "gone, and given up unless they have ended");
        tell(stays, "defined differently, but they stay as they ended");
        if row.counts.active > 0 {
            let active = words::tasks(row.counts.active);
            lines.push(format!(
                "{active} under way: it cannot go over while jobs run; `milepost batch abort` stops them"
            ));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The numbers of the tasks that are named, in order; none where it is those that failed.
fn named(chosen: &ChosenArgs, subject: &Subject) -> Result<Vec<u32>> {
    let named = subject.tasks(if chosen.tasks.is_empty() { &chosen.downstream_of } else { &chosen.tasks })?;
    let mut named = match &subject.dag {
        Some(dag) if chosen.tasks.is_empty() => dag.graph().downstream(&named),
        _ => named,
    };
    named.sort_unstable();
    named.dedup();
    Ok(named)
}

/// Only the tasks that failed, where it is those.
fn failed_only(chosen: &ChosenArgs) -> TaskFilter {
    let states = if chosen.failed { vec![TaskState::Failed, TaskState::Aborted] } else { Vec::new() };
    TaskFilter { states, ..TaskFilter::default() }
}

/// The keys that one version has and the other has not.
fn missing(of: &Dag, other: &Dag) -> Vec<String> {
    of.graph().keys().iter().filter(|key| other.graph().task(key).is_none()).cloned().collect()
}

/// Whether both versions have a task, and it is not the same.
fn is_mended(old: &Dag, new: &Dag, key: &str) -> bool {
    let spec = |dag: &Dag| {
        let (_, spec) = dag.definition().tasks.get(dag.graph().task(key)? as usize)?;
        Some(spec.clone())
    };
    matches!((spec(old), spec(new)), (Some(old), Some(new)) if old != new)
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
        let plan = |again: &[TaskView]| Plan { again: again.to_vec(), change: None };
        let said = plan(&tasks[..14]).preview(&batch(&tasks));
        let names = "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 2 more";
        let id = "0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c";
        assert_eq!(
            said,
            format!("14 tasks of 2,000 in batch {id} will run again: {names}\nnow 14 succeeded")
        );
        let said = plan(&[task(0, TaskState::Failed), task(1, TaskState::Active)]).preview(&batch(&tasks));
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

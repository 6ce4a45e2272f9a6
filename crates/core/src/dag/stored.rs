//! Tasks of a version as stores keep them: the columns needed for counting are separate from the definition.

use super::checked::Dag;
use super::definition::{Task, Work};
use super::rule::Rule;

/// One task of a version.
#[derive(Clone, Debug)]
pub struct StoredTask<'d> {
    /// Its number.
    pub task: u32,
    /// Its key.
    pub key: &'d str,
    /// Its definition.
    pub spec: &'d Task,
    /// Its trigger rule.
    pub rule: Rule,
    /// Whether it is a job with a constant payload and no condition, so that only its counters decide whether it runs.
    pub plain: bool,
    /// Its successors.
    pub successors: &'d [u32],
    /// Its predecessors.
    pub predecessors: &'d [u32],
    /// The predecessors whose results its expressions read.
    pub reads: Vec<u32>,
}

impl Dag {
    /// Returns its tasks by number, as stores keep them.
    pub fn stored(&self) -> impl Iterator<Item = StoredTask<'_>> {
        (0..).zip(&self.definition().tasks).map(|(task, (key, spec))| {
            let checked = self.task(task);
            let (reads, predecessors) = (checked.reads(), self.graph().predecessors(task));
            let is_job = matches!(spec.work(), Some(Work::Job { .. }));
            StoredTask {
                task,
                key,
                spec,
                rule: spec.rule,
                plain: is_job && checked.when.is_none() && checked.payload.is_none(),
                successors: self.graph().successors(task),
                predecessors,
                reads: if reads.all_tasks {
                    predecessors.to_vec()
                } else {
                    reads.tasks.iter().filter_map(|key| self.graph().task(key)).collect()
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dag::definition::Definition;

    #[test]
    fn a_task_is_plain_when_nothing_has_to_be_worked_out() {
        let dag = Dag::check(
            Definition::new("d")
                .task("a", Task::job("k").payload(json!({"n": 1})))
                .task("b", Task::job("k").payload(json!("$${")).after(["a"]))
                .task("c", Task::job("k").when("input.x").after(["a"]))
                .task("d", Task::bulk("k").after(["a"]))
                .task("e", Task::each("k", "tasks.c.output").after(["a", "c"]))
                .task("f", Task::job("k").when("tasks.all(t, tasks[t].state == 'failed')").after(["c", "e"])),
        )
        .unwrap();
        let stored: Vec<_> = dag.stored().collect();
        let plain: Vec<bool> = stored.iter().map(|task| task.plain).collect();
        assert_eq!(plain, [true, false, false, false, false, false]);
        assert_eq!(stored[4].reads, [2]);
        assert_eq!(stored[5].reads, [2, 4]);
        assert_eq!((stored[0].successors, stored[4].predecessors), (&[1, 2, 3, 4][..], &[0, 2][..]));
    }
}

//! A batch with all its tasks, as pages show it. It is cached, since a batch may have 50,000 tasks.

use std::time::Duration;

use jiff::Timestamp;
use milepost_core::batch::listing::TaskView;
use milepost_core::dag::graph::Graph;
use milepost_core::dag::state::TaskState;

use super::format::between;

/// A batch, its graph and its tasks.
pub(crate) struct BatchTasks {
    /// The graph; `None` for the items of a list, which are numbered and have no edges. The rest of the DAG can have many megabytes.
    pub(super) graph: Option<Graph>,
    /// The tasks, ordered by number.
    pub(super) tasks: Vec<TaskView>,
}

impl BatchTasks {
    pub(super) fn task(&self, number: u32) -> Option<&TaskView> {
        let at = self.tasks.binary_search_by_key(&number, |task| task.task).ok()?;
        self.tasks.get(at)
    }

    pub(super) fn state(&self, number: u32) -> TaskState {
        self.task(number).map_or(TaskState::Waiting, |task| task.state)
    }

    /// Returns the path that has taken longest so far, with the duration of each step.
    pub(super) fn critical_path(&self, now: Timestamp) -> Vec<(u32, Duration)> {
        let Some(graph) = &self.graph else { return Vec::new() };
        let took = |number: u32| self.task(number).map_or(Duration::ZERO, |task| ran(task, now));
        let path = graph.critical_path(took);
        path.tasks
            .into_iter()
            .map(|number| (number, took(number)))
            .filter(|(_, took)| !took.is_zero())
            .collect()
    }
}

/// Returns how long a task has run so far.
pub(super) fn ran(task: &TaskView, now: Timestamp) -> Duration {
    // An inner batch runs from its creation.
    let started = task.started_at.or(task.released_at.filter(|_| task.batch.is_some()));
    started.map_or(Duration::ZERO, |started| between(started, task.ended_at.unwrap_or(now)))
}

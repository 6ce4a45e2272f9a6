//! A definition that was checked: what stores keep and runtimes run.

mod check;
mod task;

use std::sync::Arc;

use super::definition::Definition;
use super::fault::InvalidDag;
use super::graph::Graph;
use super::rule::Rule;
use super::version::Version;
pub use task::CheckedTask;

/// The most tasks in a DAG.
pub const TASKS_MAX: usize = 100_000;
/// The most edges in a DAG.
pub const EDGES_MAX: usize = 1_000_000;
/// The largest canonical form of a DAG.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A DAG that can run: its content, its version, its graph, and its expressions, compiled. Clones share all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dag(Arc<Content>);

#[derive(Debug, PartialEq)]
struct Content {
    definition: Definition,
    canonical: Arc<str>,
    version: Version,
    graph: Graph,
    /// `None`: it has no expressions, as most tasks of large DAGs.
    tasks: Vec<Option<Box<CheckedTask>>>,
}

impl Dag {
    /// Checks a definition. Linear in tasks and edges, but for their sorting.
    ///
    /// # Errors
    /// [`InvalidDag`] with all that is wrong, each with its task and place.
    pub fn check(definition: Definition) -> Result<Self, InvalidDag> {
        check::check(definition)
    }

    /// The definition, its tasks in the order of their numbers.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.0.definition
    }

    /// The [canonical form](super::version::canonical): what a store keeps of a version.
    #[must_use]
    pub fn canonical(&self) -> &Arc<str> {
        &self.0.canonical
    }

    /// The version: the same content has the same.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// A task by its number.
    #[must_use]
    pub fn task(&self, task: u32) -> &CheckedTask {
        static PLAIN: CheckedTask = CheckedTask { when: None, each: None, payload: None };
        self.0.tasks[task as usize].as_deref().unwrap_or(&PLAIN)
    }

    /// The rule of each task, by number.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        self.0.definition.tasks.iter().map(|(_, task)| task.rule).collect()
    }

    /// What canceling these tasks and all that comes after them cancels, each once, in order: a task with the rule
    /// [`Rule::Always`] that is not named stays, and so does what only such a task leads to.
    #[must_use]
    pub fn cancel_set(&self, tasks: &[u32]) -> Vec<u32> {
        let stays = |task: u32| self.0.definition.tasks[task as usize].1.rule == Rule::Always;
        self.0.graph.downstream_where(tasks, |task| !stays(task))
    }
}

#[cfg(test)]
mod tests;

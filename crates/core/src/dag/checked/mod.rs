//! Checked definitions, which stores keep and runtimes run.

mod check;
mod task;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::definition::Definition;
use super::fault::InvalidDag;
use super::graph::Graph;
use super::rule::Rule;
use super::version::Version;
pub use task::CheckedTask;

/// The maximum number of tasks in a DAG.
pub const TASKS_MAX: usize = 100_000;
/// The maximum number of edges in a DAG.
pub const EDGES_MAX: usize = 1_000_000;
/// The maximum size of a DAG's canonical form, in bytes.
pub const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A valid DAG: its content, version, graph and compiled expressions. Clones share all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dag(Arc<Content>);

#[derive(Debug, PartialEq)]
struct Content {
    definition: Definition,
    canonical: Arc<str>,
    version: Version,
    graph: Graph,
    /// `None` for a task without expressions, which is the case for most tasks of large DAGs.
    tasks: Vec<Option<Box<CheckedTask>>>,
}

impl Dag {
    /// Checks a definition, in linear time except for sorting.
    ///
    /// # Errors
    /// [`InvalidDag`] with all faults, each with its task and location.
    pub fn check(definition: Definition) -> Result<Self, InvalidDag> {
        check::check(definition)
    }

    /// Returns the kinds of its tasks.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<&str> {
        self.0.definition.tasks.iter().filter_map(|(_, task)| task.kind.as_deref()).collect()
    }

    /// Refuses tasks whose kind is one of these bulk jobs: no worker would ever take their jobs.
    ///
    /// # Errors
    /// [`InvalidDag`] with these tasks.
    pub fn check_kinds<'b>(&self, bulk_jobs: impl IntoIterator<Item = &'b str>) -> Result<(), InvalidDag> {
        check::check_kinds(&self.0.definition, &bulk_jobs.into_iter().collect())
    }

    /// Returns the definition, with tasks in the order of their numbers.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.0.definition
    }

    /// Returns the [canonical form](super::version::canonical), which stores keep.
    #[must_use]
    pub fn canonical(&self) -> &Arc<str> {
        &self.0.canonical
    }

    /// Returns the version; equal content has equal versions.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.version
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// Returns a task by its number.
    #[must_use]
    pub fn task(&self, task: u32) -> &CheckedTask {
        static PLAIN: CheckedTask = CheckedTask { when: None, each: None, payload: None };
        self.0.tasks[task as usize].as_deref().unwrap_or(&PLAIN)
    }

    /// Returns the rule of each task, by number.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        self.0.definition.tasks.iter().map(|(_, task)| task.rule).collect()
    }

    /// Returns these tasks and everything downstream of them, each once and in order, for a cancel; without `tasks`, all tasks. A task
    /// with the rule [`Rule::Always`] that is not listed is excluded, and so are the tasks reachable only through such tasks.
    #[must_use]
    pub fn cancel_set(&self, tasks: &[u32]) -> Vec<u32> {
        let is_canceled = |task: u32| self.0.definition.tasks[task as usize].1.rule != Rule::Always;
        if tasks.is_empty() {
            let roots = self.0.graph.roots().filter(|&root| is_canceled(root)).collect::<Vec<_>>();
            return self.0.graph.downstream_where(&roots, is_canceled);
        }
        self.0.graph.downstream_where(tasks, is_canceled)
    }
}

#[cfg(test)]
mod tests;

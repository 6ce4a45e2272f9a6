//! Preview of a rerun: the tasks that will run again.

use super::error::InvalidBatch;
use super::inside::{FAILED, Inside, failed_inside};
use super::listing::{TaskFilter, TaskView, VersionView};
use super::operation::BatchVerb;
use super::subject::Subject;
use crate::dag::checked::Dag;
use crate::dag::state::Counts;
use crate::port::{BatchStore, StoreResult};

/// The selection of tasks to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The tasks with these keys.
    Tasks(Vec<String>),
    /// The tasks with these keys, and all tasks downstream of them.
    Downstream(Vec<String>),
    /// All failed and aborted tasks, including those in inner batches.
    Failed,
}

/// The tasks that will run again, and the version they run in.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// The tasks in their current state, with their current numbers.
    pub again: Vec<TaskView>,
    /// The tasks that run again in inner batches; `None` when inner batches are not searched.
    pub inside: Option<Vec<Inside>>,
    /// The version that the batch changes to, if it does.
    pub change: Option<Change>,
}

/// The differences between the batch's version and another one.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version.
    pub to: VersionView,
    /// The numbers in that version of the tasks to run again.
    numbers: Vec<u32>,
    /// Keys of tasks that only the new version contains.
    pub new: Vec<String>,
    /// Keys of tasks that the new version does not contain.
    pub gone: Vec<String>,
    /// Keys of tasks whose definition differs, and that have ended and will not run again.
    pub stays: Vec<String>,
}

impl Chosen {
    /// Returns the filter for the tasks that a rerun in the current version considers.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] for a key that does not exist.
    pub fn filter(&self, subject: &Subject) -> Result<TaskFilter, InvalidBatch> {
        let states = match self {
            Self::Failed => FAILED.to_vec(),
            Self::Tasks(_) | Self::Downstream(_) => Vec::new(),
        };
        Ok(TaskFilter { states, tasks: self.named(subject)?, ..TaskFilter::default() })
    }

    /// Returns whether the failed tasks inside a task's inner batch run again, rather than the task as a whole. `versions`: the current
    /// version of the batch and the one that it changes to. A task whose definition differs in the new version restarts as a whole.
    #[must_use]
    pub fn goes_inside(&self, task: &TaskView, versions: Option<(&Dag, &Dag)>) -> bool {
        let stays = versions.is_none_or(|(old, new)| {
            new.graph().task(&task.key).is_some() && !is_mended(old, new, &task.key)
        });
        *self == Self::Failed && task.batch.is_some() && stays
    }

    /// Returns the tasks that run again in inner batches; `None` when only named tasks run again.
    ///
    /// # Errors
    /// Errors of the store; [`InvalidBatch::OverAList`].
    pub async fn inside(
        &self,
        subject: &Subject,
        version: Option<&Dag>,
        store: &(impl BatchStore + ?Sized),
    ) -> StoreResult<Option<Vec<Inside>>> {
        if *self != Self::Failed {
            return Ok(None);
        }
        let versions = version.map(|new| subject.dag().map(|old| (old, new))).transpose()?;
        failed_inside(&subject.row, |task| self.goes_inside(task, versions), store).await.map(Some)
    }

    /// Returns the numbers of the named tasks, sorted; empty when failed tasks are selected.
    fn named(&self, subject: &Subject) -> Result<Vec<u32>, InvalidBatch> {
        let numbers = |keys: &[String]| -> Result<Vec<u32>, InvalidBatch> {
            keys.iter().map(|key| subject.task(key)).collect()
        };
        let mut named: Vec<u32> = match (self, &subject.dag) {
            (Self::Failed, _) => Vec::new(),
            (Self::Downstream(keys), Some(dag)) => dag.graph().downstream(&numbers(keys)?),
            (Self::Tasks(keys) | Self::Downstream(keys), _) => numbers(keys)?,
        };
        named.sort_unstable();
        named.dedup();
        Ok(named)
    }
}

impl Rerun {
    /// Creates a rerun in the current version, of the tasks that [`Chosen::filter`] selected. `inside`: the result of [`Chosen::inside`].
    ///
    /// # Errors
    /// [`InvalidBatch::NothingToRerun`] when no task will run again.
    pub fn pinned(
        chosen: &Chosen,
        subject: &Subject,
        mut again: Vec<TaskView>,
        inside: Option<Vec<Inside>>,
    ) -> Result<Self, InvalidBatch> {
        again.retain(|task| !chosen.goes_inside(task, None));
        if again.is_empty() && inside.as_ref().is_none_or(Vec::is_empty) {
            return Err(InvalidBatch::NothingToRerun(subject.row.id));
        }
        Ok(Self { again, inside, change: None })
    }

    /// Creates a rerun in another version of the DAG. `tasks`: all tasks of the batch; `inside`: the result of [`Chosen::inside`].
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when the version does not contain a named task; [`InvalidBatch::OverAList`].
    pub fn in_version(
        chosen: &Chosen,
        subject: &Subject,
        (to, dag): (VersionView, Dag),
        tasks: Vec<TaskView>,
        inside: Option<Vec<Inside>>,
    ) -> Result<Self, InvalidBatch> {
        let old = subject.dag()?;
        let then = Subject { row: subject.row.clone(), dag: Some(dag.clone()) };
        let named = chosen.named(&then)?;
        let runs = |task: &TaskView| match (dag.graph().task(&task.key), chosen) {
            (None, _) => false,
            (Some(_), Chosen::Failed) => {
                FAILED.contains(&task.state) && !chosen.goes_inside(task, Some((old, &dag)))
            }
            (Some(number), _) => named.binary_search(&number).is_ok(),
        };
        let (again, others): (Vec<TaskView>, Vec<TaskView>) = tasks.into_iter().partition(runs);
        let stays =
            others.into_iter().filter(|task| task.state.is_ended() && is_mended(old, &dag, &task.key));
        let stays = stays.map(|task| task.key).collect();
        let numbers = again.iter().filter_map(|task| dag.graph().task(&task.key)).collect();
        let (new, gone) = (missing(&dag, old), missing(old, &dag));
        Ok(Self { again, inside, change: Some(Change { to, numbers, new, gone, stays }) })
    }

    /// Returns the operation for the store.
    #[must_use]
    pub fn verb(&self) -> BatchVerb {
        let inside = self.inside.as_ref().map(|inside| inside.iter().map(Inside::seen).collect());
        let tasks = || self.again.iter().map(|task| task.task).collect();
        match (&self.change, inside) {
            (None, None) => BatchVerb::Rerun { tasks: tasks() },
            (None, Some(inside)) => BatchVerb::RerunFailed { tasks: tasks(), inside },
            (Some(change), inside) => {
                BatchVerb::RerunIn { version: change.to.version, tasks: change.numbers.clone(), inside }
            }
        }
    }

    /// Returns the current states of the tasks that will run again, including those in inner batches, as counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let inside = self.inside.iter().flatten().flat_map(|inside| &inside.again);
        self.again.iter().chain(inside).map(|task| task.state).collect()
    }

    /// Returns their keys. Keys in inner batches are prefixed with the keys of the enclosing tasks, as in `list/3`.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let within = |inside: &Inside| -> Vec<String> {
            inside.again.iter().map(|task| format!("{}/{}", inside.path, task.key)).collect()
        };
        let own = self.again.iter().map(|task| task.key.clone());
        own.chain(self.inside.iter().flatten().flat_map(within)).collect()
    }

    /// Returns the paths of stopped inner batches that will be resumed.
    pub fn resumed(&self) -> impl Iterator<Item = &str> {
        self.inside.iter().flatten().filter(|inside| inside.resumes).map(|inside| inside.path.as_str())
    }
}

/// Returns the keys that `of` contains and `other` does not.
fn missing(of: &Dag, other: &Dag) -> Vec<String> {
    of.graph().keys().iter().filter(|key| other.graph().task(key).is_none()).cloned().collect()
}

/// Returns whether both versions contain the task with different definitions.
fn is_mended(old: &Dag, new: &Dag, key: &str) -> bool {
    let spec = |dag: &Dag| {
        let (_, spec) = dag.definition().tasks.get(dag.graph().task(key)? as usize)?;
        Some(spec.clone())
    };
    matches!((spec(old), spec(new)), (Some(old), Some(new)) if old != new)
}

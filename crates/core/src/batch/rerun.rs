//! What a rerun will do, before it is done.

use super::error::InvalidBatch;
use super::inside::{FAILED, Inside, failed_inside};
use super::listing::{TaskFilter, TaskView, VersionView};
use super::operation::BatchVerb;
use super::subject::Subject;
use crate::dag::checked::Dag;
use crate::dag::state::Counts;
use crate::port::{BatchStore, StoreResult};

/// Which tasks are to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// These, by their keys.
    Tasks(Vec<String>),
    /// These and all that comes after them.
    Downstream(Vec<String>),
    /// Those that have failed or were aborted, in inner batches too.
    Failed,
}

/// Which tasks will run again, and in which version.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// The tasks as they stand now, by the numbers that they have now.
    pub again: Vec<TaskView>,
    /// What runs again in inner batches; `None`: nothing is looked for there.
    pub inside: Option<Vec<Inside>>,
    /// The version to which the batch goes over, if it does.
    pub change: Option<Change>,
}

/// What another version is to a batch.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version.
    pub to: VersionView,
    /// The numbers that the tasks to run again have in it.
    numbers: Vec<u32>,
    /// Keys of tasks that only that version has.
    pub new: Vec<String>,
    /// Keys of tasks that it does not have.
    pub gone: Vec<String>,
    /// Keys of tasks that are defined differently, have ended and will not run again.
    pub stays: Vec<String>,
}

impl Chosen {
    /// The tasks that are looked at for a rerun in the version that the batch has.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when one is named that there is not.
    pub fn filter(&self, subject: &Subject) -> Result<TaskFilter, InvalidBatch> {
        let states = match self {
            Self::Failed => FAILED.to_vec(),
            Self::Tasks(_) | Self::Downstream(_) => Vec::new(),
        };
        Ok(TaskFilter { states, tasks: self.named(subject)?, ..TaskFilter::default() })
    }

    /// Whether what has failed in the batch that a task is runs again, rather than the task as a whole. `versions`: the one that the batch has
    /// and the one that it goes over to. A task that is defined differently there begins anew.
    #[must_use]
    pub fn goes_inside(&self, task: &TaskView, versions: Option<(&Dag, &Dag)>) -> bool {
        let stays = versions.is_none_or(|(old, new)| {
            new.graph().task(&task.key).is_some() && !is_mended(old, new, &task.key)
        });
        *self == Self::Failed && task.batch.is_some() && stays
    }

    /// What runs again in the batches that tasks of the batch are; `None`: only what is named runs again.
    ///
    /// # Errors
    /// What the store answers; [`InvalidBatch::OverAList`].
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

    /// The numbers of the tasks that are named, in order; none where it is those that failed.
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
    /// In the version that the batch has, of the tasks that [`Chosen::filter`] let through. `inside`: as [`Chosen::inside`] says.
    ///
    /// # Errors
    /// [`InvalidBatch::NothingToRerun`] when there are none.
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

    /// In another version of its DAG. `tasks`: all that the batch has; `inside`: as [`Chosen::inside`] says.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when a task is named that the version does not have; [`InvalidBatch::OverAList`].
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

    /// What it is to the store.
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

    /// How the tasks stand that will run again, those in inner batches too.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let inside = self.inside.iter().flatten().flat_map(|inside| &inside.again);
        self.again.iter().chain(inside).map(|task| task.state).collect()
    }

    /// Their keys; of those in inner batches behind the keys of the tasks that lead there, as in `list/3`.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let within = |inside: &Inside| -> Vec<String> {
            inside.again.iter().map(|task| format!("{}/{}", inside.path, task.key)).collect()
        };
        let own = self.again.iter().map(|task| task.key.clone());
        own.chain(self.inside.iter().flatten().flat_map(within)).collect()
    }

    /// The paths of inner batches that were stopped, and go on.
    pub fn resumed(&self) -> impl Iterator<Item = &str> {
        self.inside.iter().flatten().filter(|inside| inside.resumes).map(|inside| inside.path.as_str())
    }
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

//! What a rerun will do, before it is done.

use super::error::InvalidBatch;
use super::listing::{TaskFilter, TaskView, VersionView};
use super::operation::BatchVerb;
use super::subject::Subject;
use crate::dag::checked::Dag;
use crate::dag::state::TaskState;

/// Which tasks are to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// These, by their keys.
    Tasks(Vec<String>),
    /// These and all that comes after them.
    Downstream(Vec<String>),
    /// Those that have failed or were aborted.
    Failed,
}

/// Which tasks will run again, and in which version.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// The tasks as they stand now, by the numbers that they have now.
    pub again: Vec<TaskView>,
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
            Self::Failed => vec![TaskState::Failed, TaskState::Aborted],
            Self::Tasks(_) | Self::Downstream(_) => Vec::new(),
        };
        Ok(TaskFilter { states, tasks: self.named(subject)?, ..TaskFilter::default() })
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
    /// In the version that the batch has, of the tasks that [`Chosen::filter`] let through.
    ///
    /// # Errors
    /// [`InvalidBatch::NothingToRerun`] when there are none.
    pub fn pinned(subject: &Subject, again: Vec<TaskView>) -> Result<Self, InvalidBatch> {
        if again.is_empty() {
            return Err(InvalidBatch::NothingToRerun(subject.row.id));
        }
        Ok(Self { again, change: None })
    }

    /// In another version of its DAG. `tasks`: all that the batch has.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when a task is named that the version does not have; [`InvalidBatch::OverAList`].
    pub fn in_version(
        chosen: &Chosen,
        subject: &Subject,
        (to, dag): (VersionView, Dag),
        tasks: Vec<TaskView>,
    ) -> Result<Self, InvalidBatch> {
        let old = subject.dag()?;
        let then = Subject { row: subject.row.clone(), dag: Some(dag.clone()) };
        let named = chosen.named(&then)?;
        let runs = |task: &TaskView| match (dag.graph().task(&task.key), chosen) {
            (None, _) => false,
            (Some(_), Chosen::Failed) => matches!(task.state, TaskState::Failed | TaskState::Aborted),
            (Some(number), _) => named.binary_search(&number).is_ok(),
        };
        let (again, others): (Vec<TaskView>, Vec<TaskView>) = tasks.into_iter().partition(runs);
        let stays =
            others.into_iter().filter(|task| task.state.is_ended() && is_mended(old, &dag, &task.key));
        let stays = stays.map(|task| task.key).collect();
        let numbers = again.iter().filter_map(|task| dag.graph().task(&task.key)).collect();
        let (new, gone) = (missing(&dag, old), missing(old, &dag));
        Ok(Self { again, change: Some(Change { to, numbers, new, gone, stays }) })
    }

    /// What it is to the store.
    #[must_use]
    pub fn verb(&self) -> BatchVerb {
        match &self.change {
            None => BatchVerb::Rerun { tasks: self.again.iter().map(|task| task.task).collect() },
            Some(change) => BatchVerb::RerunIn { version: change.to.version, tasks: change.numbers.clone() },
        }
    }

    /// The keys of the tasks that will run again.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.again.iter().map(|task| task.key.as_str())
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

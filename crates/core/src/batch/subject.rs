//! A batch as operators mean it: by the keys of its tasks.

use super::error::InvalidBatch;
use super::listing::BatchView;
use crate::dag::checked::Dag;

/// A batch and what it is a run of.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The batch.
    pub row: BatchView,
    /// The DAG; `None` for the items of a list, which are numbered and have no edges.
    pub dag: Option<Dag>,
}

impl Subject {
    /// The DAG; the items of a list have none.
    ///
    /// # Errors
    /// [`InvalidBatch::OverAList`] when it is over a list.
    pub fn dag(&self) -> Result<&Dag, InvalidBatch> {
        self.dag.as_ref().ok_or(InvalidBatch::OverAList(self.row.id))
    }

    /// The number of a task: of an item of a list its place, from 0.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when there is none.
    pub fn task(&self, key: &str) -> Result<u32, InvalidBatch> {
        let found = match &self.dag {
            Some(dag) => dag.graph().task(key),
            None => key.parse().ok().filter(|&place| u64::from(place) < self.row.counts.total()),
        };
        found.ok_or_else(|| InvalidBatch::NoSuchTask { batch: self.row.id, task: key.to_owned() })
    }

    /// What a cancel gives up: all but the tasks that clear up; or these tasks and all that comes after them. Of a list these items, or
    /// all.
    #[must_use]
    pub fn cancel_set(&self, tasks: &[u32]) -> Vec<u32> {
        match (&self.dag, tasks) {
            (Some(dag), []) => dag.cancel_set(&dag.graph().roots().collect::<Vec<_>>()),
            (Some(dag), tasks) => dag.cancel_set(tasks),
            (None, []) => (0..u32::try_from(self.row.counts.total()).unwrap_or(u32::MAX)).collect(),
            (None, items) => items.to_vec(),
        }
    }
}

//! A batch with its DAG, in which tasks are addressed by key.

use super::error::InvalidBatch;
use super::listing::BatchView;
use crate::dag::checked::Dag;

/// A batch and the DAG that it runs.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The batch.
    pub row: BatchView,
    /// The DAG; `None` for the items of a list, which are numbered and have no edges.
    pub dag: Option<Dag>,
}

impl Subject {
    /// Returns the DAG.
    ///
    /// # Errors
    /// [`InvalidBatch::OverAList`] for the items of a list, which have no DAG.
    pub fn dag(&self) -> Result<&Dag, InvalidBatch> {
        self.dag.as_ref().ok_or(InvalidBatch::OverAList(self.row.id))
    }

    /// Returns the number of a task. For an item of a list, the key is its index, from 0.
    ///
    /// # Errors
    /// [`InvalidBatch::NoSuchTask`] when it does not exist.
    pub fn task(&self, key: &str) -> Result<u32, InvalidBatch> {
        let found = match &self.dag {
            Some(dag) => dag.graph().task(key),
            None => key.parse().ok().filter(|&place| u64::from(place) < self.row.counts.total()),
        };
        found.ok_or_else(|| InvalidBatch::NoSuchTask { batch: self.row.id, task: key.to_owned() })
    }

    /// Returns the tasks that a cancel includes: these and everything downstream of them, or all; see [`Dag::cancel_set`]. For a list:
    /// these items, or all.
    #[must_use]
    pub fn cancel_set(&self, tasks: &[u32]) -> Vec<u32> {
        match (&self.dag, tasks) {
            (Some(dag), tasks) => dag.cancel_set(tasks),
            (None, []) => (0..u32::try_from(self.row.counts.total()).unwrap_or(u32::MAX)).collect(),
            (None, items) => items.to_vec(),
        }
    }
}

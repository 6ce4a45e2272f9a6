//! A batch with all its tasks, as pages show it. It is read in a separate task and cached, since a batch may have 50,000 tasks.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchView, TaskFilter, TaskView};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::{Store, StoreResult};

use super::format::between;

/// Number of tasks read by one query.
const PORTION: u32 = 5_000;

/// A batch, its DAG and its tasks.
pub(crate) struct Board {
    /// The DAG; `None` for the items of a list, which are numbered and have no edges.
    pub(super) dag: Option<Dag>,
    /// The tasks, ordered by number.
    pub(super) tasks: Vec<TaskView>,
}

impl Board {
    /// Reads a batch.
    pub(super) async fn read(id: BatchId, store: Arc<dyn Store>) -> StoreResult<Arc<Self>> {
        let detail = store.batch(id).await?.ok_or(StoreError::Batch(InvalidBatch::NoSuchBatch(id)))?;
        let dag = dag(&detail.row, store.as_ref()).await?;
        let mut filter = TaskFilter { limit: PORTION, ..TaskFilter::default() };
        let mut tasks = Vec::new();
        loop {
            let page = store.batch_tasks(id, &filter).await?;
            let full = page.len() == PORTION as usize;
            filter.after = page.last().map(|task| task.task);
            tasks.extend(page);
            if !full {
                return Ok(Arc::new(Self { dag, tasks }));
            }
        }
    }

    pub(super) fn task(&self, number: u32) -> Option<&TaskView> {
        let at = self.tasks.binary_search_by_key(&number, |task| task.task).ok()?;
        self.tasks.get(at)
    }

    pub(super) fn state(&self, number: u32) -> TaskState {
        self.task(number).map_or(TaskState::Waiting, |task| task.state)
    }

    /// Returns the number of the task with this key. The key of an item is its number.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        match &self.dag {
            Some(dag) => dag.graph().task(key),
            None => key.parse().ok().filter(|&number| (number as usize) < self.tasks.len()),
        }
    }

    /// Returns the path that has taken longest so far, with the duration of each step.
    pub(super) fn critical_path(&self, now: Timestamp) -> Vec<(u32, Duration)> {
        let Some(dag) = &self.dag else { return Vec::new() };
        let took = |number: u32| self.task(number).map_or(Duration::ZERO, |task| ran(task, now));
        let path = dag.graph().critical_path(took);
        path.tasks
            .into_iter()
            .map(|number| (number, took(number)))
            .filter(|(_, took)| !took.is_zero())
            .collect()
    }
}

/// Returns the DAG of a batch; `None` for the items of a list.
pub(super) async fn dag(row: &BatchView, store: &dyn Store) -> StoreResult<Option<Dag>> {
    if row.parent.as_ref().is_some_and(|parent| parent.items) {
        return Ok(None);
    }
    let (_, definition) = store.dag(&row.dag, Some(row.version)).await?;
    let checked = tokio::task::spawn_blocking(|| Dag::check(definition)).await;
    let checked = checked.map_err(|error| StoreError::Database { verb: "dag", cause: Box::new(error) })?;
    checked.map(Some).map_err(|fault| StoreError::Database { verb: "dag", cause: Box::new(fault) })
}

/// Returns how long a task has run so far.
pub(super) fn ran(task: &TaskView, now: Timestamp) -> Duration {
    // An inner batch runs from its creation.
    let started = task.started_at.or(task.released_at.filter(|_| task.batch.is_some()));
    started.map_or(Duration::ZERO, |started| between(started, task.ended_at.unwrap_or(now)))
}

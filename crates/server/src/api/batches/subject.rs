//! The batch of a request, with its definition.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{BatchDetail, TaskFilter, TaskView};
use milepost_core::batch::subject::Subject;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::Store;

use crate::api::dags::{checked, definition};
use crate::large_reads::LargePermit;
use crate::problem::Problem;

pub(super) async fn batch(id: BatchId, store: &dyn Store) -> Result<BatchDetail, Problem> {
    Ok(store.batch(id).await?.ok_or_else(|| StoreError::from(InvalidBatch::NoSuchBatch(id)))?)
}

/// Returns the batch and the DAG version that it runs.
pub(crate) async fn subject(
    permit: &LargePermit<'_>,
    id: BatchId,
    store: &dyn Store,
) -> Result<Subject, Problem> {
    let row = batch(id, store).await?.row;
    let dag = if row.parent.as_ref().is_some_and(|parent| parent.items) {
        None
    } else {
        let (_, definition) = definition(permit, &row.dag, Some(row.version), store).await?;
        Some(checked(permit, definition).await?)
    };
    Ok(Subject { row, dag })
}

/// Returns all tasks that match a filter; reads them page by page.
pub(crate) async fn all_tasks(
    id: BatchId,
    mut filter: TaskFilter,
    store: &dyn Store,
) -> Result<Vec<TaskView>, Problem> {
    let mut tasks = Vec::new();
    loop {
        let page = store.batch_tasks(id, &filter).await?;
        let is_full = page.len() == filter.limit as usize;
        filter.after = page.last().map(|task| task.task);
        tasks.extend(page);
        if !is_full {
            return Ok(tasks);
        }
    }
}

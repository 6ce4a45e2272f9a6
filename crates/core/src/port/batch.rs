//! Store port for DAGs and batches.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use crate::batch::operation::{BatchOperated, BatchOperation};
use crate::batch::start::{NewBatch, Started};
use crate::batch::wait::{NewSignal, SignalResult};
use crate::dag::checked::Dag;
use crate::dag::definition::Definition;
use crate::dag::state::BatchState;
use crate::dag::version::Version;
use crate::ident::BatchId;

/// DAGs, batches, and operations on them.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Stores a version of a DAG and makes it the latest. Equal content is the same version.
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined>;

    /// Lists the latest version of every DAG, by name.
    async fn dags(&self) -> StoreResult<Vec<VersionView>>;

    /// Lists the versions of a DAG, newest first.
    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>>;

    /// Returns a version of a DAG, or the latest, with its content. [`InvalidBatch`](crate::batch::error::InvalidBatch)
    /// when it does not exist.
    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)>;

    /// Starts a batch: creates it with all its tasks, and makes those without predecessors ready to run, in one
    /// transaction. If its key exists, returns the existing batch and changes nothing.
    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started>;

    /// Lists batches, newest first.
    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>>;

    /// Counts batches by state with a scan, without those that are tasks of other batches.
    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>>;

    /// Returns a batch with its input.
    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>>;

    /// Lists tasks of a batch, by number.
    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>>;

    /// Lists the history of a batch and of its tasks without jobs, oldest first, after this position.
    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>>;

    /// Lists the latest entries of that history, newest first.
    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>>;

    /// Applies an operation to a batch, in one transaction.
    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated>;

    /// Sends a signal to a batch. The task that waits for it ends when the batch is advanced.
    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult>;

    /// Does outstanding work for batches: evaluates due tasks, ends waits, and counts ends that have too many successors for one
    /// transaction. Processes at most one page in one transaction; returns the number of tasks processed.
    async fn advance_batches(&self) -> StoreResult<u64>;

    /// Deletes batches that ended longer ago than `keep`, with their tasks; their jobs are deleted like other jobs.
    /// Deletes at most one page; returns the number of rows.
    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64>;
}

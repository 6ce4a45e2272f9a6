//! What keeps DAGs and batches.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use crate::batch::operation::{BatchOperated, BatchOperation};
use crate::batch::start::{NewBatch, Started};
use crate::dag::checked::Dag;
use crate::dag::definition::Definition;
use crate::dag::state::BatchState;
use crate::dag::version::Version;
use crate::ident::BatchId;

/// DAGs, batches, and what people do with them.
#[async_trait]
pub trait BatchStore: Send + Sync {
    /// Stores a version of a DAG and makes it the latest. The same content is the same version.
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined>;

    /// The latest version of every DAG, by name.
    async fn dags(&self) -> StoreResult<Vec<VersionView>>;

    /// The versions of a DAG, newest first.
    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>>;

    /// A version of a DAG, or the latest, with its content.
    /// [`InvalidBatch`](crate::batch::error::InvalidBatch) when there is none.
    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)>;

    /// Starts a batch: itself and all its tasks, those that wait for none ready to run, in one transaction. One whose
    /// key exists is answered with the batch that has it and changes nothing.
    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started>;

    /// Batches, newest first.
    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>>;

    /// How many batches are in each state, without those that are tasks of others. Counted by a scan.
    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>>;

    /// A batch with its input.
    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>>;

    /// Tasks of a batch, by number.
    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>>;

    /// What happened to a batch as a whole and to tasks without jobs, oldest first, after this place.
    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>>;

    /// The last of it, newest first.
    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>>;

    /// Does something to a batch, in one transaction.
    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated>;

    /// Does what is left to be done for batches: works out tasks that are due, and counts ends that have too many
    /// successors for one transaction. At most one page, in one transaction; answers how many tasks were looked at.
    async fn advance_batches(&self) -> StoreResult<u64>;

    /// Forgets batches that ended longer ago, with their tasks; their jobs are forgotten as other jobs are. At most
    /// one page; answers how many rows.
    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64>;
}

//! Batch operations of the faulty store, which are passed through unchanged.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use milepost_core::batch::operation::{BatchOperated, BatchOperation};
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::state::BatchState;
use milepost_core::dag::version::Version;
use milepost_core::ident::BatchId;
use milepost_core::port::{BatchStore, StoreResult};

use super::Faulty;

#[async_trait]
impl BatchStore for Faulty {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        self.pass("define_dag", self.inner.define_dag(dag)).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.pass("dags", self.inner.dags()).await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        self.pass("dag_versions", self.inner.dag_versions(name)).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        self.pass("dag", self.inner.dag(name, version)).await
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        self.pass("start_batch", self.inner.start_batch(batch)).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        self.pass("batches", self.inner.batches(filter)).await
    }

    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>> {
        self.pass("count_batches", self.inner.count_batches()).await
    }

    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        self.pass("batch", self.inner.batch(batch)).await
    }

    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        self.pass("batch_tasks", self.inner.batch_tasks(batch, filter)).await
    }

    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.pass("batch_history", self.inner.batch_history(batch, after, limit)).await
    }

    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.pass("last_of_batch", self.inner.last_of_batch(batch, limit)).await
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        self.pass("operate_batch", self.inner.operate_batch(operation)).await
    }

    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        self.pass("signal_batch", self.inner.signal_batch(signal)).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        self.pass("advance_batches", self.inner.advance_batches()).await
    }

    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64> {
        self.pass("prune_batches", self.inner.prune_batches(keep)).await
    }
}

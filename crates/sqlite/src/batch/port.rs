//! The port of batches, each verb sent to where it is done.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use milepost_core::batch::operation::{BatchOperated, BatchOperation};
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::version::Version;
use milepost_core::ident::BatchId;
use milepost_core::port::{BatchStore, StoreResult};

use super::{advance, dag, listing, operation, prune, start};
use crate::command::Hint;
use crate::query;
use crate::store::SqliteStore;

#[async_trait]
impl BatchStore for SqliteStore {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        let dag = dag.clone();
        self.write("define_dag", Hint::NONE, move |tx| dag::define(tx, &dag)).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.read("dags", |conn| dag::list(conn, query::BATCH_DAGS, ())).await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        let name = name.to_owned();
        self.read("dag_versions", move |conn| dag::list(conn, query::BATCH_VERSIONS, [name])).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        let name = name.to_owned();
        self.read("dag", move |conn| dag::content(conn, &name, version)).await
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        batch.check(self.options().payload_bytes_max)?;
        let batch = batch.clone();
        self.write("start_batch", Hint::READY, move |tx| start::start(tx, &batch)).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        let filter = filter.clone();
        self.read("batches", move |conn| listing::batches(conn, &filter)).await
    }

    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        self.read("batch", move |conn| listing::batch(conn, batch)).await
    }

    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        let filter = filter.clone();
        self.read("batch_tasks", move |conn| listing::tasks(conn, batch, &filter)).await
    }

    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.read("batch_history", move |conn| listing::history(conn, batch, after, limit)).await
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        let operation = operation.clone();
        let hint = Hint { ready: true, stop: true };
        self.write("operate_batch", hint, move |tx| operation::operate_batch(tx, &operation)).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        if !self.read("advance_batches", advance::is_needed).await? {
            return Ok(0);
        }
        self.write("advance_batches", Hint::READY, |tx| advance::advance(tx)).await
    }

    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64> {
        if !self.read("prune_batches", move |conn| prune::is_due(conn, keep)).await? {
            return Ok(0);
        }
        self.write("prune_batches", Hint::NONE, move |tx| prune::prune(tx, keep)).await
    }
}

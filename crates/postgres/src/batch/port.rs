//! Implementation of the port of batches.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::AuditedAction;
use milepost_core::batch::PAGE_ROWS;
use milepost_core::batch::error::InvalidBatch;
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
use milepost_core::duration::whole_ms;
use milepost_core::ident::BatchId;
use milepost_core::port::{BatchStore, StoreResult};
use milepost_core::sql;

use sqlx::Row;

use crate::row::{self, named};
use crate::store::PostgresStore;

#[async_trait]
impl BatchStore for PostgresStore {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        let kinds: Vec<String> = dag.kinds().into_iter().map(str::to_owned).collect();
        let rows = self.inner.calm.rows(sqlx::query(sql!("bulk/names")).bind(kinds)).await;
        let bulk_jobs: Vec<String> = self.listed("define_dag", rows, |row| row.try_get("name"))?;
        dag.check_kinds(bulk_jobs.iter().map(String::as_str)).map_err(InvalidBatch::from)?;
        self.define(dag).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.versions(None).await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        self.versions(Some(name)).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        self.definition(name, version).await
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        self.start(&AuditedAction::start_batch(batch.id), batch).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        self.list_batches(filter).await
    }

    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>> {
        let rows = self.inner.calm.rows(sqlx::query(sql!("batch/count_batches"))).await;
        self.listed("count_batches", rows, |row| Ok((named(row, "state")?, row.try_get("count")?)))
    }

    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        self.find_batch(batch).await
    }

    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        self.list_tasks(batch, filter).await
    }

    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.entries(batch, after, limit).await
    }

    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.last_entries(batch, limit).await
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        operation.check()?;
        self.operate_on(operation).await
    }

    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        self.send(signal).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        self.advance().await
    }

    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64> {
        let query = sqlx::query(sql!("batch/prune")).bind(whole_ms(keep)).bind(i64::from(PAGE_ROWS));
        let rows = self.inner.calm.row(query).await.and_then(row::value::<i64>);
        Ok(rows.map_err(|e| self.fail("prune_batches", e))?.unsigned_abs())
    }
}

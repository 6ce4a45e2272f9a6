//! The port of batches; each verb is forwarded to its implementation.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_batch, made_signal};
use milepost_core::batch::due::{WORKS_OUT_FOR, work_out};
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
use milepost_core::sql;

use rusqlite::Transaction;

use super::{advance, dag, listing, operation, prune, start, wait};
use crate::command::Hint;
use crate::error::defect;
use crate::store::SqliteStore;

#[async_trait]
impl BatchStore for SqliteStore {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        let (action, dag) = (AuditedAction::define_dag(&dag.definition().name), dag.clone());
        self.act("define_dag", Hint::NONE, action, move |tx| dag::define(tx, &dag)).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.read("dags", |conn| dag::list(conn, sql!("batch/dags"), ())).await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        let name = name.to_owned();
        self.read("dag_versions", move |conn| dag::list(conn, sql!("batch/versions"), [name])).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        let name = name.to_owned();
        self.read("dag", move |conn| dag::content(conn, &name, version)).await
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        batch.check(self.options().payload_bytes_max)?;
        let (action, dag, batch) = (AuditedAction::start_batch(batch.id), batch.dag.clone(), batch.clone());
        let tell = move |started: &Started| made_batch(&dag, *started);
        // Checking an input can take long and would block other writers if it ran inside the transaction.
        let asked = batch.clone();
        let fits = self.read("start_batch", move |conn| start::fit_of_new(conn, &asked)).await?;
        let start = move |tx: &Transaction<'_>| match fits {
            Some(version) => start::put(tx, &batch, version),
            None => start::start(tx, &batch),
        };
        self.act_telling("start_batch", Hint::READY, action, start, tell).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        let filter = filter.clone();
        self.read("batches", move |conn| listing::batches(conn, &filter)).await
    }

    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>> {
        self.read("count_batches", listing::count).await
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

    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.read("last_of_batch", move |conn| listing::last(conn, batch, limit)).await
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        operation.check()?;
        let operation = operation.clone();
        let hint = Hint { ready: true, stop: true };
        let action = AuditedAction::operate_batch(&operation);
        let operate = move |tx: &Transaction<'_>| operation::operate_batch(tx, &operation);
        self.act_telling("operate_batch", hint, action, operate, BatchOperated::told).await
    }

    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        signal.check()?;
        // Checking a payload can take long and would block other writers if it ran inside the transaction.
        let asked = signal.clone();
        self.read("signal_batch", move |conn| wait::fit(conn, &asked)).await?;
        let (action, signal) = (AuditedAction::signal_batch(signal.batch), signal.clone());
        let told = signal.clone();
        let tell = move |result: &SignalResult| made_signal(&told, *result);
        let send = move |tx: &Transaction<'_>| wait::send(tx, &signal);
        self.act_telling("signal_batch", Hint::READY, action, send, tell).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        if !self.read("advance_batches", advance::is_needed).await? {
            return Ok(0);
        }
        let (worked_out, large) =
            self.write("advance_batches", Hint::READY, |tx| advance::advance(tx)).await?;
        if large.is_empty() {
            return Ok(worked_out);
        }
        // Runs on a blocking thread, outside of the store's transaction.
        let large = tokio::task::spawn_blocking(|| {
            let begun = Instant::now();
            work_out(large, || begun.elapsed() >= WORKS_OUT_FOR)
        })
        .await;
        let large = large.map_err(|panic| defect("advance_batches", panic.to_string()))?;
        let changed =
            self.write("advance_batches", Hint::READY, move |tx| advance::become_all(tx, &large)).await?;
        Ok(worked_out + changed)
    }

    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64> {
        if !self.read("prune_batches", move |conn| prune::is_due(conn, keep)).await? {
            return Ok(0);
        }
        self.write("prune_batches", Hint::NONE, move |tx| prune::prune(tx, keep)).await
    }
}

//! DAGs and batches of a limited token.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::state::BatchState;
use milepost_core::dag::version::Version;
use milepost_core::ident::BatchId;
use milepost_core::port::{BatchStore, StoreResult};

use super::ScopedStore;

/// The number of batches of any token that one query of a list reads.
const PAGE: u32 = 1_000;
/// The maximum number of queries for one page of a list.
const PAGES_MAX: u32 = 20;

impl ScopedStore {
    async fn own_versions(&self, versions: Vec<VersionView>) -> StoreResult<Vec<VersionView>> {
        let mut own = Vec::new();
        for view in versions {
            if self.owns_version(&view.dag, view.version).await? {
                own.push(view);
            }
        }
        Ok(own)
    }

    /// Refuses a version of others, to which a batch would move, as if it did not exist.
    async fn check_version_for(&self, batch: BatchId, version: Version) -> StoreResult<()> {
        let Some(detail) = self.inner.batch(batch).await? else { return Ok(()) };
        let name = detail.row.dag;
        if self.owns_version(&name, version).await? {
            return Ok(());
        }
        Err(InvalidBatch::NoSuchVersion { name, version: version.to_string() }.into())
    }
}

#[async_trait]
impl BatchStore for ScopedStore {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        let definition = dag.definition();
        if !self.owns_definition(definition).await? {
            let what = format!("DAG {:?} has tasks of other queues or kinds", definition.name);
            return Err(self.token.refusal(what));
        }
        let exists = !self.inner.dag_versions(&definition.name).await?.is_empty();
        if exists && !self.owns_dag(&definition.name).await? {
            return Err(self.token.refusal(format!("the name {:?} is not free for it", definition.name)));
        }
        self.inner.define_dag(dag).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.own_versions(self.inner.dags().await?).await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        self.own_versions(self.inner.dag_versions(name).await?).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        let (view, definition) = self.inner.dag(name, version).await?;
        if !self.owns_version(name, view.version).await? {
            return Err(InvalidBatch::NoSuchDag { name: name.to_owned() }.into());
        }
        Ok((view, definition))
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        let is_own = match batch.version {
            Some(version) => self.owns_version(&batch.dag, version).await?,
            None => self.owns_dag(&batch.dag).await?,
        };
        if !is_own {
            return Err(InvalidBatch::NoSuchDag { name: batch.dag.clone() }.into());
        }
        self.inner.start_batch(batch).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        let wanted = filter.limit as usize;
        let mut filter = BatchFilter { limit: PAGE.max(filter.limit), ..filter.clone() };
        let mut own = Vec::new();
        for _ in 0..PAGES_MAX {
            let found = self.inner.batches(&filter).await?;
            let is_last = found.len() < filter.limit as usize;
            filter.before = found.last().map(|batch| batch.id);
            for view in found {
                if own.len() < wanted && self.owns_batch_view(&view).await? {
                    own.push(view);
                }
            }
            if is_last || own.len() >= wanted {
                break;
            }
        }
        Ok(own)
    }

    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>> {
        Err(self.whole_store("a count of batches"))
    }

    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        let Some(detail) = self.inner.batch(batch).await? else { return Ok(None) };
        Ok(self.owns_batch_view(&detail.row).await?.then_some(detail))
    }

    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        self.check_batch(batch).await?;
        self.inner.batch_tasks(batch, filter).await
    }

    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.check_batch(batch).await?;
        self.inner.batch_history(batch, after, limit).await
    }

    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        self.check_batch(batch).await?;
        self.inner.last_of_batch(batch, limit).await
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        self.check_batch(operation.batch).await?;
        if let BatchVerb::RerunIn { version, .. } = &operation.what {
            self.check_version_for(operation.batch, *version).await?;
        }
        self.inner.operate_batch(operation).await
    }

    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        self.check_batch(signal.batch).await?;
        self.inner.signal_batch(signal).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        Err(self.whole_store("the evaluation of batches"))
    }

    async fn prune_batches(&self, _: Duration) -> StoreResult<u64> {
        Err(self.whole_store("retention"))
    }
}

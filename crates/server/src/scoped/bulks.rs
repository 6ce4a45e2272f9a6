//! Bulk jobs of a limited token, and the operations on many jobs that it starts.

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::operation::{self, OperateTarget};
use milepost_core::bulk::progress::{BeforeChunk, Step, Taken};
use milepost_core::bulk::run::{ChunkDone, Rest, Survey, TargetFailure};
use milepost_core::bulk::settings::SettingsChange;
use milepost_core::ident::{JobId, Run};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkProgress, BulkStaging, BulkStore, StoreResult};
use milepost_core::precedence::{Put, Scope, Synced};
use milepost_core::schedule::Source;
use milepost_core::state::JobState;

use super::ScopedStore;

/// The number of runs of any token that one query of a list reads.
const PAGE: u32 = 1_000;
/// The maximum number of queries for one page of a list.
const PAGES_MAX: u32 = 20;

impl ScopedStore {
    async fn check_run(&self, run: JobId) -> StoreResult<()> {
        if self.owns_job(run).await? { Ok(()) } else { Err(InvalidBulk::NotBulk { job: run }.into()) }
    }

    async fn owns_run(&self, run: &BulkView) -> StoreResult<bool> {
        let may_be_own = run.name == operation::NAME || self.token.has_kind(&run.name);
        Ok(may_be_own && self.owns_job(run.id).await?)
    }
}

#[async_trait]
impl BulkStore for ScopedStore {
    async fn put_bulk(&self, _: &Definition, _: Source) -> StoreResult<Put> {
        Err(self.whole_store("the definition of bulk jobs"))
    }

    async fn sync_bulks(&self, _: &[Definition], _: &Scope) -> StoreResult<Synced> {
        Err(self.whole_store("the definition of bulk jobs"))
    }

    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>> {
        Ok(self.inner.bulk_definition(name).await?.filter(|bulk| self.owns_bulk(bulk)))
    }

    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>> {
        let mut definitions = self.inner.bulk_definitions().await?;
        definitions.retain(|bulk| self.owns_bulk(bulk));
        Ok(definitions)
    }

    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued> {
        self.token.check_jobs([(job.queue.as_str(), job.kind.as_str())])?;
        self.inner.start_bulk(job).await
    }

    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>> {
        let inner = self.inner.stage_bulk(name).await?;
        Ok(Box::new(ScopedStaging { inner, store: Arc::new(self.clone()), has_only_own_jobs: true }))
    }

    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>> {
        let wanted = filter.limit as usize;
        let mut filter = BulkFilter { limit: PAGE.max(filter.limit), ..filter.clone() };
        let mut own = Vec::new();
        for _ in 0..PAGES_MAX {
            let found = self.inner.bulks(&filter).await?;
            let is_last = found.len() < filter.limit as usize;
            // Runs in progress are at the beginning of the list only.
            filter.before = found.iter().rfind(|run| run.is_over()).map(|run| run.id);
            for run in found {
                if own.len() < wanted && self.owns_run(&run).await? {
                    own.push(run);
                }
            }
            if is_last || filter.before.is_none() || own.len() >= wanted {
                break;
            }
        }
        Ok(own)
    }

    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>> {
        self.check_run(job).await?;
        self.inner.bulk_failures(job, after, limit).await
    }

    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>> {
        self.check_run(run).await?;
        self.inner.operated_jobs(run).await
    }

    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()> {
        self.check_run(job).await?;
        self.inner.set_bulk(job, change).await
    }

    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued> {
        self.check_run(job).await?;
        self.inner.retry_bulk_failures(job).await
    }

    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool> {
        self.check_run(job).await?;
        self.inner.interrupt_bulk(job).await
    }
}

/// The rows of a run that a limited token starts.
struct ScopedStaging {
    inner: Box<dyn BulkStaging>,
    store: Arc<ScopedStore>,
    /// Whether all rows so far are ids of own jobs, as an operation on many jobs needs them.
    has_only_own_jobs: bool,
}

#[async_trait]
impl BulkStaging for ScopedStaging {
    async fn add(&mut self, rows: Vec<String>) -> StoreResult<()> {
        for row in &rows {
            self.has_only_own_jobs = self.has_only_own_jobs
                && match serde_json::from_str::<OperateTarget>(row) {
                    Ok(target) => self.store.owns_job(target.job).await?,
                    Err(_) => false,
                };
        }
        self.inner.add(rows).await
    }

    async fn start(self: Box<Self>, job: &NewJob) -> StoreResult<Enqueued> {
        let refused = if job.kind == operation::NAME {
            (!self.has_only_own_jobs)
                .then(|| self.store.token.refusal("this is for jobs of other queues or kinds"))
        } else {
            self.store.token.check_jobs([(job.queue.as_str(), job.kind.as_str())]).err()
        };
        match refused {
            None => self.inner.start(job).await,
            Some(refusal) => {
                self.inner.give_up().await?;
                Err(refusal)
            }
        }
    }

    async fn give_up(self: Box<Self>) -> StoreResult<()> {
        self.inner.give_up().await
    }
}

/// Workers of the server's own process do this; no request does.
const OF_WORKERS: &str = "the progress of bulk jobs";

#[async_trait]
impl BulkProgress for ScopedStore {
    async fn take_bulk(&self, _: Run, _: &str, _: &str) -> StoreResult<Taken> {
        Err(self.whole_store(OF_WORKERS))
    }

    async fn freeze_bulk(&self, _: Run, _: &Survey) -> StoreResult<()> {
        Err(self.whole_store(OF_WORKERS))
    }

    async fn look_bulk(&self, _: Run, _: u32) -> StoreResult<BeforeChunk> {
        Err(self.whole_store(OF_WORKERS))
    }

    async fn advance_bulk(&self, _: Run, _: &Step) -> StoreResult<ChunkDone> {
        Err(self.whole_store(OF_WORKERS))
    }

    async fn rest_bulk(&self, _: Run, _: &Rest) -> StoreResult<()> {
        Err(self.whole_store(OF_WORKERS))
    }

    async fn end_bulk(&self, _: Run, _: Option<&NewJob>) -> StoreResult<()> {
        Err(self.whole_store(OF_WORKERS))
    }
}

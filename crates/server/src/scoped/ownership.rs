//! Which objects belong to a limited token.

use std::collections::BTreeSet;
use std::sync::Arc;

use milepost_core::audit::AuditFilter;
use milepost_core::batch::DEPTH_MAX;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::BatchView;
use milepost_core::bulk::definition::Definition as Bulk;
use milepost_core::bulk::operation;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId, WorkerId};
use milepost_core::limit::{LimitView, Target};
use milepost_core::listing::JobRow;
use milepost_core::port::StoreResult;
use milepost_core::schedule::{Makes, Schedule};
use milepost_core::worker::WorkerView;

use super::ScopedStore;
use super::known::VersionNeeds;

impl ScopedStore {
    /// Returns whether a job is of its queues and kinds, or is the run of an operation that it started.
    pub(super) async fn owns_job(&self, job: JobId) -> StoreResult<bool> {
        if let Some(known) = self.known.job(job) {
            return Ok(known);
        }
        match self.inner.job(job).await? {
            Some(view) => self.owns_row(&view.row).await,
            None => Ok(false),
        }
    }

    pub(super) async fn owns_row(&self, row: &JobRow) -> StoreResult<bool> {
        let is_own = self.sees(row) || (row.kind == operation::NAME && self.has_started(row.id).await?);
        self.known.keep_job(row.id, is_own);
        Ok(is_own)
    }

    /// Returns whether a listed job is of its queues and kinds.
    pub(super) fn sees(&self, row: &JobRow) -> bool {
        self.token.has(&row.queue, &row.kind)
    }

    /// Returns whether the token has started this run.
    async fn has_started(&self, run: JobId) -> StoreResult<bool> {
        let filter = AuditFilter {
            who: Some(self.token.who.clone()),
            what: Some("bulk.start".to_owned()),
            subject: Some(run.to_string()),
            limit: 1,
            ..AuditFilter::default()
        };
        let entries = self.inner.audit_log(&filter).await?;
        Ok(entries.iter().any(|entry| entry.at >= self.token.created_at))
    }

    /// Refuses a job of others as if it did not exist.
    pub(super) async fn check_job(&self, job: JobId) -> StoreResult<()> {
        if self.owns_job(job).await? { Ok(()) } else { Err(StoreError::NoSuchJob(job)) }
    }

    /// Returns whether a worker serves only its queues and kinds.
    pub(super) async fn owns_worker(&self, worker: WorkerId) -> StoreResult<bool> {
        if self.known.has_worker(worker) {
            return Ok(true);
        }
        let workers = self.inner.workers().await?;
        let is_own = workers.iter().any(|view| view.id == worker && self.sees_worker(view));
        if is_own {
            self.known.keep_worker(worker);
        }
        Ok(is_own)
    }

    pub(super) fn sees_worker(&self, worker: &WorkerView) -> bool {
        worker.queues.iter().all(|queue| self.scope().has_queue(queue))
            && worker.kinds.iter().all(|kind| self.token.has_kind(kind))
    }

    /// Returns whether the runs of a bulk job are jobs of its queues and kinds.
    pub(super) fn owns_bulk(&self, bulk: &Bulk) -> bool {
        self.token.has(&bulk.queue, &bulk.name)
    }

    pub(super) async fn owns_bulk_named(&self, name: &str) -> StoreResult<bool> {
        Ok(self.inner.bulk_definition(name).await?.is_some_and(|bulk| self.owns_bulk(&bulk)))
    }

    pub(super) fn owns_limit(&self, limit: &LimitView) -> bool {
        self.owns_target(&limit.limit.target)
    }

    /// Returns whether a limit applies to an own kind. Groups belong to no token.
    pub(super) fn owns_target(&self, target: &Target) -> bool {
        match target {
            Target::Kind(kind) => self.scope().owns_kind(kind),
            Target::Group(_) => false,
        }
    }

    /// Returns whether the jobs or batches of a schedule are own.
    pub(super) async fn owns_schedule(&self, schedule: &Schedule) -> StoreResult<bool> {
        match &schedule.makes {
            Makes::Job(job) => Ok(self.token.has(&job.queue, &job.kind)),
            Makes::Batch(batch) => self.owns_dag(&batch.dag).await,
        }
    }

    /// Returns whether a batch is own: the jobs of all tasks of its version are.
    pub(super) async fn owns_batch(&self, batch: BatchId) -> StoreResult<bool> {
        if let Some(known) = self.known.batch(batch) {
            return Ok(known);
        }
        match self.inner.batch(batch).await? {
            Some(detail) => self.owns_batch_view(&detail.row).await,
            None => Ok(false),
        }
    }

    pub(super) async fn owns_batch_view(&self, view: &BatchView) -> StoreResult<bool> {
        // The jobs for the items of a list are those of the task in the batch around them.
        let has_version = view.parent.as_ref().is_none_or(|parent| !parent.items);
        let mut is_own = !has_version || self.owns_version(&view.dag, view.version).await?;
        if let Some(parent) = view.parent.as_ref().filter(|_| is_own) {
            is_own = Box::pin(self.owns_batch(parent.batch)).await?;
        }
        self.known.keep_batch(view.id, is_own);
        Ok(is_own)
    }

    pub(super) async fn check_batch(&self, batch: BatchId) -> StoreResult<()> {
        if self.owns_batch(batch).await? { Ok(()) } else { Err(InvalidBatch::NoSuchBatch(batch).into()) }
    }

    /// Returns whether the latest version of a DAG is own; false if there is no such DAG.
    pub(super) async fn owns_dag(&self, name: &str) -> StoreResult<bool> {
        self.owns_dag_within(name, 0).await
    }

    async fn owns_dag_within(&self, name: &str, depth: u32) -> StoreResult<bool> {
        match self.inner.dag(name, None).await {
            Ok((view, definition)) => {
                let needs = self.needs(view.version, &definition);
                self.meets(&needs, depth).await
            }
            Err(StoreError::Batch(InvalidBatch::NoSuchDag { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn owns_version(&self, name: &str, version: Version) -> StoreResult<bool> {
        let needs = match self.known.version(version) {
            Some(known) => known,
            None => self.needs(version, &self.inner.dag(name, Some(version)).await?.1),
        };
        self.meets(&needs, 0).await
    }

    /// Returns whether all tasks of a definition are own.
    pub(super) async fn owns_definition(&self, definition: &Definition) -> StoreResult<bool> {
        self.meets(&self.needs_of(definition), 0).await
    }

    fn needs(&self, version: Version, definition: &Definition) -> Arc<VersionNeeds> {
        let needs = Arc::new(self.needs_of(definition));
        self.known.keep_version(version, &needs);
        needs
    }

    fn needs_of(&self, definition: &Definition) -> VersionNeeds {
        let (mut bulks, mut dags, mut jobs_are_own) = (BTreeSet::new(), BTreeSet::new(), true);
        for (_, task) in &definition.tasks {
            bulks.extend(task.bulk.clone());
            dags.extend(task.dag.clone());
            if let Some(kind) = &task.kind {
                jobs_are_own &= self.token.has(&task.queue, kind);
            }
        }
        // A DAG that only waits belongs to no queue and no kind.
        jobs_are_own &= definition.tasks.iter().any(|(_, task)| task.wait.is_none());
        VersionNeeds { jobs_are_own, bulks: bulks.into_iter().collect(), dags: dags.into_iter().collect() }
    }

    /// Returns whether the jobs, bulk jobs and DAGs of a version are own. DAGs that are nested too deeply are not.
    async fn meets(&self, needs: &VersionNeeds, depth: u32) -> StoreResult<bool> {
        if !needs.jobs_are_own || depth > DEPTH_MAX {
            return Ok(false);
        }
        for bulk in &needs.bulks {
            if !self.owns_bulk_named(bulk).await? {
                return Ok(false);
            }
        }
        for dag in &needs.dags {
            if !Box::pin(self.owns_dag_within(dag, depth + 1)).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

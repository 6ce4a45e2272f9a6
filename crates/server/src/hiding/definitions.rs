//! Schedules, limits, bulk jobs, batches and the audit, with hidden data in payloads and inputs.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::audit::{Actor, AuditEntry, AuditFilter};
use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, Defined, TaskFilter, TaskView, VersionView,
};
use milepost_core::batch::operation::{BatchOperated, BatchOperation};
use milepost_core::batch::start::{NewBatch, Started};
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::bulk::definition::Definition as Bulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::progress::{BeforeChunk, Step, Taken};
use milepost_core::bulk::run::{ChunkDone, Rest, Survey, TargetFailure};
use milepost_core::bulk::settings::SettingsChange;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::state::BatchState;
use milepost_core::dag::version::Version;
use milepost_core::error::StoreError;
use milepost_core::hide::{HideRefusal, is_structured};
use milepost_core::ident::{BatchId, JobId, Run};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::limit::{Limit, LimitView, Target};
use milepost_core::port::{
    AuditStore, BatchStore, BulkProgress, BulkStaging, BulkStore, LimitStore, RetentionStore, ScheduleStore,
    Store, StoreResult,
};
use milepost_core::precedence::{Over, Put, Scope, Synced};
use milepost_core::retention::{Retained, RetentionPeriod};
use milepost_core::schedule::{Clock, Made, Order, Schedule, ScheduleView, Source, Tick, Ticked};
use milepost_core::state::JobState;
use uuid::Uuid;

use super::{HidingStore, data, without_quotes};

/// The members of an entry of the audit that contain stored JSON.
const DATA: [&str; 4] = ["payload", "input", "result", "parameters"];

#[async_trait]
impl AuditStore for HidingStore {
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(Self { inner: self.inner.acting_as(actor), hidden: Arc::clone(&self.hidden) })
    }

    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>> {
        let mut entries = self.inner.audit_log(filter).await?;
        for entry in &mut entries {
            self.hidden.mask_within(&mut entry.detail, |name| DATA.contains(&name));
        }
        Ok(entries)
    }
}

#[async_trait]
impl LimitStore for HidingStore {
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put> {
        self.inner.put_limit(limit, source).await
    }

    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool> {
        self.inner.remove_limit(target, source).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.inner.limits().await
    }
}

#[async_trait]
impl RetentionStore for HidingStore {
    async fn put_retention(&self, period: RetentionPeriod) -> StoreResult<()> {
        self.inner.put_retention(period).await
    }

    async fn remove_retention(&self, of: Retained) -> StoreResult<bool> {
        self.inner.remove_retention(of).await
    }

    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>> {
        self.inner.stored_retention().await
    }
}

#[async_trait]
impl ScheduleStore for HidingStore {
    async fn run_schedule_now(&self, name: &str, asked: Option<Uuid>) -> StoreResult<Made> {
        // The job gets the real payload.
        without_quotes(self.inner.run_schedule_now(name, asked).await)
    }

    async fn clock(&self) -> StoreResult<Clock> {
        self.inner.clock().await
    }

    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let mut views = self.inner.schedules_after(name, limit).await?;
        views.iter_mut().for_each(|view| self.mask_schedule(view));
        Ok(views)
    }

    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>> {
        let mut views = self.inner.schedules_without_payloads().await?;
        views.iter_mut().for_each(|view| self.mask_refusal(view));
        Ok(views)
    }

    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>> {
        let mut view = self.inner.schedule(name).await?;
        view.iter_mut().for_each(|view| self.mask_schedule(view));
        Ok(view)
    }

    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        self.inner.due_schedules(limit).await
    }

    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
        over: Over,
    ) -> StoreResult<Put> {
        let (kind, json) = data(&schedule.makes);
        if self.hidden.has_placeholder(kind, json.get()) {
            let what = format!("the payload of schedule {:?}", schedule.name);
            return Err(StoreError::Hide(HideRefusal::Placeholder { what }));
        }
        self.inner.write_schedule(schedule, source, next_at, over).await
    }

    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool> {
        self.inner.remove_schedule(name, source).await
    }

    async fn pause_schedule(&self, name: &str) -> StoreResult<bool> {
        self.inner.pause_schedule(name).await
    }

    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool> {
        self.inner.unpause_schedule(name, version, next_at).await
    }

    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>> {
        self.inner.tick_schedule(tick).await
    }

    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made> {
        self.inner.make(schedule, order).await
    }
}

#[async_trait]
impl BulkStore for HidingStore {
    async fn put_bulk(&self, definition: &Bulk, source: Source) -> StoreResult<Put> {
        self.inner.put_bulk(definition, source).await
    }

    async fn sync_bulks(&self, configured: &[Bulk], scope: &Scope) -> StoreResult<Synced> {
        self.inner.sync_bulks(configured, scope).await
    }

    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Bulk>> {
        self.inner.bulk_definition(name).await
    }

    async fn bulk_definitions(&self) -> StoreResult<Vec<Bulk>> {
        self.inner.bulk_definitions().await
    }

    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued> {
        self.inner.start_bulk(job).await
    }

    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>> {
        self.inner.stage_bulk(name).await
    }

    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>> {
        self.inner.bulks(filter).await
    }

    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>> {
        let mut failures = self.inner.bulk_failures(job, after, limit).await?;
        if failures.iter().any(|failure| is_structured(&failure.message))
            && let Some(kind) = self.kind(job).await?
        {
            failures.iter_mut().for_each(|failure| self.hidden.mask_text(&kind, &mut failure.message));
        }
        Ok(failures)
    }

    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>> {
        self.inner.operated_jobs(run).await
    }

    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()> {
        self.inner.set_bulk(job, change).await
    }

    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued> {
        self.inner.retry_bulk_failures(job).await
    }

    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool> {
        self.inner.interrupt_bulk(job).await
    }
}

#[async_trait]
impl BulkProgress for HidingStore {
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken> {
        self.inner.take_bulk(run, fingerprint, since).await
    }

    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()> {
        self.inner.freeze_bulk(run, survey).await
    }

    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<BeforeChunk> {
        self.inner.look_bulk(run, rows).await
    }

    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone> {
        self.inner.advance_bulk(run, step).await
    }

    async fn rest_bulk(&self, run: Run, rest: &Rest) -> StoreResult<()> {
        self.inner.rest_bulk(run, rest).await
    }

    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()> {
        self.inner.end_bulk(run, then).await
    }
}

#[async_trait]
impl BatchStore for HidingStore {
    async fn define_dag(&self, dag: &Dag) -> StoreResult<Defined> {
        self.inner.define_dag(dag).await
    }

    async fn dags(&self) -> StoreResult<Vec<VersionView>> {
        self.inner.dags().await
    }

    async fn dag_versions(&self, name: &str) -> StoreResult<Vec<VersionView>> {
        self.inner.dag_versions(name).await
    }

    async fn dag(&self, name: &str, version: Option<Version>) -> StoreResult<(VersionView, Definition)> {
        self.inner.dag(name, version).await
    }

    async fn start_batch(&self, batch: &NewBatch) -> StoreResult<Started> {
        self.inner.start_batch(batch).await
    }

    async fn batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        self.inner.batches(filter).await
    }

    async fn count_batches(&self) -> StoreResult<Vec<(BatchState, i64)>> {
        self.inner.count_batches().await
    }

    async fn batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        let mut detail = self.inner.batch(batch).await?;
        if let Some(detail) = &mut detail {
            self.hidden.mask_json(&detail.row.dag, &mut detail.input);
        }
        Ok(detail)
    }

    async fn batch_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        let mut tasks = self.inner.batch_tasks(batch, filter).await?;
        for task in &mut tasks {
            if let (None, Some(error)) = (task.job, &mut task.error) {
                self.hidden.mask_quotes(error);
            }
            if let (Some(job), Some(error)) = (task.job, &mut task.error)
                && is_structured(error)
                && let Some(kind) = self.kind(job).await?
            {
                self.hidden.mask_text(&kind, error);
            }
        }
        Ok(tasks)
    }

    async fn batch_history(&self, batch: BatchId, after: i64, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        let mut entries = self.inner.batch_history(batch, after, limit).await?;
        self.mask_batch_entries(&mut entries);
        Ok(entries)
    }

    async fn last_of_batch(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        let mut entries = self.inner.last_of_batch(batch, limit).await?;
        self.mask_batch_entries(&mut entries);
        Ok(entries)
    }

    async fn operate_batch(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        without_quotes(self.inner.operate_batch(operation).await)
    }

    async fn signal_batch(&self, signal: &NewSignal) -> StoreResult<SignalResult> {
        self.inner.signal_batch(signal).await
    }

    async fn advance_batches(&self) -> StoreResult<u64> {
        self.inner.advance_batches().await
    }

    async fn prune_batches(&self, keep: Duration) -> StoreResult<u64> {
        self.inner.prune_batches(keep).await
    }
}

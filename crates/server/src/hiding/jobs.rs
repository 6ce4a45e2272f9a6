//! Jobs, workers and maintenance, with hidden data in jobs. Workers get the real values.

use std::collections::HashMap;

use async_trait::async_trait;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, Finished};
use milepost_core::hide::HideRefusal;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::job::{Enqueued, KeyHolder, NewJob};
use milepost_core::listing::{JobRow, JobView, JobsFound, LastFailure, QueueKinds, QueueView};
use milepost_core::port::{
    AdminStore, IntakeStore, JobEdit, MaintenanceStore, Operated, Operation, RetryDelay, SearchStore,
    StoreResult, WakeStream, WorkerStore,
};
use milepost_core::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::{Heartbeat, NewWorker, Report, Rescued, WorkerView};

use super::HidingStore;

#[async_trait]
impl IntakeStore for HidingStore {
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        self.inner.enqueue_many(jobs).await
    }

    async fn enqueue_unless_held(&self, jobs: &[NewJob]) -> StoreResult<Option<Vec<Enqueued>>> {
        self.inner.enqueue_unless_held(jobs).await
    }

    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>> {
        self.inner.enqueue_together(jobs, together).await
    }

    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>> {
        self.inner.key_holders(jobs).await
    }
}

#[async_trait]
impl WorkerStore for HidingStore {
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId> {
        self.inner.register_worker(worker).await
    }

    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat> {
        self.inner.heartbeat(worker).await
    }

    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        self.inner.claim(claim).await
    }

    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        self.inner.held(worker).await
    }

    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>> {
        self.inner.finish_many(worker, finishes).await
    }

    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>> {
        self.inner.report_many(reports).await
    }

    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>> {
        self.inner.checkpoints(jobs).await
    }

    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()> {
        self.inner.retire_worker(worker).await
    }

    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>> {
        self.inner.wakes().await
    }
}

#[async_trait]
impl AdminStore for HidingStore {
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated> {
        self.inner.operate(job, operation).await
    }

    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState> {
        if let Some(payload) = &edit.payload
            && let Some(kind) = self.kind(job).await?
            && self.hidden.has_placeholder(&kind, payload.get())
        {
            let what = format!("the payload of job {job}");
            return Err(StoreError::Hide(HideRefusal::Placeholder { what }));
        }
        self.inner.edit_job(job, edit).await
    }

    async fn confirm_seen(&self) -> StoreResult<()> {
        self.inner.confirm_seen().await
    }

    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
        self.inner.jobs(filter).await
    }

    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        let Some(mut view) = self.inner.job(job).await? else { return Ok(None) };
        self.mask_job(&mut view);
        Ok(Some(view))
    }

    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        self.inner.reveal_job(job).await
    }

    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>> {
        let mut entries = self.inner.history(job, part).await?;
        self.mask_entries(&mut entries).await?;
        Ok(entries)
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        self.inner.queues().await
    }

    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>> {
        self.inner.queues_by_kind(kinds_max).await
    }

    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool> {
        self.inner.pause_queue(queue, paused).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        self.inner.workers().await
    }

    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>> {
        self.inner.count_by_state().await
    }
}

#[async_trait]
impl SearchStore for HidingStore {
    async fn search_jobs(&self, filter: &JobFilter) -> StoreResult<JobsFound> {
        if let Some(found) = &filter.payload {
            self.hidden.check_search(filter.kind.as_deref(), &found.path).map_err(StoreError::Hide)?;
        }
        let mut found = self.inner.search_jobs(filter).await?;
        if let Some(text) = &filter.error {
            self.keep_visible_errors(&mut found.rows, text).await?;
        }
        Ok(found)
    }

    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>> {
        let mut failures = self.inner.last_failures(jobs).await?;
        for failure in &mut failures {
            self.mask_failure(failure).await?;
        }
        Ok(failures)
    }

    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>> {
        let mut entries = self.inner.last_changes(jobs).await?;
        self.mask_entries(&mut entries).await?;
        Ok(entries)
    }
}

#[async_trait]
impl MaintenanceStore for HidingStore {
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>> {
        self.inner.rescue_expired(limit, delay).await
    }

    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>> {
        self.inner.stop_overdue(limit).await
    }

    async fn fill_groups(&self) -> StoreResult<u64> {
        self.inner.fill_groups().await
    }

    async fn notice_promotion(&self) -> StoreResult<Option<u32>> {
        self.inner.notice_promotion().await
    }

    async fn may_delete(&self) -> StoreResult<bool> {
        self.inner.may_delete().await
    }

    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        self.inner.prune(policy, pace).await
    }

    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        self.inner.prunable(policy).await
    }
}

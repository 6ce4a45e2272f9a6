//! Jobs and queues of a limited token.

use std::collections::BTreeMap;

use async_trait::async_trait;
use milepost_core::bulk::operation;
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, KeyHolder, NewJob};
use milepost_core::listing::{JobRow, JobView, JobsFound, LastFailure, QueueKinds, QueueView, Waiting};
use milepost_core::port::{AdminStore, IntakeStore, JobEdit, Operated, Operation, SearchStore, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::WorkerView;

use super::ScopedStore;

/// The number of jobs of any token that one query of a list reads.
const PAGE: u32 = 1_000;
/// The maximum number of queries for one page of a list.
const PAGES_MAX: u32 = 20;

impl ScopedStore {
    fn check_new_jobs<'j>(&self, jobs: impl IntoIterator<Item = &'j NewJob>) -> StoreResult<()> {
        self.token.check_jobs(jobs.into_iter().map(|job| (job.queue.as_str(), job.kind.as_str())))
    }

    /// Returns those of these jobs that are own.
    async fn own(&self, jobs: &[JobId]) -> StoreResult<Vec<JobId>> {
        let mut own = Vec::with_capacity(jobs.len());
        for &job in jobs {
            if self.owns_job(job).await? {
                own.push(job);
            }
        }
        Ok(own)
    }

    /// Narrows a filter to the only queue and kind of the token, so that an index can help.
    fn narrowed(&self, filter: &JobFilter) -> JobFilter {
        let only = |patterns: &[String]| match patterns {
            [name] if !name.ends_with('*') => Some(name.clone()),
            _ => None,
        };
        JobFilter {
            queue: filter.queue.clone().or_else(|| only(&self.scope().queues)),
            kind: filter.kind.clone().or_else(|| only(&self.scope().kinds)),
            ..filter.clone()
        }
    }

    /// Keeps the own jobs of a queue. `None`: nothing of it is own.
    fn cut(&self, mut queue: QueueKinds) -> Option<QueueKinds> {
        if !self.scope().has_queue(&queue.name) {
            return None;
        }
        queue.counts.retain(|count| match &count.kind {
            Some(kind) => self.token.has_kind(kind),
            None => self.scope().kinds.is_empty(),
        });
        // The names of queues without own jobs belong to others, unless the token is limited to them.
        (self.scope().owns_queue(&queue.name) || !queue.counts.is_empty()).then_some(queue)
    }
}

#[async_trait]
impl IntakeStore for ScopedStore {
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        self.check_new_jobs(jobs)?;
        self.inner.enqueue_many(jobs).await
    }

    async fn enqueue_unless_held(&self, jobs: &[NewJob]) -> StoreResult<Option<Vec<Enqueued>>> {
        self.check_new_jobs(jobs)?;
        self.inner.enqueue_unless_held(jobs).await
    }

    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>> {
        self.check_new_jobs(jobs)?;
        self.inner.enqueue_together(jobs, together).await
    }

    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>> {
        // The run of an operation on many jobs is of no queue and kind of the token.
        self.check_new_jobs(jobs.iter().copied().filter(|job| job.kind != operation::NAME))?;
        self.inner.key_holders(jobs).await
    }
}

#[async_trait]
impl AdminStore for ScopedStore {
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated> {
        self.check_job(job).await?;
        self.inner.operate(job, operation).await
    }

    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState> {
        self.check_job(job).await?;
        self.inner.edit_job(job, edit).await
    }

    async fn confirm_seen(&self) -> StoreResult<()> {
        self.inner.confirm_seen().await
    }

    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
        let wanted = filter.limit as usize;
        let mut filter = JobFilter { limit: PAGE.max(filter.limit), ..self.narrowed(filter) };
        let mut own = Vec::new();
        for _ in 0..PAGES_MAX {
            let found = self.inner.jobs(&filter).await?;
            let is_last = found.len() < filter.limit as usize;
            filter.before = found.last().map(|row| row.id);
            own.extend(found.into_iter().filter(|row| self.sees(row)));
            if is_last || own.len() >= wanted {
                break;
            }
        }
        own.truncate(wanted);
        Ok(own)
    }

    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        let Some(mut view) = self.inner.job(job).await? else { return Ok(None) };
        if !self.owns_row(&view.row).await? {
            return Ok(None);
        }
        if let Some(Waiting::Group { holder, .. }) = &mut view.waiting_for
            && let Some(other) = *holder
            && !self.owns_job(other).await?
        {
            *holder = None;
        }
        Ok(Some(view))
    }

    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        if self.owns_job(job).await? { self.inner.reveal_job(job).await } else { Ok(None) }
    }

    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>> {
        if self.owns_job(job).await? { self.inner.history(job, part).await } else { Ok(Vec::new()) }
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        let (queues, workers) = tokio::try_join!(self.queues_by_kind(u32::MAX), self.inner.workers())?;
        Ok(queues.into_iter().map(|queue| view(queue, &workers)).collect())
    }

    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>> {
        // A sum over several kinds could not be cut to own ones.
        let kinds_max = if self.scope().kinds.is_empty() { kinds_max } else { u32::MAX };
        let queues = self.inner.queues_by_kind(kinds_max).await?;
        Ok(queues.into_iter().filter_map(|queue| self.cut(queue)).collect())
    }

    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool> {
        if !self.scope().owns_queue(queue) {
            return Err(self.token.refusal(format!("this is for all jobs of queue {queue:?}")));
        }
        self.inner.pause_queue(queue, paused).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let mut workers = self.inner.workers().await?;
        workers.retain(|worker| self.sees_worker(worker));
        Ok(workers)
    }

    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>> {
        let mut counts: BTreeMap<JobState, i64> = BTreeMap::new();
        for queue in self.queues_by_kind(u32::MAX).await? {
            for (state, jobs) in queue.by_state() {
                *counts.entry(state).or_default() += jobs;
            }
        }
        Ok(counts.into_iter().collect())
    }
}

/// Returns a queue as shown in lists.
fn view(queue: QueueKinds, workers: &[WorkerView]) -> QueueView {
    let active = workers.iter().filter(|worker| worker.is_active());
    let serving = active.filter(|worker| worker.queues.contains(&queue.name)).count();
    QueueView {
        paused_at: queue.paused_at,
        workers: i64::try_from(serving).unwrap_or(i64::MAX),
        oldest_due_at: queue.oldest_due_at(),
        counts: queue.by_state(),
        name: queue.name,
    }
}

#[async_trait]
impl SearchStore for ScopedStore {
    async fn search_jobs(&self, filter: &JobFilter) -> StoreResult<JobsFound> {
        let wanted = filter.limit as usize;
        let mut page = JobFilter { limit: PAGE.max(filter.limit), ..self.narrowed(filter) };
        let mut found = self.inner.search_jobs(&page).await?;
        found.rows.retain(|row| self.sees(row));
        // A page that ends after the jobs of others is the end of this page, too, so that a request reads a limited number of jobs.
        if found.rows.len() > wanted {
            found.rows.truncate(wanted);
            page.before = found.rows.last().map(|row| row.id);
            found.next = page.before;
        }
        found.rows.iter().for_each(|row| self.known.keep_job(row.id, true));
        Ok(found)
    }

    async fn last_failures(&self, jobs: &[JobId]) -> StoreResult<Vec<LastFailure>> {
        self.inner.last_failures(&self.own(jobs).await?).await
    }

    async fn last_changes(&self, jobs: &[JobId]) -> StoreResult<Vec<HistoryEntry>> {
        self.inner.last_changes(&self.own(jobs).await?).await
    }
}

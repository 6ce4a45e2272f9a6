//! Store wrapper that loses or delays answers on purpose, like a broken connection, for any store.

mod alerts;
mod batches;
mod bulk;
mod events;
mod inbox;
pub mod interceptor;
mod looks;
mod schedules;
mod tokens;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::audit::{Actor, AuditEntry, AuditFilter};
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::doctor::{Check, Finding, Look};
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, Finished};
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::job::{Enqueued, KeyHolder, NewJob};
use milepost_core::listing::{JobRow, JobView, QueueKinds, QueueView};
use milepost_core::port::{
    AbandonedRun, AdminStore, AuditStore, DoctorStore, IntakeStore, JobEdit, MaintenanceStore, Operated,
    Operation, RetryDelay, Store, StoreResult, WakeStream, WorkerStore,
};
use milepost_core::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::worker::{Heartbeat, NewWorker, Report, Rescued, WorkerView};
use tokio::sync::watch;

use interceptor::{Interceptor, intercept};

/// A store with faults. Unless a fault specifies otherwise, the inner store executes the call, and only the answer is lost or delayed.
pub struct Faulty {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
    interceptor: Option<Arc<dyn Interceptor>>,
}

impl Deref for Faulty {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        &self.faults
    }
}

/// The faults, and how often each occurs.
#[derive(Default)]
pub struct Faults {
    /// This number of non-empty claims returns an error.
    pub claims_lost: AtomicUsize,
    /// This number of non-empty claims is answered late, by [`Faulty::LATE`].
    pub claims_late: AtomicUsize,
    /// This number of batches of ends is stored but returns an error.
    pub ends_lost: AtomicUsize,
    /// This number of batches of ends is not stored, as by a store that is read-only or damaged.
    pub ends_failed: AtomicUsize,
    /// This number of batches of ends is rejected because of their content.
    pub ends_refused: AtomicUsize,
    /// For this number of chunks that were applied on another database, storing the progress fails, as if the store were unreachable.
    pub advances_failed: AtomicUsize,
    /// This number of operator changes returns an error.
    pub changes_lost: AtomicUsize,
    /// This number of queries for the jobs of a worker returns an error.
    pub looks_lost: AtomicUsize,
    /// This number of queries whether there are tokens returns an error.
    pub access_lost: AtomicUsize,
    /// While true, answers to queries for the jobs of a worker and for the list of workers are held back.
    looks_held: watch::Sender<bool>,
    /// The number of answers that are held back.
    looks_waiting: AtomicUsize,
    /// While true, answers to queries whether there are tokens are held back.
    pub(super) access_held: watch::Sender<bool>,
}

impl Faulty {
    /// The delay of a late answer.
    pub const LATE: Duration = Duration::from_millis(300);

    /// Wraps a store, without faults at first.
    pub fn before(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, faults: Arc::default(), interceptor: None })
    }

    /// Wraps a store whose calls are intercepted.
    pub fn intercepted(inner: Arc<dyn Store>, interceptor: Arc<dyn Interceptor>) -> Arc<Self> {
        Arc::new(Self { inner, faults: Arc::default(), interceptor: Some(interceptor) })
    }

    /// Passes a call on to the store.
    async fn pass<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        intercept(self.interceptor.as_ref(), call, answer).await
    }

    /// Holds back, or releases, answers to queries for the jobs of a worker and for the list of workers. The answers show the state at the time of the
    /// query.
    pub fn hold_looks(&self, hold: bool) {
        self.looks_held.send_replace(hold);
    }

    /// Returns whether such an answer is being held back.
    pub fn holds_a_look(&self) -> bool {
        self.looks_waiting.load(Ordering::SeqCst) > 0
    }

    /// Waits while answers are held back.
    async fn look(&self) {
        self.looks_waiting.fetch_add(1, Ordering::SeqCst);
        self.looks_held.subscribe().wait_for(|held| !held).await.expect("the sender was dropped");
        self.looks_waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns whether the fault applies to this call, and counts it.
fn suffers(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

fn lost<T>() -> StoreResult<T> {
    Err(StoreError::Unavailable {
        place: "a faulty store".to_owned(),
        cause: "the answer was lost on purpose".into(),
    })
}

#[async_trait]
impl WorkerStore for Faulty {
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId> {
        self.pass("register_worker", self.inner.register_worker(worker)).await
    }

    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat> {
        self.pass("heartbeat", self.inner.heartbeat(worker)).await
    }

    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        let jobs = self.pass("claim", self.inner.claim(claim)).await?;
        if jobs.is_empty() {
            return Ok(jobs);
        }
        if suffers(&self.claims_late) {
            tokio::time::sleep(Self::LATE).await;
        } else if suffers(&self.claims_lost) {
            return lost();
        }
        Ok(jobs)
    }

    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        let held = self.pass("held", self.inner.held(worker)).await?;
        self.look().await;
        if suffers(&self.looks_lost) { lost() } else { Ok(held) }
    }

    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>> {
        let cause = || "on purpose".into();
        if suffers(&self.ends_failed) {
            return Err(StoreError::Database { verb: "finish_many", cause: cause() });
        }
        if suffers(&self.ends_refused) {
            return Err(StoreError::Refused { verb: "finish_many", cause: cause() });
        }
        let answers = self.pass("finish_many", self.inner.finish_many(worker, finishes)).await?;
        if suffers(&self.ends_lost) { lost() } else { Ok(answers) }
    }

    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>> {
        self.pass("report_many", self.inner.report_many(reports)).await
    }

    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>> {
        self.pass("checkpoints", self.inner.checkpoints(jobs)).await
    }

    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()> {
        self.pass("retire_worker", self.inner.retire_worker(worker)).await
    }

    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>> {
        self.pass("wakes", self.inner.wakes()).await
    }
}

#[async_trait]
impl IntakeStore for Faulty {
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        self.pass("enqueue_many", self.inner.enqueue_many(jobs)).await
    }

    async fn enqueue_unless_held(&self, jobs: &[NewJob]) -> StoreResult<Option<Vec<Enqueued>>> {
        self.pass("enqueue_unless_held", self.inner.enqueue_unless_held(jobs)).await
    }

    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>> {
        self.pass("enqueue_together", self.inner.enqueue_together(jobs, together)).await
    }

    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>> {
        self.pass("key_holders", self.inner.key_holders(jobs)).await
    }
}

#[async_trait]
impl MaintenanceStore for Faulty {
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>> {
        self.pass("rescue_expired", self.inner.rescue_expired(limit, delay)).await
    }

    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>> {
        self.pass("stop_overdue", self.inner.stop_overdue(limit)).await
    }

    async fn fill_groups(&self) -> StoreResult<u64> {
        self.pass("fill_groups", self.inner.fill_groups()).await
    }

    async fn notice_promotion(&self) -> StoreResult<Option<u32>> {
        self.pass("notice_promotion", self.inner.notice_promotion()).await
    }

    async fn may_delete(&self) -> StoreResult<bool> {
        self.pass("may_delete", self.inner.may_delete()).await
    }

    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        self.pass("prune", self.inner.prune(policy, pace)).await
    }

    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        self.pass("prunable", self.inner.prunable(policy)).await
    }
}

#[async_trait]
impl AuditStore for Faulty {
    fn acting_as(&self, actor: Actor) -> Arc<dyn Store> {
        Arc::new(Self {
            inner: self.inner.acting_as(actor),
            faults: Arc::clone(&self.faults),
            interceptor: self.interceptor.clone(),
        })
    }

    async fn audit_log(&self, filter: &AuditFilter) -> StoreResult<Vec<AuditEntry>> {
        self.pass("audit_log", self.inner.audit_log(filter)).await
    }
}

#[async_trait]
impl AdminStore for Faulty {
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated> {
        self.pass("operate", self.inner.operate(job, operation)).await
    }

    async fn confirm_seen(&self) -> StoreResult<()> {
        self.pass("confirm_seen", self.inner.confirm_seen()).await
    }

    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
        self.pass("jobs", self.inner.jobs(filter)).await
    }

    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        self.pass("job", self.inner.job(job)).await
    }

    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState> {
        let state = self.pass("edit_job", self.inner.edit_job(job, edit)).await?;
        if suffers(&self.changes_lost) { lost() } else { Ok(state) }
    }

    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        self.pass("reveal_job", self.inner.reveal_job(job)).await
    }

    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>> {
        self.pass("history", self.inner.history(job, part)).await
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        self.pass("queues", self.inner.queues()).await
    }

    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>> {
        self.pass("queues_by_kind", self.inner.queues_by_kind(kinds_max)).await
    }

    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool> {
        let changed = self.pass("pause_queue", self.inner.pause_queue(queue, paused)).await?;
        if suffers(&self.changes_lost) { lost() } else { Ok(changed) }
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        let workers = self.pass("workers", self.inner.workers()).await?;
        self.look().await;
        Ok(workers)
    }

    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>> {
        self.pass("count_by_state", self.inner.count_by_state()).await
    }
}

#[async_trait]
impl DoctorStore for Faulty {
    fn checks(&self) -> Vec<Check> {
        self.inner.checks()
    }

    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>> {
        self.pass("examine", self.inner.examine(check, look)).await
    }

    async fn repair_rows(&self, check: Check, limit: u32) -> StoreResult<u64> {
        self.pass("repair_rows", self.inner.repair_rows(check, limit)).await
    }

    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>> {
        self.pass("abandoned_runs", self.inner.abandoned_runs(look, limit)).await
    }

    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()> {
        self.pass("note_repair", self.inner.note_repair(check, mended)).await
    }
}

//! The ports of the domain; each verb is forwarded to the writer thread or to a reader.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Transaction;

use crate::clock::now_ms;
use crate::command::Hint;
use crate::store::SqliteStore;
use crate::{
    claim, clock_back, edit, enqueue, finish, group, listing, operate, report, rescue, retention, worker,
};
use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_jobs};
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::clock::Noted;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::history::{HistoryEntry, HistoryPart};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::job::{Enqueued, KeyHolder, NewJob};
use milepost_core::listing::{JobRow, JobView, QueueKinds, QueueView};
use milepost_core::port::{
    AdminStore, IntakeStore, JobEdit, MaintenanceStore, Operated, Operation, RetryDelay, StoreResult,
    WakeStream, WorkerStore, check_together,
};
use milepost_core::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{Heartbeat, NewWorker, Report, Rescued, WorkerView};

#[async_trait]
impl IntakeStore for SqliteStore {
    async fn enqueue_many(&self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        self.enqueue_together(jobs, &[]).await
    }

    async fn enqueue_together(&self, jobs: &[NewJob], together: &[usize]) -> StoreResult<Vec<Enqueued>> {
        enqueue::check_call(jobs)?;
        enqueue::check(jobs, self.options().payload_bytes_max)?;
        let (action, jobs) = (AuditedAction::create_jobs(jobs), Arc::<[NewJob]>::from(jobs));
        let (asked, together) = (Arc::clone(&jobs), together.to_vec());
        let insert = move |tx: &Transaction<'_>| {
            let made = enqueue::insert_asked(tx, &jobs)?;
            check_together(&made, &together)?;
            Ok(made)
        };
        let tell = move |made: &Vec<Enqueued>| made_jobs(&asked, made);
        self.act_telling("enqueue", Hint::READY, action, insert, tell).await
    }

    async fn key_holders(&self, jobs: &[&NewJob]) -> StoreResult<Vec<Option<KeyHolder>>> {
        let jobs: Vec<NewJob> = jobs.iter().map(|&job| job.clone()).collect();
        self.read("key_holders", move |conn| enqueue::key_holders(conn, &jobs)).await
    }
}

#[async_trait]
impl WorkerStore for SqliteStore {
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId> {
        let its = worker.clone();
        let id = self.write("register_worker", Hint::NONE, move |tx| worker::register(tx, &its)).await?;
        self.served().add(id, worker);
        Ok(id)
    }

    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat> {
        let beat = self.write("heartbeat", Hint::NONE, move |tx| worker::heartbeat(tx, worker)).await;
        self.unless_lost(beat)
    }

    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        let claim = claim.clone();
        let claimed = self.write("claim", Hint::NONE, move |tx| claim::claim(tx, &claim)).await;
        self.unless_lost(claimed)
    }

    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        let (held, unreadable) = self.read("held", move |conn| claim::held(conn, worker)).await?;
        if !unreadable.is_empty() {
            tracing::error!(ends = ?unreadable, "jobs cannot be decoded; they are failed");
            self.finish_many(worker, &unreadable).await?;
        }
        Ok(held)
    }

    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>> {
        let finishes = finishes.to_vec();
        let returns = |finish: &Finish| matches!(finish.end, End::Retry { .. } | End::Yield { .. });
        let ready = finishes.iter().any(|finish| finish.grouped || finish.task || returns(finish));
        let hint = Hint { ready, ..Hint::NONE };
        self.write("finish", hint, move |tx| finish::finish_many(tx, worker, &finishes)).await
    }

    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>> {
        let reports = reports.to_vec();
        self.write("report", Hint::NONE, move |tx| report::report_many(tx, &reports)).await
    }

    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>> {
        let jobs = jobs.to_vec();
        self.read("checkpoints", move |conn| report::checkpoints(conn, &jobs)).await
    }

    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()> {
        self.served().remove(worker);
        self.write("retire_worker", Hint::NONE, move |tx| worker::retire(tx, worker)).await
    }

    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>> {
        Ok(Box::new(self.listener()))
    }
}

impl SqliteStore {
    /// Returns the answer. If it reports a worker as lost, that worker no longer counts as serving.
    fn unless_lost<T>(&self, answer: StoreResult<T>) -> StoreResult<T> {
        if let Err(StoreError::WorkerLost(worker)) = answer {
            self.served().remove(worker);
        }
        answer
    }
}

#[async_trait]
impl MaintenanceStore for SqliteStore {
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut rescued = Vec::new();
        if self.read("rescue", clock_back::noted).await? != Noted::Recently {
            self.write("rescue", Hint::READY, |tx| clock_back::follow(tx)).await?;
        }
        if self.read("rescue", rescue::has_late_leases).await? {
            self.write("rescue", Hint::NONE, |tx| rescue::shorten_leases(tx)).await?;
        }
        for worker in self.read("rescue", rescue::lost_workers).await? {
            let left = limit.saturating_sub(rescued.len());
            if left == 0 {
                break;
            }
            // The caller's closure stays on the caller's thread; only its results go to the writer.
            let held =
                move |conn: &_| Ok((rescue::lost_runs(conn, worker, left)?, rescue::backoffs(conn, worker)?));
            let (lost, backoffs) = self.read("rescue", held).await?;
            let delays = rescue::delays(&lost, |kind, attempt| delay(kind, attempt, backoffs.get(kind)));
            let taken = self
                .write("rescue", Hint::READY, move |tx| rescue::rescue(tx, worker, &delays, left))
                .await?;
            self.served().remove(worker);
            rescued.extend(taken);
        }
        Ok(rescued)
    }

    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>> {
        if !self.read("stop_overdue", rescue::has_overdue).await? {
            return Ok(Vec::new());
        }
        let hint = Hint { ready: true, stop: true };
        self.write("stop_overdue", hint, move |tx| rescue::stop_overdue(tx, limit)).await
    }

    async fn fill_groups(&self) -> StoreResult<u64> {
        let groups = self.read("fill_groups", |conn| group::unfilled(conn, now_ms())).await?;
        if groups.is_empty() {
            return Ok(0);
        }
        self.write("fill_groups", Hint::READY, move |tx| group::fill_all(tx, &groups, now_ms())).await
    }

    async fn notice_promotion(&self) -> StoreResult<Option<u32>> {
        Ok(None)
    }

    async fn may_delete(&self) -> StoreResult<bool> {
        self.read("may_delete", clock_back::may_delete).await
    }

    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        policy.check()?;
        let policy = *policy;
        if !self.read("prune", move |conn| retention::is_due(conn, &policy, pace)).await? {
            return Ok(Pruned::default());
        }
        self.write("prune", Hint::NONE, move |tx| retention::prune(tx, &policy, pace)).await
    }

    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        policy.check()?;
        let policy = *policy;
        self.read("prunable", move |conn| retention::prunable(conn, &policy)).await
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn operate(&self, job: JobId, operation: &Operation) -> StoreResult<Operated> {
        operation.check()?;
        let operation = operation.clone();
        let hint = Hint { ready: true, stop: true };
        let action = AuditedAction::operate(job, operation.verb);
        self.act("operate", hint, action, move |tx| operate::operate(tx, job, &operation)).await
    }

    async fn edit_job(&self, job: JobId, edit: &JobEdit) -> StoreResult<JobState> {
        let refused = |invalid| StoreError::Invalid { index: 0, invalid };
        edit.check(self.options().payload_bytes_max).map_err(refused)?;
        let (action, fields) = (AuditedAction::operate(job, Verb::Edit), edit.fields());
        let tell = move |_: &JobState| Some(serde_json::json!({ "edited": fields }));
        let edit = edit.clone();
        self.act_telling("edit_job", Hint::READY, action, move |tx| edit::edit(tx, job, &edit), tell).await
    }

    async fn jobs(&self, filter: &JobFilter) -> StoreResult<Vec<JobRow>> {
        let filter = filter.clone();
        self.read("jobs", move |conn| listing::jobs(conn, &filter)).await
    }

    async fn job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        self.read("job", move |conn| listing::job(conn, job)).await
    }

    async fn reveal_job(&self, job: JobId) -> StoreResult<Option<JobView>> {
        if self.job(job).await?.is_none() {
            return Ok(None);
        }
        let tell = |(): &()| Some(serde_json::json!({ "revealed": true }));
        self.act_telling("reveal_job", Hint::NONE, AuditedAction::reveal(job), |_| Ok(()), tell).await?;
        self.job(job).await
    }

    async fn history(&self, job: JobId, part: HistoryPart) -> StoreResult<Vec<HistoryEntry>> {
        self.read("history", move |conn| listing::history(conn, job, part)).await
    }

    async fn queues(&self) -> StoreResult<Vec<QueueView>> {
        self.read("queues", listing::queues).await
    }

    async fn queues_by_kind(&self, kinds_max: u32) -> StoreResult<Vec<QueueKinds>> {
        self.read("queues_by_kind", move |conn| listing::queues_by_kind(conn, kinds_max)).await
    }

    async fn pause_queue(&self, queue: &str, paused: bool) -> StoreResult<bool> {
        let (action, queue) = (AuditedAction::pause_queue(queue, paused), queue.to_owned());
        self.act("pause_queue", Hint::READY, action, move |tx| listing::pause_queue(tx, &queue, paused)).await
    }

    async fn workers(&self) -> StoreResult<Vec<WorkerView>> {
        self.read("workers", worker::list).await
    }

    async fn count_by_state(&self) -> StoreResult<Vec<(JobState, i64)>> {
        self.read("count_by_state", listing::count_by_state).await
    }
}

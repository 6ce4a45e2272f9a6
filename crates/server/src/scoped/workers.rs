//! Workers of a limited token.

use std::collections::HashMap;

use async_trait::async_trait;
use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, Finished};
use milepost_core::ident::{JobId, WorkerId};
use milepost_core::port::{StoreResult, WakeStream, WorkerStore};
use milepost_core::worker::{Heartbeat, NewWorker, Report};

use super::ScopedStore;

impl ScopedStore {
    /// Refuses queues and kinds that are not own.
    fn check_lanes(&self, queues: &[String], kinds: &[String]) -> StoreResult<()> {
        queues.iter().try_for_each(|queue| self.token.check_queue(queue))?;
        kinds.iter().try_for_each(|kind| self.token.check_kind(kind))
    }

    /// Refuses a worker of others, as one whose lease has ended.
    async fn check_worker(&self, worker: WorkerId) -> StoreResult<()> {
        if self.owns_worker(worker).await? { Ok(()) } else { Err(StoreError::WorkerLost(worker)) }
    }

    fn note_claimed(&self, claimed: &[ClaimedJob]) {
        claimed.iter().for_each(|job| self.known.keep_job(job.run.job, true));
    }
}

#[async_trait]
impl WorkerStore for ScopedStore {
    async fn register_worker(&self, worker: &NewWorker) -> StoreResult<WorkerId> {
        self.check_lanes(&worker.queues, &worker.kinds)?;
        let id = self.inner.register_worker(worker).await?;
        self.known.keep_worker(id);
        Ok(id)
    }

    async fn heartbeat(&self, worker: WorkerId) -> StoreResult<Heartbeat> {
        self.check_worker(worker).await?;
        self.inner.heartbeat(worker).await
    }

    async fn claim(&self, claim: &Claim) -> StoreResult<Vec<ClaimedJob>> {
        self.check_worker(claim.worker).await?;
        self.check_lanes(&claim.queues, &claim.kinds)?;
        let claimed = self.inner.claim(claim).await?;
        self.note_claimed(&claimed);
        Ok(claimed)
    }

    async fn held(&self, worker: WorkerId) -> StoreResult<Vec<ClaimedJob>> {
        self.check_worker(worker).await?;
        let mut held = self.inner.held(worker).await?;
        held.retain(|job| self.token.has(&job.queue, &job.kind));
        self.note_claimed(&held);
        Ok(held)
    }

    async fn finish_many(&self, worker: WorkerId, finishes: &[Finish]) -> StoreResult<Vec<Finished>> {
        self.check_worker(worker).await?;
        let (mut answers, mut own) = (vec![Finished::Fenced; finishes.len()], Vec::new());
        for (place, finish) in finishes.iter().enumerate() {
            if self.owns_job(finish.run.job).await? {
                own.push((place, finish.clone()));
            }
        }
        let (places, own): (Vec<usize>, Vec<Finish>) = own.into_iter().unzip();
        let finished = if own.is_empty() { Vec::new() } else { self.inner.finish_many(worker, &own).await? };
        for (place, finished) in places.into_iter().zip(finished) {
            answers[place] = finished;
        }
        Ok(answers)
    }

    async fn report_many(&self, reports: &[Report]) -> StoreResult<Vec<bool>> {
        let (mut answers, mut places, mut own) = (vec![false; reports.len()], Vec::new(), Vec::new());
        for (place, report) in reports.iter().enumerate() {
            if self.owns_job(report.run.job).await? {
                places.push(place);
                own.push(report.clone());
            }
        }
        let accepted = if own.is_empty() { Vec::new() } else { self.inner.report_many(&own).await? };
        for (place, accepted) in places.into_iter().zip(accepted) {
            answers[place] = accepted;
        }
        Ok(answers)
    }

    async fn checkpoints(&self, jobs: &[JobId]) -> StoreResult<HashMap<JobId, String>> {
        let mut own = Vec::new();
        for &job in jobs {
            if self.owns_job(job).await? {
                own.push(job);
            }
        }
        self.inner.checkpoints(&own).await
    }

    async fn retire_worker(&self, worker: WorkerId) -> StoreResult<()> {
        self.check_worker(worker).await?;
        self.inner.retire_worker(worker).await
    }

    async fn wakes(&self) -> StoreResult<Box<dyn WakeStream>> {
        // A hint contains nothing of a job that the claim after it does not check.
        self.inner.wakes().await
    }
}

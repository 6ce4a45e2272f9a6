//! What an examination needs of a store.

use std::time::Duration;

use async_trait::async_trait;

use super::{MaintenanceStore, StoreResult, WorkerStore};
use crate::doctor::{Check, Finding, Look};
use crate::finish::{End, Failure, Finish, Finished};
use crate::ident::{Run, WorkerId};
use crate::retry::RetryPolicy;
use crate::transition::Verb;

/// A run that no living worker holds and that upkeep may not find.
#[derive(Clone, Copy, Debug)]
pub struct AbandonedRun {
    /// The run.
    pub run: Run,
    /// The worker that its row names; 0 for none.
    pub worker: WorkerId,
    /// Which try it is.
    pub attempt: u32,
    /// Tries it may have.
    pub max_attempts: u32,
    /// Whether the job has a group.
    pub grouped: bool,
    /// Whether it is a task of a batch.
    pub task: bool,
    /// What somebody asked of it.
    pub stop: Option<Verb>,
}

impl AbandonedRun {
    /// How it ends: as it was asked to, else as a failure that spent its attempt.
    fn finish(&self) -> Finish {
        let failure = Failure {
            code: "lease_lost".to_owned(),
            message: "no worker holds this run; a repair took it back".to_owned(),
        };
        let end = match self.stop {
            Some(Verb::Abort) => End::Abort,
            Some(_) => End::Cancel,
            None if self.attempt >= self.max_attempts => End::Fail { failure },
            None => End::Retry { delay: backoff(self.attempt), failure },
        };
        Finish { run: self.run, end, grouped: self.grouped, task: self.task }
    }
}

/// The default backoff, without chance.
fn backoff(attempt: u32) -> Duration {
    RetryPolicy::default().delay(attempt, 0.5)
}

/// Examines a store and mends what is safe.
#[async_trait]
pub trait DoctorStore: WorkerStore + MaintenanceStore {
    /// The checks that this store has.
    fn checks(&self) -> Vec<Check>;

    /// Asks one question, on one snapshot. Nothing is written. A check that this store does not have finds nothing.
    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>>;

    /// Mends at most `limit` breaches of a check that needs no verb, in one transaction with its row of audit, which a repair
    /// without an actor has, too: nothing else tells of it. Answers how many.
    async fn mend(&self, check: Check, limit: u32) -> StoreResult<u64>;

    /// At most `limit` runs that no living worker holds: their worker is unknown, or gone for longer than patience.
    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>>;

    /// Notes in the audit that so many breaches of a check were mended by verbs.
    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()>;

    /// Mends at most `limit` breaches of a check, as [`Check::repair`] says. Where a verb does it, each of its
    /// transactions writes its history, and the audit gets its row afterwards. Answers how many were mended.
    async fn repair(&self, check: Check, look: &Look, limit: u32) -> StoreResult<u64> {
        let mended = match check {
            Check::RunningPastLease | Check::RunningWithoutWorker | Check::WorkerUnburied => {
                let rescued = self
                    .rescue_expired(limit, &|_, attempt, policy| {
                        policy.map_or_else(|| backoff(attempt), |policy| policy.delay(attempt, 0.5))
                    })
                    .await?;
                rescued.len() as u64 + take_back(self, look, limit).await?
            }
            Check::StopOverdue => self.stop_overdue(limit).await?.len() as u64,
            Check::GroupLeftWaiting => self.fill_groups().await?,
            _ => return self.mend(check, limit).await,
        };
        if mended > 0 {
            self.note_repair(check, mended).await?;
        }
        Ok(mended)
    }
}

/// Ends abandoned runs; each end is fenced by its run token.
async fn take_back<S: DoctorStore + ?Sized>(store: &S, look: &Look, limit: u32) -> StoreResult<u64> {
    let mut taken = 0;
    for abandoned in store.abandoned_runs(look, limit).await? {
        let answers = store.finish_many(abandoned.worker, &[abandoned.finish()]).await?;
        taken += u64::from(answers == [Finished::Accepted]);
    }
    Ok(taken)
}

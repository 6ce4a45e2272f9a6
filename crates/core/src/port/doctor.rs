//! Store port for consistency checks and repairs.

use std::time::Duration;

use async_trait::async_trait;

use super::{MaintenanceStore, StoreResult, WorkerStore};
use crate::doctor::{Check, Finding, Look};
use crate::finish::{End, Failure, Finish, Finished};
use crate::ident::{Run, WorkerId};
use crate::retry::RetryPolicy;
use crate::transition::Verb;

/// A run that no active worker holds, and that regular maintenance may not find.
#[derive(Clone, Copy, Debug)]
pub struct AbandonedRun {
    /// The run.
    pub run: Run,
    /// The worker in its row; 0 for none.
    pub worker: WorkerId,
    /// The number of the attempt.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// Whether the job has a group.
    pub grouped: bool,
    /// Whether it is a task of a batch.
    pub task: bool,
    /// The requested stop, if any.
    pub stop: Option<Verb>,
}

impl AbandonedRun {
    /// Returns how the run ends: with the requested stop, or else as a failure that uses up the attempt.
    fn finish(&self) -> Finish {
        let failure = Failure {
            code: "lease_lost".to_owned(),
            message: "no worker holds this run; a repair ended it".to_owned(),
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

/// Returns the default backoff, without randomness.
fn backoff(attempt: u32) -> Duration {
    RetryPolicy::default().delay(attempt, 0.5)
}

/// Checks a store and repairs what can be repaired safely.
#[async_trait]
pub trait DoctorStore: WorkerStore + MaintenanceStore {
    /// Returns the checks that apply to this store.
    fn checks(&self) -> Vec<Check>;

    /// Runs one check on one snapshot, without writing. A check that does not apply to this store finds nothing.
    async fn examine(&self, check: Check, look: &Look) -> StoreResult<Option<Finding>>;

    /// Repairs at most `limit` violations of a check that needs no verb, in one transaction with an audit row. A repair
    /// without an actor writes the row too, because it is the only record of the repair. Returns the number of repairs.
    async fn repair_rows(&self, check: Check, limit: u32) -> StoreResult<u64>;

    /// Lists at most `limit` runs that no active worker holds: their worker is unknown, or stopped longer ago than the patience.
    async fn abandoned_runs(&self, look: &Look, limit: u32) -> StoreResult<Vec<AbandonedRun>>;

    /// Records in the audit that this many violations of a check were repaired with verbs.
    async fn note_repair(&self, check: Check, mended: u64) -> StoreResult<()>;

    /// Repairs at most `limit` violations of a check, as [`Check::repair`] describes. If a verb makes the repair, each
    /// of its transactions writes history, and the audit row is written afterwards. Returns the number of repairs.
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
            _ => return self.repair_rows(check, limit).await,
        };
        if mended > 0 {
            self.note_repair(check, mended).await?;
        }
        Ok(mended)
    }
}

/// Ends abandoned runs; each end carries its run token.
async fn take_back<S: DoctorStore + ?Sized>(store: &S, look: &Look, limit: u32) -> StoreResult<u64> {
    let mut taken = 0;
    for abandoned in store.abandoned_runs(look, limit).await? {
        let answers = store.finish_many(abandoned.worker, &[abandoned.finish()]).await?;
        taken += u64::from(answers == [Finished::Accepted]);
    }
    Ok(taken)
}

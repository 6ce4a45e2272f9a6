//! Fixture for store tests: a store, a worker, and common operations.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Failure, Finish, Finished};
use milepost_core::history::{HistoryEntry, fold};
use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::listing::JobView;
use milepost_core::port::{Operated, Operation, Store, StoreResult};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::NewWorker;

use crate::wait;

/// The kind that scenes use when the kind does not matter.
pub const KIND: &str = "test";

/// Longer than any test runs.
pub const LONG: Duration = Duration::from_secs(3600);

/// PostgreSQL errors after which an end is reported again.
const TOLD_AGAIN: [&str; 2] = ["deadlock detected", "idle-in-transaction timeout"];
/// How often an end is reported at most.
const TOLD_MAX: u32 = 5;

/// A store and a registered worker.
#[derive(Clone)]
pub struct Scene {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// A worker with a long lease that serves [`KIND`] and `other` in the default queue.
    pub worker: WorkerId,
}

/// Returns whether a call is to be repeated, as the product does: the server aborted the transaction because of a deadlock, or because a busy
/// machine took too long.
pub fn is_to_be_repeated(error: &StoreError) -> bool {
    error.is_transient() && TOLD_AGAIN.iter().any(|why| error.chain().contains(why))
}

impl Scene {
    /// Creates a scene on a fresh, migrated store.
    pub async fn on(store: Arc<dyn Store>) -> Self {
        let worker = register(&store, LONG).await;
        Self { store, worker }
    }

    /// Returns a job of [`KIND`].
    pub fn job() -> NewJob {
        NewJob::new(KIND, &serde_json::json!({ "for": "test" })).expect("JSON")
    }

    /// Enqueues one job.
    pub async fn enqueue(&self, job: NewJob) -> JobId {
        self.try_enqueue(job).await.expect("enqueued").job
    }

    /// Enqueues a number of jobs of a kind with the same payload.
    pub async fn enqueue_many(&self, jobs: usize, kind: &str, payload: serde_json::Value) -> Vec<JobId> {
        let jobs: Vec<NewJob> = (0..jobs).map(|_| NewJob::new(kind, &payload).expect("JSON")).collect();
        self.store.enqueue_many(&jobs).await.expect("enqueued").iter().map(|made| made.job).collect()
    }

    /// Enqueues one job and returns the result of the store.
    pub async fn try_enqueue(&self, job: NewJob) -> StoreResult<Enqueued> {
        Ok(self.store.enqueue_many(&[job]).await?[0])
    }

    /// Claims up to `limit` jobs for the scene's worker.
    pub async fn claim(&self, limit: u32) -> Vec<ClaimedJob> {
        self.claim_for(self.worker, limit).await.expect("claimed")
    }

    /// Claims up to `limit` jobs for a worker.
    pub async fn claim_for(&self, worker: WorkerId, limit: u32) -> StoreResult<Vec<ClaimedJob>> {
        self.store.claim(&claim(worker, limit)).await
    }

    /// Enqueues a job and claims it.
    pub async fn running(&self, job: NewJob) -> ClaimedJob {
        let id = self.enqueue(job).await;
        let claimed = self.claim(1).await;
        assert_eq!(claimed.first().map(|job| job.run.job), Some(id), "the only ready job is claimed");
        claimed.into_iter().next().expect("one")
    }

    /// Ends a run.
    pub async fn finish(&self, job: &ClaimedJob, end: End) -> Finished {
        self.finish_by(self.worker, job, end).await
    }

    /// Ends a run of this worker.
    pub async fn finish_by(&self, worker: WorkerId, job: &ClaimedJob, end: End) -> Finished {
        let finish = Finish { run: job.run, end, grouped: job.group.is_some(), task: job.batch.is_some() };
        self.tell(worker, finish).await
    }

    /// Reports the end of a worker's run as workers do: repeats it if the server aborted the transaction because of a deadlock, or because a busy
    /// machine took too long. Any other error fails the test.
    pub async fn tell(&self, worker: WorkerId, finish: Finish) -> Finished {
        for _ in 0..TOLD_MAX {
            match self.store.finish_many(worker, std::slice::from_ref(&finish)).await {
                Err(error) if is_to_be_repeated(&error) => {
                    eprintln!("repeating the report of an end: {}", error.chain());
                }
                answer => return answer.expect("answered")[0],
            }
        }
        panic!("an end was reported {TOLD_MAX} times")
    }

    /// Ends a run that may not be the job's current one.
    pub async fn finish_run(&self, run: Run, grouped: bool, end: End) -> Finished {
        self.tell(self.worker, Finish { run, end, grouped, task: false }).await
    }

    /// Performs an operation on a job.
    pub async fn operate(&self, job: JobId, operation: Operation) -> StoreResult<Operated> {
        self.store.operate(job, &operation).await
    }

    /// Returns the state of a job.
    pub async fn state(&self, job: JobId) -> JobState {
        self.view(job).await.row.state
    }

    /// Returns all details of a job.
    pub async fn view(&self, job: JobId) -> JobView {
        self.store.job(job).await.expect("answered").expect("the job does not exist")
    }

    /// Returns the history of a job.
    pub async fn history(&self, job: JobId) -> Vec<HistoryEntry> {
        self.store.complete_history(job).await.expect("answered")
    }

    /// Asserts that the history of a job folds to its current state.
    pub async fn assert_history_folds(&self, job: JobId) {
        let history = self.history(job).await;
        let folded = fold(&history).unwrap_or_else(|broken| panic!("{broken}: {history:#?}"));
        assert_eq!(folded, Some(self.state(job).await), "the history does not match the state: {history:#?}");
    }

    /// Waits until a job is in this state.
    pub async fn until(&self, job: JobId, state: JobState) {
        wait::until(&format!("job {job} is {state}"), || async { self.state(job).await == state }).await;
    }

    /// Waits until all these jobs have ended; asserts that each succeeded and that its history folds.
    pub async fn assert_all_succeed(&self, jobs: &[JobId]) {
        for &job in jobs {
            wait::until(&format!("job {job} has ended"), || async { self.state(job).await.is_ended() }).await;
        }
        for &job in jobs {
            let history = self.history(job).await;
            assert_eq!(self.state(job).await, JobState::Succeeded, "{history:#?}");
            self.assert_history_folds(job).await;
            let ends = history.iter().filter(|entry| entry.to.is_ended()).count();
            assert_eq!(ends, 1, "exactly one end: {history:#?}");
        }
    }

    /// Returns how often this verb occurs in the history of a job.
    pub async fn count(&self, job: JobId, verb: Verb) -> usize {
        self.history(job).await.iter().filter(|entry| entry.verb == verb).count()
    }

    /// Creates a job and moves it to a state by the verbs that lead there.
    pub async fn job_in(&self, state: JobState) -> (JobId, Run) {
        let running = |job: NewJob| async { self.running(job).await };
        let run = match state {
            JobState::Blocked => return self.blocked().await,
            JobState::Pending | JobState::Canceled | JobState::Skipped => {
                let job = self.enqueue(Self::job()).await;
                match state {
                    JobState::Canceled => {
                        self.operate(job, Operation::new(Verb::Cancel)).await.map(drop).expect("canceled");
                    }
                    JobState::Skipped => {
                        self.operate(job, Operation::new(Verb::Skip)).await.map(drop).expect("skipped");
                    }
                    _ => {}
                }
                Run { job, token: milepost_core::ident::RunToken(0) }
            }
            JobState::Running => running(Self::job()).await.run,
            JobState::RetryWait => self.ended(retry(Duration::ZERO)).await,
            JobState::Failed => self.ended(End::Fail { failure: failure() }).await,
            JobState::Aborted => self.ended(End::Abort).await,
            JobState::Succeeded => self.ended(End::Succeed { result: None }).await,
        };
        assert_eq!(self.state(run.job).await, state);
        (run.job, run)
    }

    /// Creates a job in a state in which no later claim of the scene finds it.
    pub async fn job_left_in(&self, state: JobState) -> JobId {
        let (job, _) = self.job_in(state).await;
        if matches!(state, JobState::Pending | JobState::RetryWait) {
            self.operate(job, Operation::new(Verb::Snooze).delay(LONG)).await.map(drop).expect("snoozed");
        }
        job
    }

    async fn ended(&self, end: End) -> Run {
        let job = self.running(Self::job()).await;
        assert_eq!(self.finish(&job, end).await, Finished::Accepted);
        job.run
    }

    /// Creates a job that waits for its group, whose slot another job holds.
    async fn blocked(&self) -> (JobId, Run) {
        let group = uuid::Uuid::now_v7().to_string();
        let holder = self.running(Self::job().group(&group)).await;
        let job = self.enqueue(Self::job().group(&group)).await;
        assert_eq!(self.state(job).await, JobState::Blocked);
        (job, holder.run)
    }
}

/// Registers a worker with this lease.
pub async fn register(store: &Arc<dyn Store>, lease: Duration) -> WorkerId {
    let worker = NewWorker {
        name: "testkit".to_owned(),
        queues: vec!["default".to_owned()],
        kinds: vec![KIND.to_owned(), "other".to_owned()],
        lease,
        ..NewWorker::default()
    };
    store.register_worker(&worker).await.expect("registered")
}

/// Returns a claim for all kinds and queues of scenes.
pub fn claim(worker: WorkerId, limit: u32) -> Claim {
    Claim {
        worker,
        claim_id: fastrand::i32(1..),
        queues: vec!["default".to_owned()],
        kinds: vec![KIND.to_owned(), "other".to_owned()],
        limit,
        thorough: false,
    }
}

/// Returns a failure.
pub fn failure() -> Failure {
    Failure { code: "test".to_owned(), message: "failed on purpose".to_owned() }
}

/// Returns an end with a retryable failure.
pub fn retry(delay: Duration) -> End {
    End::Retry { delay, failure: failure() }
}

//! For tests of applications: handlers without a store, and what an application has enqueued.
//!
//! | to test | use |
//! |---|---|
//! | a handler alone | [`Attempt`]: one attempt at a job, without any store |
//! | that something was enqueued | [`waiting`]: the jobs of a kind that wait in a store, with their payloads |
//! | enqueue → effect | [`WorkerBuilder::drain`](crate::WorkerBuilder::drain) on a store for tests |
//!
//! `SqliteStore::temporary` of `milepost-sqlite` makes a store for a test; any other in a database of the test's own
//! does as well. A retry that waits is due at once after an [`Operation`](crate::Operation) with
//! [`Verb::RetryNow`], any other job with a start in the future after one with [`Verb::Snooze`].
//!
//! ```
//! use milepost::testing::{Attempt, End};
//! use milepost::{Context, Job, JobError};
//! # use serde::{Deserialize, Serialize};
//! # #[derive(Serialize, Deserialize)]
//! # struct Import { pages: u32 }
//! # impl Job for Import { const KIND: &'static str = "import"; }
//!
//! async fn import(job: Import, context: Context) -> Result<(), JobError> {
//!     for page in context.last_checkpoint().await?.unwrap_or(0)..job.pages {
//!         context.progress(page.into(), i64::from(job.pages), None);
//!         context.checkpoint(&(page + 1)).await?;
//!         if context.cancellation().is_cancelled() {
//!             return Err(JobError::retryable("stopped", "asked to stop"));
//!         }
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let job = Import { pages: 9 }.to_job()?;
//! let ran = Attempt::of(job).number(2).earlier_checkpoint(&4).cancel_at_checkpoint(2).run(import).await;
//! assert_eq!(ran.end, End::Cancel);
//! assert_eq!(ran.checkpoints::<u32>()?, [5, 6]);
//! assert_eq!(ran.progress[0].done, 4);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::claim::ClaimedJob;
use milepost_core::ident::{Run, RunToken};
use milepost_core::job::NewJob;
use milepost_core::listing::{JobFilter, JobView};
use milepost_core::port::{Store, StoreResult};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::Progress;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub use milepost_core::finish::{End, Failure};

use crate::attempt;
use crate::context::Context;
use crate::handler::{Handler, Job, JobError, KindOptions, Kinds, Outcome};
use crate::journal::{Journal, Notes};
use crate::span;

/// The backoff in the middle of its jitter.
const NO_JITTER: f64 = 0.5;
/// Jobs looked at in one go.
const PAGE: u32 = 500;

/// One attempt at a job, to be made without any store: by the code that workers run, from the payload's decoding, over
/// time limits and panics, to what the store would be told.
///
/// A handler that completes its job in a transaction of its own needs a store that knows the job: test it with
/// [`drain`](crate::WorkerBuilder::drain).
#[derive(Debug)]
#[must_use = "an attempt is made by run"]
pub struct Attempt {
    job: NewJob,
    number: u32,
    notes: Notes,
}

impl Attempt {
    /// The first attempt at this job.
    pub fn of(job: NewJob) -> Self {
        Self { job, number: 1, notes: Notes::default() }
    }

    /// Attempt number `number`; 1 is the first.
    pub const fn number(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    /// After an earlier attempt that left off here.
    ///
    /// # Panics
    /// When the value cannot be written as JSON.
    pub fn earlier_checkpoint(mut self, value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value);
        self.notes.earlier = Some(text.unwrap_or_else(|error| panic!("the checkpoint is not JSON: {error}")));
        self
    }

    /// Canceled, as by an operator, when this token is: before the attempt, or by anything that the test controls.
    pub fn cancel_by(mut self, token: &CancellationToken) -> Self {
        self.notes.asked_to_stop = token.child_token();
        self
    }

    /// Canceled, as by an operator, while the handler writes its `nth` checkpoint; 1 is the first.
    pub const fn cancel_at_checkpoint(mut self, nth: usize) -> Self {
        self.notes.stop_at = Some(nth);
        self
    }

    /// Makes it with this handler, as [`WorkerBuilder::handle`](crate::WorkerBuilder::handle) would.
    pub async fn run<J: Job>(self, handler: impl Handler<J>) -> Ran {
        let mut kinds = Kinds::default();
        kinds.add(handler);
        self.run_by(&kinds).await
    }

    /// Makes it with a handler of the job's kind that has no type of its own, as
    /// [`WorkerBuilder::handle_kind`](crate::WorkerBuilder::handle_kind) would.
    pub async fn run_kind<F, Fut>(self, options: impl Into<KindOptions>, handler: F) -> Ran
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        let mut kinds = Kinds::default();
        kinds.add_kind(&self.job.kind, options, handler);
        self.run_by(&kinds).await
    }

    async fn run_by(self, kinds: &Kinds) -> Ran {
        let job = Arc::new(claimed(self.job, self.number));
        let kind = kinds.get(&job.kind);
        let notes = Arc::new(self.notes);
        // The limit on its time cancels the child alone: who asked is known in the end.
        let stop = notes.asked_to_stop.child_token();
        let context = Context::new(job.clone(), stop, Journal::Notes(notes.clone()));
        let answer = span::traced(&job, attempt::caught(attempt::perform(kind, context))).await.outcome;
        let stop_verb = notes.asked_to_stop.is_cancelled().then_some(Verb::Cancel);
        let end = attempt::end_of(kind, &job, answer.clone(), stop_verb, NO_JITTER);
        let words = notes.words();
        Ran { answer, end, progress: words.progress, checkpoints: words.checkpoints }
    }
}

/// The job as a worker would have claimed it.
fn claimed(job: NewJob, attempt: u32) -> ClaimedJob {
    ClaimedJob {
        run: Run { job: job.id, token: RunToken(attempt.cast_signed()) },
        claim_id: 1,
        kind: job.kind,
        queue: job.queue,
        payload: job.payload.get().to_owned(),
        attempt,
        max_attempts: job.max_attempts,
        priority: job.priority,
        group: job.group,
        timeout: job.timeout,
        created_at: Timestamp::now(),
        nominal_at: job.nominal_at,
        traceparent: job.traceparent,
        batch: None,
        waited: Some(Duration::ZERO),
    }
}

/// What became of an [`Attempt`].
#[derive(Clone, Debug)]
pub struct Ran {
    /// What the handler answered; a panic, a payload that does not fit and a time that is over are failures.
    pub answer: Result<Outcome, JobError>,
    /// What a store would be told: with the wait of a retry by the kind's policy, without its jitter. An
    /// [`Outcome::Completed`] is told as a failure, which a store that has the handler's commit turns down.
    pub end: End,
    /// Every word of progress, in order. A worker stores the latest.
    pub progress: Vec<Progress>,
    checkpoints: Vec<String>,
}

impl Ran {
    /// What the handler returned, if it succeeded with a result.
    ///
    /// # Errors
    /// When the result does not fit the type.
    pub fn result<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        match &self.end {
            End::Succeed { result: Some(text) } => serde_json::from_str(text).map(Some),
            _ => Ok(None),
        }
    }

    /// The checkpoints that the handler wrote, in order.
    ///
    /// # Errors
    /// When one does not fit the type.
    pub fn checkpoints<T: DeserializeOwned>(&self) -> Result<Vec<T>, serde_json::Error> {
        self.checkpoints.iter().map(|text| serde_json::from_str(text)).collect()
    }

    /// Why it failed, if it did, whether or not it is tried again.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.end {
            End::Retry { failure, .. } | End::Fail { failure } => Some(failure),
            _ => None,
        }
    }

    /// How long until it is tried again, if it failed and is.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        match self.end {
            End::Retry { delay, .. } => Some(delay),
            _ => None,
        }
    }
}

/// The jobs of kind `J::KIND` that wait in the store, be it for their time, their group or a retry, oldest first.
///
/// # Errors
/// When the store does not answer.
///
/// # Panics
/// When a payload does not fit `J`.
pub async fn waiting<J: Job>(store: &dyn Store) -> StoreResult<Vec<(JobView, J)>> {
    let mut found = Vec::new();
    let mut filter = JobFilter { kind: Some(J::KIND.to_owned()), limit: PAGE, ..JobFilter::default() };
    loop {
        let rows = store.jobs(&filter).await?;
        for row in rows.iter().filter(|row| is_waiting(row.state)) {
            let Some(view) = store.job(row.id).await? else { continue };
            let payload = serde_json::from_str(view.payload.get())
                .unwrap_or_else(|error| panic!("job {} of kind {}: {error}", row.id, J::KIND));
            found.push((view, payload));
        }
        let Some(last) = rows.last() else { break };
        filter.before = Some(last.id);
    }
    found.reverse();
    Ok(found)
}

const fn is_waiting(state: JobState) -> bool {
    matches!(state, JobState::Blocked | JobState::Pending | JobState::RetryWait)
}

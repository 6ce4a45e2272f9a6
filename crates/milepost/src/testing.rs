//! Test support for applications: handlers without a store, and the jobs that an application has enqueued.
//!
//! | to test | use |
//! |---|---|
//! | a handler alone | [`Attempt`]: one attempt at a job, without any store |
//! | that a job was enqueued | [`waiting`]: the jobs of a kind that wait in a store, with their payloads |
//! | enqueue → effect | [`WorkerBuilder::drain`](crate::WorkerBuilder::drain) on a store for tests |
//!
//! `SqliteStore::temporary` of `milepost-sqlite` creates a store for a test; any other store in a database of the test also works. To make
//! a waiting retry due immediately, apply an [`Operation`](crate::Operation) with [`Verb::RetryNow`]; for any other job with a start time
//! in the future, use [`Verb::Snooze`].
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
use milepost_core::listing::JobView;
use milepost_core::port::{Store, StoreResult};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::Progress;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub use milepost_core::finish::{End, Failure};

use crate::context::Context;
use crate::handler::{Handler, Job, KindOptions, Kinds};
use crate::outcome::{JobError, Outcome};
use crate::run_reports::{Notes, RunReports};
use crate::{attempt, span};

/// The middle of the jitter range.
const NO_JITTER: f64 = 0.5;
/// Jobs read at a time.
const PAGE: u32 = 500;

/// One attempt at a job without any store. It runs the same code as workers: decoding of the payload, time limits, handling of panics, and
/// the end that a store would get.
///
/// A handler that completes its job in its own transaction needs a store that contains the job: test it with
/// [`drain`](crate::WorkerBuilder::drain).
#[derive(Debug)]
#[must_use = "an attempt does nothing until `run` is called"]
pub struct Attempt {
    job: NewJob,
    number: u32,
    notes: Notes,
}

impl Attempt {
    /// Creates the first attempt at this job.
    pub fn of(job: NewJob) -> Self {
        Self { job, number: 1, notes: Notes::default() }
    }

    /// Sets the number of the attempt; 1 is the first.
    pub const fn number(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    /// Sets the last checkpoint of an earlier attempt.
    ///
    /// # Panics
    /// If the value cannot be written as JSON.
    pub fn earlier_checkpoint(mut self, value: &impl Serialize) -> Self {
        let text = serde_json::to_string(value);
        self.notes.earlier = Some(text.unwrap_or_else(|error| panic!("the checkpoint is not JSON: {error}")));
        self
    }

    /// Cancels the attempt, like an operator, when this token is canceled: before the attempt, or by anything that the test controls.
    pub fn cancel_by(mut self, token: &CancellationToken) -> Self {
        self.notes.asked_to_stop = token.child_token();
        self
    }

    /// Cancels the attempt, like an operator, while the handler writes its `nth` checkpoint; 1 is the first.
    pub const fn cancel_at_checkpoint(mut self, nth: usize) -> Self {
        self.notes.stop_at = Some(nth);
        self
    }

    /// Runs the attempt with this handler, as [`WorkerBuilder::handle`](crate::WorkerBuilder::handle) would.
    pub async fn run<J: Job>(self, handler: impl Handler<J>) -> Ran {
        let mut kinds = Kinds::default();
        kinds.add(handler);
        self.run_by(&kinds).await
    }

    /// Runs the attempt with a handler of a kind without a Rust type, as [`WorkerBuilder::handle_kind`](crate::WorkerBuilder::handle_kind)
    /// would.
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
        // The time limit cancels only the child token, so that a stop request can be distinguished from it.
        let stop = notes.asked_to_stop.child_token();
        let shutdown = CancellationToken::new();
        let context = Context::new(job.clone(), stop, shutdown, RunReports::Notes(notes.clone()));
        let answer = span::traced(&job, attempt::caught(attempt::perform(kind, context))).await.outcome;
        let stop_verb = notes.asked_to_stop.is_cancelled().then_some(Verb::Cancel);
        let end = attempt::end_of(kind, &job, answer.clone(), stop_verb, NO_JITTER);
        let words = notes.words();
        Ran { answer, end, progress: words.progress, checkpoints: words.checkpoints }
    }
}

/// Returns the job as a worker would have claimed it.
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

/// The result of an [`Attempt`].
#[derive(Clone, Debug)]
pub struct Ran {
    /// The handler's answer. A panic, a payload that does not fit and an exceeded time limit are failures.
    pub answer: Result<Outcome, JobError>,
    /// The end that a store would get; the wait of a retry follows the kind's policy, without jitter. An [`Outcome::Completed`] becomes a
    /// failure, which a store that has the handler's commit rejects.
    pub end: End,
    /// All progress reports, in order. A worker stores the latest.
    pub progress: Vec<Progress>,
    checkpoints: Vec<String>,
}

impl Ran {
    /// Returns the handler's result, if it succeeded with one.
    ///
    /// # Errors
    /// If the result does not fit the type.
    pub fn result<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        match &self.end {
            End::Succeed { result: Some(text) } => serde_json::from_str(text).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the checkpoints that the handler wrote, in order.
    ///
    /// # Errors
    /// If one does not fit the type.
    pub fn checkpoints<T: DeserializeOwned>(&self) -> Result<Vec<T>, serde_json::Error> {
        self.checkpoints.iter().map(|text| serde_json::from_str(text)).collect()
    }

    /// Returns the failure, if it failed, whether or not it is retried.
    #[must_use]
    pub const fn failure(&self) -> Option<&Failure> {
        match &self.end {
            End::Retry { failure, .. } | End::Fail { failure } => Some(failure),
            _ => None,
        }
    }

    /// Returns the delay before the next attempt, if it failed and is retried.
    #[must_use]
    pub const fn retry_in(&self) -> Option<Duration> {
        match self.end {
            End::Retry { delay, .. } => Some(delay),
            _ => None,
        }
    }
}

/// Returns the jobs of kind `J::KIND` that wait in the store for their time, their group or a retry, oldest first.
///
/// # Errors
/// If the store does not answer.
///
/// # Panics
/// If a payload does not fit `J`.
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

//! Application interface: jobs as types, handlers as functions, and the outcomes and errors of handlers.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::error::InvalidJob;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority, QUEUE_DEFAULT};
use milepost_core::retry::RetryPolicy;
use milepost_core::worker::Backoffs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bulk::Perform;
use crate::context::Context;

/// A kind of job, described by the type of its payload.
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The kind's name. It is stored in the database, so it must not change when the type is renamed.
    const KIND: &'static str;
    /// The queue of its jobs.
    const QUEUE: &'static str = QUEUE_DEFAULT;
    /// The number of attempts of a job; a crash of its worker counts as one.
    const MAX_ATTEMPTS: u32 = MAX_ATTEMPTS_DEFAULT;
    /// The time limit of an attempt; a job can have its own limit.
    const TIMEOUT: Option<Duration> = None;
    /// How long a handler that has exceeded its time limit may take to stop after it is asked through [`Context::cancellation`], before it
    /// is dropped.
    const STOP_GRACE: Duration = Duration::ZERO;

    /// Returns the priority of its jobs within the queue.
    #[must_use]
    fn priority() -> Priority {
        Priority::default()
    }

    /// Returns the delays before a failed job is retried.
    #[must_use]
    fn backoff() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Converts this payload to a job that can be enqueued, with the kind's settings.
    ///
    /// # Errors
    /// [`InvalidJob::NotJson`] if the payload cannot be written as JSON.
    fn to_job(&self) -> Result<NewJob, InvalidJob> {
        let job = NewJob::new(Self::KIND, self)?;
        Ok(job.queue(Self::QUEUE).priority(Self::priority()).max_attempts(Self::MAX_ATTEMPTS))
    }
}

/// The outcome of a handler that did not fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Done, without a result.
    #[default]
    Done,
    /// Done, with a result as JSON text.
    Result(String),
    /// Run the job again after this long. Does not count the attempt.
    Snooze(Duration),
    /// Hand the job back, to run again after this long, with a reason. Does not count the attempt.
    Yield {
        /// The minimum delay.
        after: Duration,
        /// The reason, for the history.
        note: String,
    },
    /// Stopped because the context was asked to stop.
    Stopped,
    /// Already completed by the handler in its own transaction, which it committed. If the transaction was not committed, the job counts as
    /// failed and is retried.
    Completed,
}

impl Outcome {
    /// Returns a success with this result.
    ///
    /// # Errors
    /// A final [`JobError`] if the value cannot be written as JSON.
    pub fn result(value: &impl Serialize) -> Result<Self, JobError> {
        serde_json::to_string(value).map(Self::Result).map_err(|e| JobError::fatal("result", e.to_string()))
    }
}

/// Return types of handlers for success.
pub trait IntoOutcome {
    /// Converts to an outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for serde_json::Value {
    fn into_outcome(self) -> Outcome {
        Outcome::Result(self.to_string())
    }
}

/// The error code of a completion that was not committed.
pub(crate) const NOT_COMMITTED: &str = "not_committed";

/// The reason why an attempt failed, and whether it can be retried.
///
/// Any error converts with `?`: it becomes retryable, with code `error` and all its causes in the message. A type that does not implement
/// [`Error`](std::error::Error), such as `anyhow`'s, is converted with [`caused_by`](Self::caused_by).
///
/// Codes are defined by the application, except those of Milepost: `panic`, `timeout`, `payload` (it does not fit the kind's type; final),
/// `result` (it is not JSON; final), `checkpoint`, `fenced`, `no_handler`, `not_committed` (the handler reported that it had completed its
/// job, but did not) and `unstorable` (the store refused the result; final).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// A stable name for the type of failure, for lists and alerts.
    pub code: String,
    /// A description of the failure.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// How long to wait before the next attempt; used if it is longer than the backoff.
    pub retry_after: Option<Duration>,
}

impl JobError {
    /// Creates a failure that another attempt may resolve.
    #[must_use]
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: true, retry_after: None }
    }

    /// Creates a failure that no further attempt can resolve.
    #[must_use]
    pub fn fatal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, retry_after: None }
    }

    /// Creates a retryable failure from this error, with all its causes in the message and code `error`.
    #[must_use]
    pub fn caused_by(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::retryable("error", message)
    }

    /// Returns this failure with a minimum wait before the next attempt.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

// JobError does not implement `Error`, so that every error type converts into it.
impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::caused_by(&error)
    }
}

/// An async function of a payload and its context.
pub trait Handler<J: Job>: Send + Sync + 'static {
    /// Runs one attempt.
    fn call(&self, job: J, context: Context) -> BoxFuture<'static, Result<Outcome, JobError>>;
}

impl<J, F, Fut, O> Handler<J> for F
where
    J: Job,
    F: Fn(J, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, JobError>> + Send + 'static,
    O: IntoOutcome,
{
    fn call(&self, job: J, context: Context) -> BoxFuture<'static, Result<Outcome, JobError>> {
        self(job, context).map(|answer| answer.map(IntoOutcome::into_outcome)).boxed()
    }
}

/// Options for the runs of a kind without a Rust type.
#[derive(Clone, Copy, Debug, Default)]
pub struct KindOptions {
    /// The delays before a failed job is retried.
    pub backoff: RetryPolicy,
    /// The time limit of an attempt; a job can have its own limit.
    pub timeout: Option<Duration>,
    /// How long a handler that has exceeded its time limit may take to stop after it is asked through [`Context::cancellation`], before it
    /// is dropped.
    pub stop_grace: Duration,
}

impl From<RetryPolicy> for KindOptions {
    fn from(backoff: RetryPolicy) -> Self {
        Self { backoff, ..Self::default() }
    }
}

/// The handler and the options of a kind.
#[derive(Clone)]
pub(crate) struct KindEntry {
    pub(crate) perform: Arc<Perform>,
    pub(crate) options: KindOptions,
}

/// The kinds that a worker runs.
#[derive(Clone, Default)]
pub(crate) struct Kinds(HashMap<String, KindEntry>);

impl Kinds {
    pub(crate) fn add<J: Job>(&mut self, handler: impl Handler<J>) {
        let handler = Arc::new(handler);
        let perform = move |context: Context| -> BoxFuture<'static, Result<Outcome, JobError>> {
            match serde_json::from_str::<J>(&context.job().payload) {
                Ok(job) => handler.call(job, context),
                Err(error) => {
                    let message = format!("the payload does not fit kind {}: {error}", J::KIND);
                    std::future::ready(Err(JobError::fatal("payload", message))).boxed()
                }
            }
        };
        let options = KindOptions { backoff: J::backoff(), timeout: J::TIMEOUT, stop_grace: J::STOP_GRACE };
        self.insert(J::KIND, KindEntry { perform: Arc::new(perform), options });
    }

    pub(crate) fn add_kind<F, Fut>(&mut self, kind: &str, options: impl Into<KindOptions>, handler: F)
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        let perform = move |context| -> BoxFuture<'static, _> { handler(context).boxed() };
        self.insert(kind, KindEntry { perform: Arc::new(perform), options: options.into() });
    }

    pub(crate) fn add_performed(&mut self, kind: &str, options: KindOptions, perform: Arc<Perform>) {
        self.insert(kind, KindEntry { perform, options });
    }

    fn insert(&mut self, kind: &str, entry: KindEntry) {
        self.0.insert(kind.to_owned(), entry);
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&KindEntry> {
        self.0.get(kind)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns the backoff policies of its kinds.
    pub(crate) fn backoffs(&self) -> Backoffs {
        self.0.iter().map(|(kind, entry)| (kind.clone(), entry.options.backoff)).collect()
    }
}

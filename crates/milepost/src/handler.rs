//! Application interface: jobs as types, and handlers as functions.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{MAX_ATTEMPTS_DEFAULT, NewJob, Priority, QUEUE_DEFAULT};
use milepost_core::retry::RetryPolicy;
use milepost_core::worker::Backoffs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bulk::Perform;
use crate::context::Context;
use crate::outcome::{IntoOutcome, JobError, Outcome};

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

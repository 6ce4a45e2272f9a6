//! The handler's view of its run, and its operations on it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::claim::ClaimedJob;
use milepost_core::error::StoreError;
use milepost_core::hash::fnv1a;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use milepost_core::text::shorten;
use milepost_core::worker::{Progress, check_checkpoint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::outcome::{JobError, Outcome};
use crate::run_reports::RunReports;

/// The most bytes kept of a progress message.
const MESSAGE_BYTES_MAX: usize = 10_000;

/// One run of one job, for its handler. Cloning is cheap.
#[derive(Clone)]
pub struct Context {
    job: Arc<ClaimedJob>,
    stop: CancellationToken,
    shutdown: CancellationToken,
    reports: RunReports,
    /// The chunk of a bulk job, if the function gets one.
    chunk: Option<ChunkName>,
}

/// Identifies a chunk among those of its job.
#[derive(Clone, Copy)]
struct ChunkName {
    number: u64,
    digest: u64,
}

impl Context {
    pub(crate) const fn new(
        job: Arc<ClaimedJob>,
        stop: CancellationToken,
        shutdown: CancellationToken,
        reports: RunReports,
    ) -> Self {
        Self { job, stop, shutdown, reports, chunk: None }
    }

    /// Returns a context of the same run for a function that gets one chunk of it.
    pub(crate) fn for_chunk(&self, number: u64, payload: String) -> Self {
        let chunk = ChunkName { number, digest: fnv1a(&payload) };
        let job = Arc::new(ClaimedJob { payload, ..self.job.as_ref().clone() });
        Self { job, chunk: Some(chunk), ..self.clone() }
    }

    /// Returns a key that identifies this piece of work and is the same for every attempt: the job's id; for a chunk of a bulk job also the
    /// chunk's number and a digest of its content. A chunk that is read again with other targets, for example fewer because the size was
    /// changed, is a different piece of work.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let job = self.job.run.job;
        match self.chunk {
            Some(ChunkName { number, digest }) => format!("{job}:{number}:{digest:016x}"),
            None => job.to_string(),
        }
    }

    /// Returns the job as it was claimed.
    #[must_use]
    pub fn job(&self) -> &ClaimedJob {
        &self.job
    }

    /// Returns the job and the run token, for completing the job in the handler's own transaction.
    #[must_use]
    pub fn run(&self) -> Run {
        self.job.run
    }

    /// Returns the number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.job.attempt
    }

    /// Returns the time of the schedule's tick that created the job, even if the job runs late. A daily report uses it to select its day.
    /// `None` for a job that no schedule created.
    #[must_use]
    pub fn nominal_at(&self) -> Option<Timestamp> {
        self.job.nominal_at
    }

    /// Returns a token that is canceled when the job is to stop: an operator requested it, the worker is shutting down and its drain time
    /// has passed, or the run was fenced. A handler that stops returns [`Outcome::Stopped`] or an error.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns a token that is canceled when the worker begins to shut down, before its drain time. A long handler that has stored a checkpoint
    /// can return [`Outcome::Yield`] at once, so that another worker continues the job; others can ignore it.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Reports the progress of the job. Never waits: the latest report is stored within half a second.
    pub fn progress(&self, done: i64, total: impl Into<Option<i64>>, message: impl Into<Option<String>>) {
        let message = message.into().map(|message| shorten(message, MESSAGE_BYTES_MAX));
        let progress = Progress { done, total: total.into(), message };
        self.reports.progress(self.run(), progress, &self.stop);
    }

    /// Stores a checkpoint from which the next attempt can resume; it is durable when this returns.
    ///
    /// # Errors
    /// Code `fenced` if the run no longer owns the job: the handler must stop without further effects, which it does if it returns the
    /// error. Code `checkpoint`, final, if the value cannot be written as JSON, or is too large or nested too deeply.
    pub async fn checkpoint(&self, value: &impl Serialize) -> Result<(), JobError> {
        let checkpoint =
            serde_json::to_string(value).map_err(|e| JobError::fatal("checkpoint", e.to_string()))?;
        check_checkpoint(&checkpoint).map_err(|why| JobError::fatal("checkpoint", why))?;
        self.report(Some(checkpoint)).await.map_err(|error| match error {
            StoreError::Fenced(_) => JobError::retryable("fenced", error.to_string()),
            error => error.into(),
        })
    }

    /// Returns the last checkpoint of this or an earlier attempt, if there is one.
    ///
    /// # Errors
    /// If the store does not answer, or, with code `checkpoint`, if the checkpoint does not fit the type.
    pub async fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, JobError> {
        match self.reports.last_checkpoint(self.run()).await? {
            Some(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                JobError::retryable("checkpoint", format!("the checkpoint does not fit: {error}"))
            }),
            None => Ok(None),
        }
    }

    /// Checks with the store whether this run still owns the job. The worker renews its lease automatically; this is for handlers that need
    /// certainty immediately before an irreversible effect.
    ///
    /// # Errors
    /// [`Fenced`](StoreError::Fenced) if the run no longer owns the job: the handler must stop without further effects.
    pub async fn heartbeat(&self) -> StoreResult<()> {
        self.report(None).await
    }

    /// Returns the outcome that runs the job again after `wait`, without counting the attempt.
    #[must_use]
    pub const fn snooze(&self, wait: Duration) -> Outcome {
        Outcome::Snooze(wait)
    }

    async fn report(&self, checkpoint: Option<String>) -> StoreResult<()> {
        if self.reports.report(self.run(), checkpoint).await? {
            return Ok(());
        }
        self.stop.cancel();
        Err(StoreError::Fenced(self.run()))
    }
}

impl fmt::Debug for Context {
    /// Formats the context without the payload, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, run, attempt) = (&self.job.kind, self.run(), self.attempt());
        f.debug_struct("Context")
            .field("kind", kind)
            .field("run", &run)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

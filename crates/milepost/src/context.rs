//! What a handler knows of its run, and what it can do to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::claim::ClaimedJob;
use milepost_core::error::StoreError;
use milepost_core::ident::Run;
use milepost_core::port::StoreResult;
use milepost_core::worker::{Progress, check_checkpoint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::attempt::shorten;
use crate::handler::{JobError, Outcome};
use crate::journal::Journal;

/// How much of a message for people is kept.
const MESSAGE_BYTES_MAX: usize = 10_000;

/// One run of one job, for its handler. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    job: Arc<ClaimedJob>,
    stop: CancellationToken,
    journal: Journal,
    /// Which chunk of a bulk job it is about.
    chunk: Option<ChunkName>,
}

/// What tells a chunk from the others of its job.
#[derive(Clone, Copy)]
struct ChunkName {
    number: u64,
    digest: u64,
}

/// FNV-1a, which is the same for every build and process.
fn digest(text: &str) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

impl Context {
    pub(crate) const fn new(job: Arc<ClaimedJob>, stop: CancellationToken, journal: Journal) -> Self {
        Self { job, stop, journal, chunk: None }
    }

    /// The same run, for a function that gets one chunk of it.
    pub(crate) fn for_chunk(&self, number: u64, payload: String) -> Self {
        let chunk = ChunkName { number, digest: digest(&payload) };
        let job = Arc::new(ClaimedJob { payload, ..self.job.as_ref().clone() });
        Self { job, chunk: Some(chunk), ..self.clone() }
    }

    /// What tells this piece of work from every other, however often it is tried: the job's id; of a chunk of a bulk job
    /// also the chunk's number and a digest of what it holds. A chunk that is read again with other targets, such as
    /// fewer because the size was changed, is another piece of work.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let job = self.job.run.job;
        match self.chunk {
            Some(ChunkName { number, digest }) => format!("{job}:{number}:{digest:016x}"),
            None => job.to_string(),
        }
    }

    /// The job as it was claimed.
    #[must_use]
    pub fn job(&self) -> &ClaimedJob {
        &self.job
    }

    /// The job and the run token, for completing it in a transaction of the handler's own.
    #[must_use]
    pub fn run(&self) -> Run {
        self.job.run
    }

    /// Which try this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.job.attempt
    }

    /// The tick of the schedule that the job stands for, however late it runs: what a report of the day before
    /// counts from. `None` for a job that no schedule made.
    #[must_use]
    pub fn nominal_at(&self) -> Option<Timestamp> {
        self.job.nominal_at
    }

    /// Canceled when the job is to stop: an operator asked for it, the worker shuts down and its time to drain
    /// is over, or the run was fenced. A handler that heeds it returns [`Outcome::Stopped`] or an error.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.stop
    }

    /// Tells people how far the job is. Never waits: the latest word is stored within half a second.
    pub fn progress(&self, done: i64, total: impl Into<Option<i64>>, message: impl Into<Option<String>>) {
        let message = message.into().map(|message| shorten(message, MESSAGE_BYTES_MAX));
        let progress = Progress { done, total: total.into(), message };
        self.journal.progress(self.run(), progress, &self.stop);
    }

    /// Stores where the next attempt can go on from; durable when this returns.
    ///
    /// # Errors
    /// Code `fenced` when the job has moved on: the handler must stop without further effects, which it does when it
    /// passes the error on. Code `checkpoint`, final, when the value cannot be written as JSON, or is too large or nested too deeply.
    pub async fn checkpoint(&self, value: &impl Serialize) -> Result<(), JobError> {
        let checkpoint =
            serde_json::to_string(value).map_err(|e| JobError::fatal("checkpoint", e.to_string()))?;
        check_checkpoint(&checkpoint).map_err(|why| JobError::fatal("checkpoint", why))?;
        self.report(Some(checkpoint)).await.map_err(|error| match error {
            StoreError::Fenced(_) => JobError::retryable("fenced", error.to_string()),
            error => error.into(),
        })
    }

    /// Where an earlier attempt left off, or this one was last, if either said so.
    ///
    /// # Errors
    /// When the store does not answer, or, with code `checkpoint`, when the checkpoint does not fit the type.
    pub async fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, JobError> {
        match self.journal.last_checkpoint(self.run()).await? {
            Some(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
                JobError::retryable("checkpoint", format!("the checkpoint does not fit: {error}"))
            }),
            None => Ok(None),
        }
    }

    /// Asks the store whether this run still holds the job. The worker renews its lease by itself; this is for
    /// handlers that want to be sure right before an effect that cannot be taken back.
    ///
    /// # Errors
    /// [`Fenced`](StoreError::Fenced) when the job has moved on: the handler must stop without further effects.
    pub async fn heartbeat(&self) -> StoreResult<()> {
        self.report(None).await
    }

    /// The answer that runs the job again after `wait`, without spending the attempt.
    #[must_use]
    pub const fn snooze(&self, wait: Duration) -> Outcome {
        Outcome::Snooze(wait)
    }

    async fn report(&self, checkpoint: Option<String>) -> StoreResult<()> {
        if self.journal.report(self.run(), checkpoint).await? {
            return Ok(());
        }
        self.stop.cancel();
        Err(StoreError::Fenced(self.run()))
    }
}

impl fmt::Debug for Context {
    /// Without the payload, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, run, attempt) = (&self.job.kind, self.run(), self.attempt());
        f.debug_struct("Context")
            .field("kind", kind)
            .field("run", &run)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

//! One attempt at a job: payload → handler → answer → end. Does not depend on a worker or a store.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use milepost_core::claim::ClaimedJob;
use milepost_core::finish::{End, Failure, check_result};
use milepost_core::retry::RetryPolicy;
use milepost_core::text::shorten;
use milepost_core::transition::Verb;

use crate::context::Context;
use crate::handler::KindEntry;
use crate::outcome::{JobError, NOT_COMMITTED, Outcome};

/// The outcome that a handler returned, or the failure that its panic caused.
pub(crate) struct Attempted {
    pub(crate) outcome: Result<Outcome, JobError>,
    pub(crate) panicked: bool,
}

impl From<Result<Outcome, JobError>> for Attempted {
    fn from(outcome: Result<Outcome, JobError>) -> Self {
        Self { outcome, panicked: false }
    }
}

/// Runs an attempt and converts panics into failures.
pub(crate) async fn caught(attempt: impl Future<Output = Result<Outcome, JobError>>) -> Attempted {
    match AssertUnwindSafe(attempt).catch_unwind().await {
        Ok(outcome) => outcome.into(),
        Err(panic) => {
            let outcome = Err(JobError::retryable("panic", panic_message(panic.as_ref())));
            Attempted { outcome, panicked: true }
        }
    }
}

/// Runs the handler of the job's kind with its time limit. After the limit the handler is asked to stop; if it then succeeds within the
/// grace period, the success counts.
pub(crate) async fn perform(kind: Option<&KindEntry>, context: Context) -> Result<Outcome, JobError> {
    let job = context.job();
    let Some(kind) = kind else {
        let message = format!("this worker has no handler for {}", job.kind);
        return Err(JobError::retryable("no_handler", message));
    };
    let limit = job.timeout.or(kind.options.timeout);
    let stop = context.cancellation().clone();
    // Called inside the future, so that a panic before its first await is also caught.
    let mut handler = pin!(async { (kind.perform)(context).await });
    let Some(limit) = limit else { return handler.await };
    if let Ok(answer) = tokio::time::timeout(limit, handler.as_mut()).await {
        return answer;
    }
    stop.cancel();
    match tokio::time::timeout(kind.options.stop_grace, handler).await {
        Ok(Ok(end @ (Outcome::Done | Outcome::Result(_) | Outcome::Completed))) => Ok(end),
        _ => Err(JobError::retryable("timeout", format!("the attempt took longer than {limit:?}"))),
    }
}

/// The note of a run that a worker hands back when it shuts down.
pub(crate) const HANDED_BACK: &str = "handed back at shutdown";

/// Returns the end that is stored for an answer. `stop_verb`: the stop request that the handler got, if any; `random`, uniform in `[0, 1)`,
/// adds jitter to the backoff.
pub(crate) fn end_of(
    kind: Option<&KindEntry>,
    job: &ClaimedJob,
    answer: Result<Outcome, JobError>,
    stop_verb: Option<Verb>,
    random: f64,
) -> End {
    let failed = |error: JobError| failure_of(kind, job, error, random);
    let stopped = stop_verb.map(|verb| match verb {
        Verb::Abort => End::Abort,
        Verb::Yield => yielded(Duration::ZERO, HANDED_BACK),
        _ => End::Cancel,
    });
    match (answer, stopped) {
        (Ok(Outcome::Done), _) => End::Succeed { result: None },
        (Ok(Outcome::Result(result)), _) => match check_result(&result, job.batch.is_some()) {
            Ok(()) => End::Succeed { result: Some(result) },
            Err(failure) => failed(JobError::fatal(failure.code, failure.message)),
        },
        (Ok(Outcome::Completed), _) => {
            let message = "the handler returned `Completed`, but did not commit the completion of the job";
            failed(JobError::retryable(NOT_COMMITTED, message))
        }
        // If the handler was asked to stop, any answer other than success, including an error, means that it stopped.
        (_, Some(end)) => end,
        (Ok(Outcome::Stopped), None) => yielded(Duration::ZERO, "stopped by its handler"),
        (Ok(Outcome::Snooze(delay)), None) => yielded(delay, "snoozed by its handler"),
        (Ok(Outcome::Yield { after, note }), None) => yielded(after, &note),
        (Err(error), None) => failed(error),
    }
}

fn yielded(delay: Duration, note: &str) -> End {
    End::Yield { delay, note: note.to_owned() }
}

fn failure_of(kind: Option<&KindEntry>, job: &ClaimedJob, error: JobError, random: f64) -> End {
    let backoff = kind.map_or_else(RetryPolicy::default, |kind| kind.options.backoff);
    let (verb, delay) =
        backoff.after_failure(job.attempt, job.max_attempts, error.retryable, error.retry_after, random);
    let failure = Failure { code: shorten(error.code, 100), message: shorten(error.message, 10_000) };
    if verb == Verb::Retry { End::Retry { delay, failure } } else { End::Fail { failure } }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the handler panicked with a value that is not text".to_owned())
}

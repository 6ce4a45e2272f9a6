//! One run as a pipeline: start → perform → record.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use milepost_core::claim::ClaimedJob;
use milepost_core::finish::{End, Failure, Finish};
use milepost_core::retry::RetryPolicy;
use milepost_core::transition::Verb;
use serde::de::IgnoredAny;
use tokio::sync::OwnedSemaphorePermit;

use crate::context::Context;
use crate::flight::Leash;
use crate::handler::{JobError, KindEntry, Outcome};
use crate::incarnation::Shared;

/// Runs one job in a task of its own; the permit is its place among the concurrent ones.
pub(crate) fn start(shared: Arc<Shared>, job: ClaimedJob, leash: Leash, permit: OwnedSemaphorePermit) {
    let tracker = shared.tasks.clone();
    tracker.spawn(async move {
        let job = Arc::new(job);
        let answer = perform(&shared, &job, leash).await;
        let stop_verb = shared.flight.ending(job.run);
        if let Some(answer) = answer {
            let end = end_of(&shared, &job, answer, stop_verb);
            let finish = Finish { run: job.run, end, grouped: job.group.is_some() };
            shared.ends.send(finish).await;
        } else {
            shared.flight.land(std::iter::once(job.run));
        }
        drop(permit);
    });
}

/// What the handler answered; `None` when the lease was lost meanwhile, or the store gave the run up, and nothing
/// may be written any more.
async fn perform(
    shared: &Arc<Shared>,
    job: &Arc<ClaimedJob>,
    leash: Leash,
) -> Option<Result<Outcome, JobError>> {
    let Some(kind) = shared.kinds.get(&job.kind) else {
        return Some(Err(JobError::retryable(
            "no_handler",
            format!("this worker has no handler for {}", job.kind),
        )));
    };
    let context = Context::new(job.clone(), leash.stop, shared.reporter.clone(), shared.store.clone());
    let attempt = async {
        tokio::select! {
            () = shared.coordinator.let_older_stop(job.run) => {}
            () = context.cancellation().clone().cancelled_owned() => {}
        }
        let _at_work = shared.coordinator.at_work(job.run);
        attempt(kind, job, context).await
    };
    let attempt = AssertUnwindSafe(attempt).catch_unwind();
    let answer = tokio::select! {
        biased;
        answer = attempt => answer,
        () = shared.lost.cancelled() => return None,
        () = leash.cut.cancelled() => return None,
        () = shared.hand_back.cancelled() => {
            return Some(Ok(Outcome::Snooze(Duration::ZERO)));
        }
    };
    Some(answer.unwrap_or_else(|panic| {
        shared.stats.panicked.add(1);
        Err(JobError::retryable("panic", panic_message(panic.as_ref())))
    }))
}

/// The handler under its time limit. When that is over it is asked to stop; what it then ends well counts.
async fn attempt(kind: &KindEntry, job: &ClaimedJob, context: Context) -> Result<Outcome, JobError> {
    let stop = context.cancellation().clone();
    // Called inside the future, so that a panic before its first await is caught too.
    let mut handler = pin!(async { (kind.perform)(context).await });
    let Some(limit) = job.timeout.or(kind.options.timeout) else { return handler.await };
    if let Ok(answer) = tokio::time::timeout(limit, handler.as_mut()).await {
        return answer;
    }
    stop.cancel();
    match tokio::time::timeout(kind.options.stop_grace, handler).await {
        Ok(Ok(end @ (Outcome::Done | Outcome::Result(_) | Outcome::Completed))) => Ok(end),
        _ => Err(JobError::retryable("timeout", format!("the attempt took longer than {limit:?}"))),
    }
}

/// The end that the store will be told.
fn end_of(
    shared: &Shared,
    job: &ClaimedJob,
    answer: Result<Outcome, JobError>,
    stop_verb: Option<Verb>,
) -> End {
    let stopped = stop_verb.map(|verb| match verb {
        Verb::Abort => End::Abort,
        Verb::Yield => handed_back(),
        _ => End::Cancel,
    });
    match (answer, stopped) {
        (Ok(Outcome::Done), _) => End::Succeed { result: None },
        (Ok(Outcome::Result(result)), _) => match serde_json::from_str::<IgnoredAny>(&result) {
            Ok(_) => End::Succeed { result: Some(result) },
            Err(error) => {
                retry(shared, job, JobError::fatal("result", format!("the result is not JSON: {error}")))
            }
        },
        (Ok(Outcome::Completed), _) => retry(
            shared,
            job,
            JobError::retryable(
                "not_committed",
                "the handler said that it had completed the job, but did not commit",
            ),
        ),
        // What a handler answers when it was asked to stop, be it an error, is that it stopped.
        (_, Some(end)) => end,
        (Ok(Outcome::Stopped), None) => {
            End::Yield { delay: Duration::ZERO, note: "stopped by its handler".to_owned() }
        }
        (Ok(Outcome::Snooze(delay)), None) => End::Yield { delay, note: "snoozed by its handler".to_owned() },
        (Err(error), None) => retry(shared, job, error),
    }
}

fn handed_back() -> End {
    End::Yield { delay: Duration::ZERO, note: "handed back at shutdown".to_owned() }
}

fn retry(shared: &Shared, job: &ClaimedJob, error: JobError) -> End {
    let backoff = shared.kinds.get(&job.kind).map_or_else(RetryPolicy::default, |kind| kind.options.backoff);
    let (verb, delay) = backoff.after_failure(
        job.attempt,
        job.max_attempts,
        error.retryable,
        error.retry_after,
        fastrand::f64(),
    );
    let failure = Failure { code: shorten(error.code, 100), message: shorten(error.message, 10_000) };
    if verb == Verb::Retry { End::Retry { delay, failure } } else { End::Fail { failure } }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "the handler panicked with a value that is not text".to_owned())
}

/// Error texts can be of any size; history keeps their beginning.
fn shorten(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

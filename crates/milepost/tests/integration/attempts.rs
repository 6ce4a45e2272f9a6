//! Attempts without a store: cases that the conformance suite does not cover.

use std::time::Duration;

use milepost::testing::{Attempt, End};
use milepost::{CancellationToken, Context, Job, JobError, NewJob, Outcome};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Patient {}

impl Job for Patient {
    const KIND: &'static str = "patient";
    const TIMEOUT: Option<Duration> = Some(Duration::from_millis(10));
    const STOP_GRACE: Duration = Duration::from_secs(60);
}

/// Runs until it is asked to stop; the first attempt then returns a result.
async fn until_asked(_: Patient, context: Context) -> Result<Outcome, JobError> {
    context.cancellation().cancelled().await;
    if context.attempt() == 1 { Outcome::result(&"saved") } else { Ok(Outcome::Stopped) }
}

#[tokio::test]
async fn a_handler_whose_time_is_over_can_end_well_in_its_grace() {
    let ran = Attempt::of(Patient {}.to_job().unwrap()).run(until_asked).await;
    assert_eq!(ran.result::<String>().unwrap().as_deref(), Some("saved"));
    let ran = Attempt::of(Patient {}.to_job().unwrap()).number(2).run(until_asked).await;
    assert_eq!(ran.failure().unwrap().code, "timeout");
}

#[tokio::test]
async fn a_canceled_attempt_ends_as_canceled_and_not_as_late() {
    let canceled = CancellationToken::new();
    canceled.cancel();
    let job = Patient {}.to_job().unwrap();
    let ran = Attempt::of(job).number(2).cancel_by(&canceled).run(until_asked).await;
    assert_eq!((ran.end, ran.answer), (End::Cancel, Ok(Outcome::Stopped)));
}

#[tokio::test]
async fn a_job_of_another_kind_finds_no_handler() {
    let ran = Attempt::of(NewJob::new("other", &()).unwrap()).run(until_asked).await;
    assert_eq!(ran.failure().unwrap().code, "no_handler");
}

#[tokio::test]
async fn the_last_attempt_fails_for_good() {
    let fail = |_: Patient, _: Context| async { Err::<(), _>(JobError::retryable("weather", "rain")) };
    let job = Patient {}.to_job().unwrap().max_attempts(3);
    assert!(Attempt::of(job.clone()).number(2).run(fail).await.retry_in().is_some());
    assert!(matches!(Attempt::of(job).number(3).run(fail).await.end, End::Fail { .. }));
}

#[tokio::test]
async fn an_attempt_reads_the_checkpoint_before_it_and_then_its_own() {
    let count = |_: Patient, context: Context| async move {
        let before: Option<u32> = context.last_checkpoint().await?;
        context.checkpoint(&(before.unwrap_or(0) + 1)).await?;
        Outcome::result(&(before, context.last_checkpoint::<u32>().await?))
    };
    let job = Patient {}.to_job().unwrap();
    let ran = Attempt::of(job.clone()).run(count).await;
    assert_eq!(ran.result().unwrap(), Some((None::<u32>, Some(1))));
    let ran = Attempt::of(job).earlier_checkpoint(&7).run(count).await;
    assert_eq!(ran.result().unwrap(), Some((Some(7), Some(8))));
}

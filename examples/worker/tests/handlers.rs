//! Tests of handlers without a database.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use example_worker::{Newsletter, send_newsletter};
use milepost::testing::{Attempt, End};
use milepost::{CancellationToken, Job, NewJob};
use serde_json::json;

fn newsletter(subscribers: &[&str]) -> NewJob {
    let subscribers = subscribers.iter().map(|&address| address.to_owned()).collect();
    Newsletter { subject: "Milestones".to_owned(), subscribers }.to_job().unwrap()
}

const THREE: &[&str] = &["ada@example.org", "bob@example.org", "cleo@example.org"];

#[tokio::test]
async fn everybody_gets_the_newsletter() {
    let ran = Attempt::of(newsletter(THREE)).run(send_newsletter).await;
    assert_eq!(ran.result::<usize>().unwrap(), Some(3));
    let done: Vec<i64> = ran.progress.iter().map(|word| word.done).collect();
    assert_eq!(done, [1, 2, 3]);
    assert_eq!(ran.progress[2].message.as_deref(), Some("sent to cleo@example.org"));
}

#[tokio::test]
async fn a_second_attempt_sends_to_the_rest() {
    let ran = Attempt::of(newsletter(THREE)).number(2).earlier_checkpoint(&2).run(send_newsletter).await;
    assert_eq!(ran.checkpoints::<usize>().unwrap(), [3]);
    assert_eq!(ran.end, End::Succeed { result: Some("3".to_owned()) });
}

#[tokio::test]
async fn a_canceled_newsletter_stops_after_the_mail_in_hand() {
    let ran = Attempt::of(newsletter(THREE)).cancel_at_checkpoint(1).run(send_newsletter).await;
    assert_eq!(ran.end, End::Cancel);
    assert_eq!(ran.checkpoints::<usize>().unwrap(), [1]);

    let canceled = CancellationToken::new();
    canceled.cancel();
    let ran = Attempt::of(newsletter(THREE)).cancel_by(&canceled).run(send_newsletter).await;
    assert_eq!((ran.end, ran.progress.len()), (End::Cancel, 0));
}

#[tokio::test]
async fn a_bad_address_is_not_tried_again() {
    let ran = Attempt::of(newsletter(&["ada@example.org", "bob"])).run(send_newsletter).await;
    assert_eq!(ran.failure().unwrap().code, "bad_address");
    assert!(matches!(ran.end, End::Fail { .. }) && ran.retry_in().is_none());
}

#[tokio::test]
async fn an_attempt_over_its_time_is_tried_again_later() {
    let job = newsletter(THREE).timeout(Duration::from_millis(1));
    let ran = Attempt::of(job).number(3).run(send_newsletter).await;
    assert_eq!(
        (ran.failure().unwrap().code.as_str(), ran.retry_in()),
        ("timeout", Some(Duration::from_secs(4)))
    );
}

#[tokio::test]
async fn a_payload_of_another_shape_fails_for_good() {
    let job = NewJob::new(Newsletter::KIND, &json!({ "subject": "no subscribers" })).unwrap();
    let ran = Attempt::of(job).run(send_newsletter).await;
    assert_eq!(ran.failure().unwrap().code, "payload");
    assert!(matches!(ran.end, End::Fail { .. }));
}

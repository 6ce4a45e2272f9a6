//! Tests of the handler without a database.

use mailer::{Mail, send};
use milepost::Job;
use milepost::testing::Attempt;

#[tokio::test]
async fn a_mail_that_fails_is_sent_by_the_next_attempt() {
    let job = || Mail { to: "grace@example.org".to_owned() }.to_job().unwrap();
    let first = Attempt::of(job()).run(send).await;
    assert_eq!(first.failure().unwrap().code, "smtp");
    assert!(first.retry_in().is_some());
    let second = Attempt::of(job()).number(2).run(send).await;
    assert_eq!(second.result::<String>().unwrap().unwrap(), "sent to grace@example.org");
}

#[tokio::test]
async fn a_bad_address_is_not_tried_again() {
    let job = Mail { to: "ada".to_owned() }.to_job().unwrap();
    let attempt = Attempt::of(job).run(send).await;
    assert_eq!(attempt.failure().unwrap().code, "bad_address");
    assert!(attempt.retry_in().is_none());
}

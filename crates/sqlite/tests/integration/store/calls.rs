//! Limits on one call.

use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_sqlite::{CALL_BYTES_MAX, CALL_JOBS_MAX, SqliteOptions, SqliteStore};

use crate::store::fixture::{Home, job};

#[tokio::test]
async fn a_call_of_more_jobs_than_one_transaction_bears_is_refused_with_the_limit() {
    let home = Home::new().await;
    let mut jobs: Vec<NewJob> = (0..=CALL_JOBS_MAX).map(|_| job("a")).collect();
    let refused = home.store.enqueue_many(&jobs).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { what: "jobs", .. }), "{refused:?}");
    assert_eq!(
        refused.to_string(),
        "a call of enqueue accepts at most 5000 jobs, but was given 5001; split it"
    );
    assert_eq!(home.store.count_by_state().await.unwrap(), []);
    jobs.pop();
    assert_eq!(home.store.enqueue_many(&jobs).await.unwrap().len(), CALL_JOBS_MAX);
    // In its own transaction a caller can enqueue any number.
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    let jobs: Vec<NewJob> = (0..=CALL_JOBS_MAX).map(|_| job("a")).collect();
    milepost_sqlite::enqueue_many(&tx, &jobs).unwrap();
    tx.commit().unwrap();
}

#[tokio::test]
async fn a_call_of_too_many_bytes_is_refused_unless_it_is_for_one_job() {
    let home = Home::new().await;
    let options = SqliteOptions { payload_bytes_max: 2 * CALL_BYTES_MAX, ..SqliteOptions::default() };
    let store = SqliteStore::open(&home.path, options).unwrap();
    let half = NewJob::new("a", &"x".repeat(CALL_BYTES_MAX / 2)).unwrap();
    let other = NewJob::new("a", &"x".repeat(CALL_BYTES_MAX / 2)).unwrap();
    let refused = store.enqueue_many(&[half, other]).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { what: "bytes of payload", .. }), "{refused:?}");
    let whole = NewJob::new("a", &"x".repeat(CALL_BYTES_MAX)).unwrap();
    store.enqueue_many(&[whole]).await.unwrap();
}

//! Tests of schedules while other sessions hold locks.

use std::time::Duration;

use jiff::SignedDuration;
use milepost_core::job::NewJob;
use milepost_core::port::ScheduleStore;
use milepost_core::schedule::{Schedule, Source, Spec};
use milepost_testkit::database::Database;
use milepost_testkit::scene::KIND;
use milepost_testkit::wait;

#[tokio::test]
async fn a_schedule_that_a_session_locks_is_not_waited_for() {
    let (_database, store) = Database::with_store().await;
    let hourly = Spec::every(Duration::from_secs(3600)).unwrap();
    let schedule = Schedule::new("hourly", hourly, NewJob::new(KIND, &()).unwrap());
    store.put_schedule(&schedule, Source::Operator).await.unwrap();
    let view = store.schedules().await.unwrap().remove(0);
    // Exactly one tick, whatever the time of day.
    let later = view.next_at.expect("the schedule has a next tick") + SignedDuration::from_secs(1);
    let tick = view.tick(later).expect("the schedule has a tick by then");

    let mut session = store.pool().begin().await.unwrap();
    sqlx::query("select from milepost.schedule for update").execute(&mut *session).await.unwrap();
    let ticked = tokio::time::timeout(wait::LIMIT, store.tick_schedule(&tick)).await;
    let error = ticked.expect("it stops waiting").unwrap_err().chain();
    assert!(error.contains("55P03"), "{error}");
    session.rollback().await.unwrap();
    assert_eq!(store.tick_schedule(&tick).await.unwrap().expect("ticked").new_ones(), 1);
    let timeout: String = sqlx::query_scalar("show lock_timeout").fetch_one(store.pool()).await.unwrap();
    assert_eq!(timeout, "0", "the timeout applies to that statement only");
}

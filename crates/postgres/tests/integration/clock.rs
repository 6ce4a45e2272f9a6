//! Tests of a server's clock that was ahead and was set back.

use std::time::Duration;

use milepost_core::event::{Aggregate, Failure, NewEvent, Outcome, PageSize, Undelivered};
use milepost_core::port::{EventLog, MaintenanceStore};
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::relay;

/// More than the seconds that a busy machine takes for the steps of a test, and much less than an hour.
const BUSY_S: f64 = 600.0;

/// Runs the upkeep that workers run.
async fn upkeep(store: &PostgresStore) {
    store.rescue_expired(10, &|_, _, _| Duration::ZERO).await.unwrap();
}

async fn number(store: &PostgresStore, sql: &'static str) -> f64 {
    sqlx::query_scalar(sql).fetch_one(store.pool()).await.unwrap()
}

#[tokio::test]
async fn times_of_a_clock_that_was_ahead_are_moved_back_and_others_are_kept() {
    let (_database, store) = Database::with_store().await;
    upkeep(&store).await;
    let noted = "select extract(epoch from now() - until)::float8 from milepost.turn where name = 'clock'";
    assert!((0.0..10.0).contains(&number(&store, noted).await), "a worker notes the time");
    // As after a minute during which the clock was an hour ahead.
    for ahead in [
        "update milepost.turn set until = now() + interval '1 hour'",
        "insert into milepost.kind_limit (kind, per_second, burst, portion, full_at, source)
         values ('ahead', 1, 1, 1, now() + interval '1 hour 2 seconds', 'operator'), ('full', 1, 1, 1, now() - interval '1 day', 'operator')",
        "insert into milepost.group_bucket (group_key, full_at, look_at)
         values ('g', now() + interval '59 minutes', now() + interval '59 minutes')",
    ] {
        sqlx::query(ahead).execute(store.pool()).await.unwrap();
    }
    upkeep(&store).await;
    let left = "select count(*)::float8 from milepost.turn where until > now()";
    assert_eq!(number(&store, left).await, 0.0, "retention goes on");
    let rate =
        "select extract(epoch from full_at - now())::float8 from milepost.kind_limit where kind = 'ahead'";
    assert!(number(&store, rate).await <= BUSY_S, "only the token that was taken is missing");
    let full =
        "select extract(epoch from now() - full_at)::float8 from milepost.kind_limit where kind = 'full'";
    assert!(number(&store, full).await >= 86_400.0, "a full bucket stays as it is");
    let group =
        "select extract(epoch from greatest(full_at, look_at) - now())::float8 from milepost.group_bucket";
    assert!(number(&store, group).await <= BUSY_S);
}

#[tokio::test]
async fn leases_of_dead_publishers_and_waits_of_parked_events_are_moved_back() {
    let (_database, store) = Database::with_store().await;
    let lease = Duration::from_secs(60);
    let (_, mut dead) = relay::reader(&store, "orders", lease).await;
    store.emit(&NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap()).await.unwrap();
    let page = dead.page(PageSize { events_max: 10, bytes_max: 10_000 }).await.unwrap();
    let then = Undelivered::Retry(Duration::from_secs(20));
    let failure = Failure { event: page.events[0].id, deliveries: 1, why: "no".to_owned(), then };
    dead.commit(&Outcome { failures: vec![failure], ..Outcome::default() }).await.unwrap();
    drop(dead);
    // As after a minute during which the clock was an hour ahead.
    for ahead in [
        "update milepost.turn set until = now() + interval '1 hour' where name = 'publisher_clock'",
        "update milepost.publisher set lease_until = lease_until + interval '1 hour'",
        "update milepost.parked_aggregate set next_delivery_at = next_delivery_at + interval '1 hour'",
    ] {
        assert_eq!(sqlx::query(ahead).execute(store.pool()).await.unwrap().rows_affected(), 1, "{ahead}");
    }
    let (_, _other) = relay::reader(&store, "orders", lease).await;
    let lease = "select max(extract(epoch from lease_until - now()))::float8 from milepost.publisher";
    assert!(number(&store, lease).await <= BUSY_S);
    let wait = "select extract(epoch from next_delivery_at - now())::float8 from milepost.parked_aggregate";
    assert!(number(&store, wait).await <= BUSY_S);
}

async fn change(store: &PostgresStore, sql: &'static str) {
    sqlx::query(sql).execute(store.pool()).await.unwrap();
}

#[tokio::test]
async fn retention_waits_after_the_clock_jumped() {
    let (_database, store) = Database::with_store().await;
    assert!(store.may_delete().await.unwrap(), "in a new store");
    upkeep(&store).await;
    assert!(store.may_delete().await.unwrap());
    change(&store, "update milepost.turn set until = now() - interval '23 hours' where name = 'clock'").await;
    assert!(store.may_delete().await.unwrap());
    // As after the clock was put a year forward.
    change(&store, "update milepost.turn set until = now() - interval '1 year' where name = 'clock'").await;
    assert!(!store.may_delete().await.unwrap(), "before a worker notes it");
    upkeep(&store).await;
    assert!(!store.may_delete().await.unwrap(), "after a worker noted it");
    // As after it was put back by a year.
    change(&store, "update milepost.turn set until = until + interval '1 year' where name <> 'retention'")
        .await;
    assert!(!store.may_delete().await.unwrap());
    upkeep(&store).await;
    assert!(!store.may_delete().await.unwrap(), "ten minutes have not passed");
    let waits = "select extract(epoch from until - now())::float8 from milepost.turn where name = 'deletion'";
    assert!((0.0..=600.0).contains(&number(&store, waits).await), "the time is moved back");
    change(&store, "update milepost.turn set until = now() where name = 'deletion'").await;
    assert!(store.may_delete().await.unwrap(), "the time has come");
}

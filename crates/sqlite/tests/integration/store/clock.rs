//! A clock that was ahead and was set back.

use std::time::Duration;

use milepost_core::event::{Aggregate, Failure, NewEvent, Outcome, PageSize, Undelivered};
use milepost_core::port::{EventLog, MaintenanceStore};
use milepost_testkit::relay;

use crate::store::fixture::Home;

/// More than the seconds that a busy machine takes for the steps of a test, and much less than an hour.
const BUSY_S: f64 = 600.0;

/// Runs the upkeep that workers run.
async fn upkeep(home: &Home) {
    home.store.rescue_expired(10, &|_, _, _| Duration::ZERO).await.unwrap();
}

fn seconds_ahead(home: &Home, column: &str, per_second: i64, from: &str) -> f64 {
    let sql = format!("SELECT max({column}) / {per_second}.0 - unixepoch('subsec') FROM {from}");
    home.connection().query_row(&sql, (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn times_of_a_clock_that_was_ahead_are_moved_back_and_others_are_kept() {
    let home = Home::new().await;
    upkeep(&home).await;
    let noted = seconds_ahead(&home, "until_ms", 1_000, "milepost_turn WHERE name = 'clock'");
    assert!((-10.0..=0.1).contains(&noted), "a worker notes the time: {noted}");
    // As after a minute during which the clock was an hour ahead.
    home.connection()
        .execute_batch(
            "UPDATE milepost_turn SET until_ms = (unixepoch() + 3600) * 1000;
             INSERT INTO milepost_kind_limit (kind, per_second, burst, portion, full_at_us, source)
             VALUES ('ahead', 1, 1, 1, (unixepoch() + 3602) * 1000000, 'operator'), ('full', 1, 1, 1, 1000000, 'operator');
             INSERT INTO milepost_group_bucket (group_key, full_at_us, look_at_us)
             VALUES ('g', (unixepoch() + 3540) * 1000000, (unixepoch() + 3540) * 1000000)",
        )
        .unwrap();
    upkeep(&home).await;
    assert!(seconds_ahead(&home, "until_ms", 1_000, "milepost_turn") <= 0.0, "retention goes on");
    let rate = seconds_ahead(&home, "full_at_us", 1_000_000, "milepost_kind_limit WHERE kind = 'ahead'");
    assert!(rate <= BUSY_S, "only the token that was taken is missing: {rate}");
    let full = "SELECT full_at_us FROM milepost_kind_limit WHERE kind = 'full'";
    let full: i64 = home.connection().query_row(full, (), |row| row.get(0)).unwrap();
    assert_eq!(full, 1_000_000, "a full bucket stays as it is");
    for column in ["full_at_us", "look_at_us"] {
        assert!(seconds_ahead(&home, column, 1_000_000, "milepost_group_bucket") <= BUSY_S, "{column}");
    }
}

#[tokio::test]
async fn leases_of_dead_publishers_and_waits_of_parked_events_are_moved_back() {
    let home = Home::new().await;
    let lease = Duration::from_secs(60);
    let (_, mut dead) = relay::reader(&home.store, "orders", lease).await;
    home.store.emit(&NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap()).await.unwrap();
    let page = dead.page(PageSize { events_max: 10, bytes_max: 10_000 }).await.unwrap();
    let then = Undelivered::Retry(Duration::from_secs(20));
    let failure = Failure { event: page.events[0].id, deliveries: 1, why: "no".to_owned(), then };
    dead.commit(&Outcome { failures: vec![failure], ..Outcome::default() }).await.unwrap();
    drop(dead);
    // As after a minute during which the clock was an hour ahead.
    home.connection()
        .execute_batch(
            "UPDATE milepost_turn SET until_ms = until_ms + 3600000 WHERE name = 'publisher_clock';
             UPDATE milepost_publisher SET lease_until_ms = lease_until_ms + 3600000;
             UPDATE milepost_parked_aggregate SET next_delivery_at_ms = next_delivery_at_ms + 3600000",
        )
        .unwrap();
    let (_, _other) = relay::reader(&home.store, "orders", lease).await;
    for (column, table) in
        [("lease_until_ms", "milepost_publisher"), ("next_delivery_at_ms", "milepost_parked_aggregate")]
    {
        let left = seconds_ahead(&home, column, 1_000, table);
        assert!(left <= BUSY_S, "{column}: {left}");
    }
}

#[tokio::test]
async fn retention_waits_after_the_clock_jumped() {
    let home = Home::new().await;
    let change = |sql: &str| home.connection().execute_batch(sql).unwrap();
    let may_delete = async || home.store.may_delete().await.unwrap();
    assert!(may_delete().await, "in a new store");
    upkeep(&home).await;
    assert!(may_delete().await);
    // As after the clock was put a year forward.
    change("UPDATE milepost_turn SET until_ms = until_ms - 31536000000 WHERE name = 'clock'");
    assert!(!may_delete().await, "before a worker notes it");
    upkeep(&home).await;
    assert!(!may_delete().await, "after a worker noted it");
    // As after it was put back by a year.
    change("UPDATE milepost_turn SET until_ms = until_ms + 31536000000 WHERE name <> 'retention'");
    assert!(!may_delete().await);
    upkeep(&home).await;
    assert!(!may_delete().await, "ten minutes have not passed");
    let waits = seconds_ahead(&home, "until_ms", 1_000, "milepost_turn WHERE name = 'deletion'");
    assert!((0.0..=600.0).contains(&waits), "the time is moved back: {waits}");
    change("UPDATE milepost_turn SET until_ms = 0 WHERE name = 'deletion'");
    assert!(may_delete().await, "the time has come");
}

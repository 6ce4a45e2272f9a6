//! Tests of a server's clock that was ahead and was set back.

use std::time::Duration;

use milepost_core::port::MaintenanceStore;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;

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
         values ('g', now() + interval '1 hour', now() + interval '1 hour')",
    ] {
        sqlx::query(ahead).execute(store.pool()).await.unwrap();
    }
    upkeep(&store).await;
    let left = "select count(*)::float8 from milepost.turn where until > now()";
    assert_eq!(number(&store, left).await, 0.0, "retention goes on");
    let rate =
        "select extract(epoch from full_at - now())::float8 from milepost.kind_limit where kind = 'ahead'";
    assert!(number(&store, rate).await <= 2.0, "only the token that was taken is missing");
    let full =
        "select extract(epoch from now() - full_at)::float8 from milepost.kind_limit where kind = 'full'";
    assert!(number(&store, full).await >= 86_400.0, "a full bucket stays as it is");
    let group =
        "select extract(epoch from greatest(full_at, look_at) - now())::float8 from milepost.group_bucket";
    assert!(number(&store, group).await <= 0.0);
}

//! Tests of the throttles of bulk jobs on a PostgreSQL server, and of their messages.

use std::time::Duration;

use milepost_core::port::Throttle;
use milepost_postgres::PostgresStore;
use milepost_postgres::bulk::{Measure, ServerThrottle};
use milepost_testkit::database::Database;
use milepost_testkit::wait;
use sqlx::{Connection, Executor, PgConnection};

async fn holds(store: &PostgresStore, measure: Measure) -> Option<String> {
    ServerThrottle::new(store, measure).holds().await
}

async fn probe(store: &PostgresStore, sql: &str) -> Option<String> {
    holds(store, Measure::Sql(sql.to_owned())).await
}

#[tokio::test]
async fn a_server_without_replicas_is_not_behind() {
    let (_database, store) = Database::with_store().await;
    assert_eq!(holds(&store, Measure::ReplicaLag(Duration::ZERO)).await, None);
}

#[tokio::test]
async fn locks_that_are_waited_for_hold() {
    let (database, store) = Database::with_store().await;
    assert_eq!(holds(&store, Measure::LockWaits(0)).await, None);
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin; lock table milepost.job").await.unwrap();
    let mut waiter = PgConnection::connect(&database.url()).await.unwrap();
    let waiting =
        tokio::spawn(async move { waiter.execute("begin; lock table milepost.job").await.map(drop) });
    wait::until("a session waits", || async { holds(&store, Measure::LockWaits(0)).await.is_some() }).await;
    let why = holds(&store, Measure::LockWaits(0)).await.unwrap();
    assert_eq!(why, "lock_waits: 1 lock requests wait, more than 0");
    assert_eq!(holds(&store, Measure::LockWaits(1)).await, None);
    waiting.abort();
}

#[tokio::test]
async fn an_old_snapshot_holds() {
    let (database, store) = Database::with_store().await;
    let old = Duration::from_millis(1);
    // A process of the server, such as autovacuum, may hold a snapshot for a moment.
    let nobody = || async { holds(&store, Measure::OldestSnapshot(old)).await.is_none() };
    wait::until("no session has a snapshot", nobody).await;
    let mut reader = PgConnection::connect(&database.url()).await.unwrap();
    reader.execute("begin isolation level repeatable read; select 1").await.unwrap();
    wait::until("it is too old", || async { holds(&store, Measure::OldestSnapshot(old)).await.is_some() })
        .await;
    let why = holds(&store, Measure::OldestSnapshot(old)).await.unwrap();
    assert!(why.starts_with("oldest_snapshot: one is open for ") && why.ends_with("more than 1ms"), "{why}");
    assert_eq!(holds(&store, Measure::OldestSnapshot(Duration::from_secs(3600))).await, None);
    reader.execute("rollback").await.unwrap();
    wait::until("no session has a snapshot any more", nobody).await;
}

#[tokio::test]
async fn a_probe_lets_go_on_holds_or_says_why() {
    let (_database, store) = Database::with_store().await;
    let said = |why: &str| Some(format!("sql probe: {why}"));
    assert_eq!(probe(&store, "select true").await, None);
    assert_eq!(probe(&store, "select false").await, said("it returned false"));
    assert_eq!(probe(&store, "select 'month end'").await, said("month end"));
    for (sql, words) in [
        ("select null::bool", "it returned null"),
        ("select true where false", "it returned no row"),
        ("select 1", "true, false or a text"),
        ("select x", "it failed: the database failed"),
    ] {
        let why = probe(&store, sql).await.unwrap_or_default();
        assert!(why.starts_with("sql probe: ") && why.contains(words), "{sql}: {why}");
    }
}

#[tokio::test]
async fn a_probe_that_does_not_answer_holds() {
    let (_database, store) = Database::with_store().await;
    let why = probe(&store, "select pg_sleep(60) is not null").await;
    assert_eq!(why.as_deref(), Some("sql probe: it did not finish within 5s"));
    store.close().await;
    let why = probe(&store, "select true").await.unwrap();
    assert!(why.contains("it failed"), "{why}");
}

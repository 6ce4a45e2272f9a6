//! Rollups of long ago.

use std::time::Duration;

use milepost_core::port::RollupStore;
use milepost_core::rollup::{Range, RollupFilter};
use milepost_testkit::database::Database;
use milepost_testkit::scene::Scene;
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::statements::{explain, statement_named};

#[tokio::test]
async fn periods_get_longer_as_they_get_older_and_end() {
    let (database, store) = Database::with_store().await;
    let mut session = PgConnection::connect(&database.url()).await.unwrap();
    let old = "insert into milepost.rollup (step_s, starts_at, queue, kind, verb, bucket, times)
               select 60, date_bin('10 minutes', now() - ago, 'epoch') + minute * interval '1 minute', 'q', 'k', 'claim', 3, 5
               from unnest(array[interval '1 hour', '5 hours', '3 days', '40 days', '-2 days']) ago, unnest(array[1, 2]) minute";
    session.execute(old).await.unwrap();
    assert!(store.roll_up(Duration::ZERO).await.unwrap());
    let left = session
        .fetch_all("select step_s, sum(times)::bigint, count(*) from milepost.rollup group by 1 order by 1")
        .await
        .unwrap();
    let left: Vec<(i32, i64, i64)> = left.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    assert_eq!(
        left,
        [(60, 10, 2), (600, 10, 1), (3600, 10, 1)],
        "those of 40 days ago and of the future are deleted"
    );
    let of = async |range| {
        let counts = store.rollups(&RollupFilter { range, ..RollupFilter::default() }).await.unwrap().counts;
        counts.iter().map(|count| count.times).sum::<u64>()
    };
    assert_eq!((of(Range::Day).await, of(Range::Week).await), (20, 30));
}

#[tokio::test]
async fn a_rollup_after_a_crash_of_the_server_begins_anew() {
    let (database, store) = Database::with_store().await;
    assert!(store.roll_up(Duration::ZERO).await.unwrap());
    let mut session = PgConnection::connect(&database.url()).await.unwrap();
    session.execute("update milepost.rollup_position set position = 'abcdef/1:1:'").await.unwrap();
    assert!(store.roll_up(Duration::ZERO).await.unwrap(), "the epoch of the position is not known");
    let position: String =
        session.fetch_one("select position from milepost.rollup_position").await.unwrap().get(0);
    assert!(!position.starts_with("abcdef/"), "{position}");
}

#[tokio::test]
async fn what_an_open_transaction_did_is_counted_once_when_it_has_ended() {
    let (database, store, scene) = Database::with_scene().await;
    assert!(store.roll_up(Duration::ZERO).await.unwrap());
    scene.enqueue(Scene::job()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    let claim = "insert into milepost.history (job_id, token, attempt, verb, from_state, to_state) select id, 1, 1, 'claim', 'pending', 'running' from milepost.job";
    open.execute(claim).await.unwrap();
    scene.enqueue(Scene::job()).await;
    let counted = async || {
        store.roll_up(Duration::ZERO).await.unwrap();
        store
            .rollups(&RollupFilter::default())
            .await
            .unwrap()
            .counts
            .iter()
            .map(|count| count.times)
            .sum::<u64>()
    };
    assert_eq!(counted().await, 0);
    open.commit().await.unwrap();
    assert_eq!((counted().await, counted().await), (1, 1));
}

#[tokio::test]
async fn a_rollup_does_not_scan_the_history() {
    let (database, _store) = Database::with_store().await;
    let mut session = PgConnection::connect(&database.url()).await.unwrap();
    session.execute(statement_named("pin_plans")).await.unwrap();
    session.execute("begin").await.unwrap();
    session.execute(statement_named("rollup/without_sorts")).await.unwrap();
    let plan = explain(&mut session, "rollup/tally", "'1:1:', 'x', 0, 4000").await.join("\n");
    assert!(plan.contains("history_xid") && plan.contains("HashAggregate"), "{plan}");
    assert!(!plan.contains("Seq Scan on history h") && !plan.contains("Seq Scan on job"), "{plan}");
}

//! Tests of the feed with concurrent writers: long transactions, transactions that commit in another order than they began,
//! and rollbacks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use milepost_conformance::feed::{of_jobs, read_on};
use milepost_core::error::StoreError;
use milepost_core::feed::{CHANGES_BEHIND_MAX, FeedPosition, InvalidFeed};
use milepost_core::ident::JobId;
use milepost_core::port::{FeedStore, Store};
use milepost_testkit::Scene;
use milepost_testkit::database::Database;
use sqlx::{Connection, PgConnection};

async fn jobs_after(store: &Arc<dyn Store>, from: &FeedPosition) -> (Vec<JobId>, FeedPosition) {
    let (changes, end) = read_on(store, from, 100).await;
    (of_jobs(&changes).iter().map(|change| change.job).collect(), end)
}

#[tokio::test]
async fn a_transaction_that_is_open_for_long_delays_its_own_changes_only() {
    let (database, _store, scene) = Database::with_scene().await;
    let from = scene.store.feed_end().await.unwrap();
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    let late = milepost_postgres::enqueue(&mut open, &Scene::job()).await.unwrap().job;
    let early = scene.enqueue(Scene::job()).await;
    let (told, end) = jobs_after(&scene.store, &from).await;
    assert_eq!(told, [early]);
    let next = scene.enqueue(Scene::job()).await;
    let (told, end) = jobs_after(&scene.store, &end).await;
    assert_eq!(told, [next]);
    open.commit().await.unwrap();
    let (told, end) = jobs_after(&scene.store, &end).await;
    assert_eq!(told, [late], "the late change is reported, although it precedes reported ones");
    assert!(jobs_after(&scene.store, &end).await.0.is_empty());
    let (told, _) = jobs_after(&scene.store, &from).await;
    assert_eq!(told, [late, early, next], "a later reader gets it in its position");
}

#[tokio::test]
async fn what_an_open_transaction_did_is_counted_when_it_has_ended() {
    let (database, store, scene) = Database::with_scene().await;
    let from = scene.store.feed_end().await.unwrap();
    scene.enqueue(Scene::job()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    sqlx::query(
        "insert into milepost.history (job_id, token, attempt, verb, from_state, to_state) select id, 1, 1, 'claim', 'pending', 'running' from milepost.job",
    )
    .execute(&mut *open)
    .await
    .unwrap();
    scene.enqueue(Scene::job()).await;
    let before = store.activity(&from, 10).await.unwrap();
    assert!(before.counted.is_empty(), "{before:?}");
    open.commit().await.unwrap();
    let after = store.activity(&before.end, 10).await.unwrap();
    assert_eq!(after.counted.iter().map(|counted| counted.times).sum::<u64>(), 1, "{after:?}");
    assert!(store.activity(&after.end, 10).await.unwrap().counted.is_empty(), "it is counted once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_was_committed_is_told_once_and_nothing_else() {
    let (database, _store, scene) = Database::with_scene().await;
    let from = scene.store.feed_end().await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8).map(|n| tokio::spawn(write(database.url(), n))).collect();
    let watcher = tokio::spawn(watch(Arc::clone(&scene.store), from.clone(), Arc::clone(&over)));
    let mut committed = BTreeSet::new();
    for writer in writers {
        committed.extend(writer.await.unwrap());
    }
    over.store(true, Ordering::Release);
    let told = watcher.await.unwrap();
    assert!(committed.len() > 100, "{} were committed", committed.len());
    assert_eq!(told.iter().copied().collect::<BTreeSet<_>>(), committed);
    assert_eq!(told.len(), committed.len(), "each change is reported once");
    let (again, _) = jobs_after(&scene.store, &from).await;
    assert_eq!(again.len(), committed.len(), "a later reader gets each once, too");
}

/// Runs transactions with one job each, of which every tenth is rolled back and some stay open for long; returns the
/// committed jobs.
async fn write(url: String, writer: u32) -> Vec<JobId> {
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let mut committed = Vec::new();
    for n in 0..40 {
        let mut tx = connection.begin().await.unwrap();
        let job = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap().job;
        if (n + writer).is_multiple_of(7) {
            tokio::time::sleep(Duration::from_millis(u64::from(20 + writer * 15))).await;
        }
        if (n + writer).is_multiple_of(10) {
            tx.rollback().await.unwrap();
        } else {
            tx.commit().await.unwrap();
            committed.push(job);
        }
    }
    committed
}

/// Reads the feed in small pages until the writers have finished; returns all jobs that it reported.
async fn watch(store: Arc<dyn Store>, mut at: FeedPosition, over: Arc<AtomicBool>) -> Vec<JobId> {
    let mut told = Vec::new();
    loop {
        let last = over.load(Ordering::Acquire);
        let page = store.feed(&at, None, 3).await.unwrap();
        told.extend(of_jobs(&page.changes).iter().map(|change| change.job));
        let moved = page.end != at;
        // Like a client that returns, with the position parsed from its text.
        at = page.end.as_str().parse().unwrap();
        if last && !moved {
            return told;
        }
    }
}

#[tokio::test]
async fn who_is_too_far_behind_is_told_so() {
    let (database, store, scene) = Database::with_scene().await;
    let from = scene.store.feed_end().await.unwrap();
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let sql = "insert into milepost.history (job_id, token, attempt, verb, to_state)
               select gen_random_uuid(), 0, 0, 'create', 'pending' from generate_series(1, $1)";
    let behind = CHANGES_BEHIND_MAX.cast_signed();
    sqlx::query(sql).bind(behind).execute(&mut connection).await.unwrap();
    let end = store.feed_end().await.unwrap();
    assert_eq!(store.feed(&from, Some(&end), 10).await.unwrap().changes.len(), 10, "the maximum");
    sqlx::query(sql).bind(1).execute(&mut connection).await.unwrap();
    let end = store.feed_end().await.unwrap();
    let refused = store.feed(&from, Some(&end), 10).await.unwrap_err();
    assert!(matches!(refused, StoreError::Feed(InvalidFeed::TooFarBehind)), "{refused}");
}

#[tokio::test]
async fn a_position_from_before_a_restore_is_refused() {
    let (_database, store, _scene) = Database::with_scene().await;
    let end = store.feed_end().await.unwrap();
    let server = end.as_str().split('/').next().unwrap();
    let future: FeedPosition = format!("{server}/4000000000:4000000000:").parse().unwrap();
    let other: FeedPosition = format!("0{server}/10:10:").parse().unwrap();
    for (position, upto) in [(&future, Some(&end)), (&future, None), (&other, Some(&end))] {
        let refused = store.feed(position, upto, 10).await.unwrap_err();
        assert!(matches!(refused, StoreError::Feed(InvalidFeed::Foreign)), "{refused}");
    }
}

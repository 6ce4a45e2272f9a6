//! Tests of the triggers that record state changes: when they exist, for changes of any origin, and with misleading
//! statistics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use milepost_conformance::changes::{assert_emitted, want, want_kinds};
use milepost_core::event::{Begin, Changes};
use milepost_core::port::{IntakeStore, RelayStore, Store, SubscriptionStore};
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::scene::KIND;
use milepost_testkit::{Scene, wait};
use sqlx::{Connection, Executor, PgConnection};

fn wanted() -> Changes {
    Changes { kinds: vec![KIND.to_owned()], dags: Vec::new() }
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

/// Returns the tables whose changes are recorded.
async fn recorded(store: &PostgresStore) -> Vec<String> {
    let triggers = "select tgrelid::regclass::text from pg_trigger where tgname = 'recording' order by 1";
    sqlx::query_scalar(triggers).fetch_all(store.pool()).await.unwrap()
}

#[tokio::test]
async fn the_triggers_come_with_the_first_who_wants_changes_and_go_with_the_last() {
    let (_database, store, scene) = Database::with_scene().await;
    assert!(recorded(&store).await.is_empty());
    want_kinds(&scene.store, "one", &[KIND]).await;
    assert_eq!(recorded(&store).await, ["milepost.history"]);
    let dags = Changes { kinds: Vec::new(), dags: vec!["close".to_owned()] };
    want(&scene.store, "two", dags.clone()).await;
    assert_eq!(recorded(&store).await, ["milepost.batch_history", "milepost.history"]);
    assert!(store.remove_subscription("one").await.unwrap());
    assert_eq!(recorded(&store).await, ["milepost.batch_history"]);
    want(&scene.store, "two", Changes::default()).await;
    assert!(recorded(&store).await.is_empty(), "a relay whose file requests no changes");
    want(&scene.store, "two", dags).await;
    store.migrate().await.unwrap();
    assert_eq!(recorded(&store).await, ["milepost.batch_history"], "a migration keeps the trigger");
    assert!(store.remove_subscription("two").await.unwrap());
    assert!(recorded(&store).await.is_empty());
    assert!(store.foreign_objects().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_changes_jobs_puts_recording_off_and_nobody_waits_long() {
    let (database, store, scene) = Database::with_scene().await;
    store.subscribe("audit", Begin::Beginning).await.unwrap();
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut open = connection.begin().await.unwrap();
    milepost_postgres::enqueue(&mut open, &Scene::job()).await.unwrap();
    let wanted = wanted();
    let both = async {
        tokio::join!(store.record_changes("audit", &wanted), async {
            for _ in 0..20 {
                scene.enqueue(Scene::job()).await;
            }
        })
    };
    // The transaction stays open until both have an answer.
    let (switched, ()) = tokio::time::timeout(wait::LIMIT, both).await.expect("other transactions continue");
    assert!(!switched.unwrap(), "no trigger is created while the transaction is open");
    assert!(recorded(&store).await.is_empty());
    open.commit().await.unwrap();
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let job = scene.enqueue(Scene::job()).await;
    assert_eq!(assert_emitted(&scene, job).await, 1);

    let mut open = connection.begin().await.unwrap();
    milepost_postgres::enqueue(&mut open, &Scene::job()).await.unwrap();
    assert!(store.remove_subscription("audit").await.unwrap(), "the subscription is removed anyway");
    assert_eq!(recorded(&store).await, ["milepost.history"], "the trigger remains");
    open.rollback().await.unwrap();
    let events = "select count(*) from milepost.event";
    let before = number(&mut connection, events).await;
    scene.enqueue(Scene::job()).await;
    assert_eq!(number(&mut connection, events).await, before, "the remaining trigger emits no events");
    store.subscribe("plain", Begin::Now).await.unwrap();
    want(&scene.store, "plain", Changes::default()).await;
    assert!(recorded(&store).await.is_empty(), "the next relay drops the trigger");
}

#[tokio::test(flavor = "multi_thread")]
async fn recording_is_switched_under_load_without_an_error() {
    let (_database, store, scene) = Database::with_scene().await;
    let enough = Arc::new(AtomicBool::new(false));
    let mut load = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (store, enough): (Arc<dyn Store>, _) = (scene.store.clone(), enough.clone());
        load.spawn(async move {
            let scene = Scene::on(store).await;
            while !enough.load(Ordering::Relaxed) {
                scene.enqueue_many(20, KIND, serde_json::json!({})).await;
                for job in scene.claim(20).await {
                    scene.finish(&job, milepost_core::finish::End::Succeed { result: None }).await;
                }
            }
        });
    }
    for _ in 0..10 {
        want_kinds(&scene.store, "audit", &[KIND]).await;
        assert!(store.remove_subscription("audit").await.unwrap());
    }
    enough.store(true, Ordering::Relaxed);
    load.join_all().await;
    let mut connection = store.pool().acquire().await.unwrap();
    let gaps = "select count(*) from (select max(aggregate_seq) - count(*) as gap from milepost.event group by aggregate_id) e where gap <> 0";
    assert_eq!(number(&mut connection, gaps).await, 0, "sequences have no gaps");
}

#[tokio::test]
async fn changes_that_are_rolled_back_leave_no_events() {
    let (database, store, scene) = Database::with_scene().await;
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    let gone = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap().job;
    let mut savepoint = tx.begin().await.unwrap();
    savepoint.execute("select milepost.cancel(id) from milepost.live").await.unwrap();
    savepoint.rollback().await.unwrap();
    tx.execute("select milepost.cancel(id) from milepost.live").await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(number(&mut connection, "select count(*) from milepost.event").await, 0);
    assert_eq!(number(&mut connection, "select count(*) from milepost.aggregate").await, 0);
    assert!(scene.store.job(gone).await.unwrap().is_none());
    let mut tx = connection.begin().await.unwrap();
    tx.execute("set transaction isolation level repeatable read").await.unwrap();
    let kept = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap().job;
    let mut savepoint = tx.begin().await.unwrap();
    savepoint.execute("select milepost.cancel(id) from milepost.live").await.unwrap();
    savepoint.rollback().await.unwrap();
    tx.execute("select milepost.cancel(id, 'as it is') from milepost.live").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(assert_emitted(&scene, kept).await, 2);
    drop(store);
}

#[tokio::test]
async fn who_may_change_jobs_need_not_be_allowed_to_write_events() {
    let (database, store, scene) = Database::with_scene().await;
    want_kinds(&scene.store, "audit", &[KIND]).await;
    let job = scene.enqueue(Scene::job()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    let role = "create role clerk;
        grant usage on schema milepost to clerk;
        grant select on all tables in schema milepost to clerk;
        revoke all on milepost.event, milepost.aggregate from clerk;
        grant insert, update, delete on milepost.live, milepost.ended, milepost.history to clerk;
        set local role clerk;";
    tx.execute(role).await.unwrap();
    let cancel = "select milepost.cancel($1)";
    sqlx::query(cancel).bind(job.0).execute(&mut *tx).await.unwrap();
    tx.execute("reset role; drop owned by clerk; drop role clerk").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(assert_emitted(&scene, job).await, 2);
    drop(store);
}

#[tokio::test]
async fn recording_does_not_scan_whatever_the_statistics_say() {
    for analyzed_empty in [true, false] {
        let (database, store, scene) = Database::with_scene().await;
        want_kinds(&scene.store, "audit", &[KIND]).await;
        let analyze =
            "analyze milepost.job, milepost.aggregate, milepost.event, milepost.history, milepost.live";
        if analyzed_empty {
            store.pool().execute(analyze).await.unwrap();
        }
        for _ in 0..4 {
            let jobs: Vec<_> = (0..500).map(|_| Scene::job()).collect();
            store.enqueue_many(&jobs).await.unwrap();
        }
        if !analyzed_empty {
            store.pool().execute(analyze).await.unwrap();
        }
        let mut connection = PgConnection::connect(&database.url()).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        // With one job first, because the plan made for it is cached.
        tx.execute("select milepost.enqueue('test')").await.unwrap();
        tx.execute(
            "select milepost.enqueue_many(array_fill('test'::text, array[900]), array_fill('{}'::jsonb, array[900]))",
        )
        .await
        .unwrap();
        let scans = "select coalesce(sum(seq_scan), 0)::bigint from pg_stat_xact_user_tables
                     where schemaname = 'milepost' and relname in ('job', 'aggregate', 'event', 'batch', 'dag_task')";
        assert_eq!(number(&mut tx, scans).await, 0, "recording scans; analyzed empty: {analyzed_empty}");
        assert_eq!(number(&mut tx, "select count(*) from milepost.event").await, 2_901);
        tx.rollback().await.unwrap();
    }
}

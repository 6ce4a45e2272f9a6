//! Operations in the caller's transaction, and the effects of rollback and prepare.

use std::sync::Arc;
use std::time::Duration;

use milepost::Outcome;
use milepost_conformance::runtime;
use milepost_core::finish::{End, Finished};
use milepost_core::port::AdminStore;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::{Scene, effect, wait};
use sqlx::{Connection, Executor, PgConnection};

async fn count(store: &PostgresStore, table: &'static str) -> i64 {
    let query = sqlx::AssertSqlSafe(format!("select count(*) from milepost.{table}"));
    sqlx::query_scalar(query).fetch_one(store.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enqueue_that_is_rolled_back_leaves_nothing() {
    let (database, store, scene) = Database::with_scene().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let job = Scene::job().key("order-1").group("customer-1");

    let mut tx = connection.begin().await.unwrap();
    milepost_postgres::enqueue(&mut tx, &job).await.unwrap();
    milepost_postgres::enqueue_many(&mut tx, &[Scene::job(), Scene::job().key("order-2")]).await.unwrap();
    tx.rollback().await.unwrap();
    for table in ["job", "job_key", "live", "ended", "history", "group_slot"] {
        assert_eq!(count(&store, table).await, 0, "rows are left in {table}");
    }
    assert!(scene.claim(10).await.is_empty());

    let mut tx = connection.begin().await.unwrap();
    let made = milepost_postgres::enqueue(&mut tx, &job).await.unwrap();
    assert!(!made.duplicate, "the rollback released the key");
    assert!(scene.claim(10).await.is_empty(), "not visible before the commit");
    tx.commit().await.unwrap();
    // After a claim that found nothing, claims may skip rows that were committed late, until the next thorough one.
    wait::until("the job is claimed", || async {
        scene.claim(10).await.iter().any(|claimed| claimed.run.job == made.job)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_rolled_back_takes_its_enqueues_with_it_and_no_others() {
    let (database, _, scene) = Database::with_scene().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    let kept = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap().job;
    let mut savepoint = tx.begin().await.unwrap();
    let gone = milepost_postgres::enqueue(&mut savepoint, &Scene::job()).await.unwrap().job;
    savepoint.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(scene.state(kept).await, JobState::Pending);
    assert!(scene.store.job(gone).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_is_rolled_back_leaves_the_job_running() {
    let (database, store, scene) = Database::with_scene().await;
    effect::prepare(store.pool()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let job = scene.running(Scene::job()).await;

    let mut tx = connection.begin().await.unwrap();
    effect::record(&mut tx, job.run, "rolled back").await.unwrap();
    milepost_postgres::complete(&mut tx, job.run, Some("1")).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(scene.state(job.run.job).await, JobState::Running);
    assert_eq!(effect::count(store.pool()).await, 0);

    let mut tx = connection.begin().await.unwrap();
    effect::record(&mut tx, job.run, "committed").await.unwrap();
    milepost_postgres::complete(&mut tx, job.run, Some("1")).await.unwrap();
    tx.commit().await.unwrap();
    scene.assert_all_succeed(&[job.run.job]).await;
    assert_eq!(effect::tokens(store.pool(), job.run.job).await, [job.run.token.0]);
    let mut again = connection.begin().await.unwrap();
    let fenced = milepost_postgres::complete(&mut again, job.run, None).await;
    assert!(matches!(fenced, Err(milepost::StoreError::Fenced(run)) if run == job.run), "{fenced:?}");
    drop(again);
    assert_eq!(scene.finish(&job, End::Cancel).await, Finished::Fenced);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_enqueue_runs_after_its_commit() {
    let (database, store, scene) = Database::with_scene().await;
    let worker = runtime::start(Arc::new(store.clone()), |_| async { Ok(Outcome::Done) }).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    // Without this, NOTIFY, and therefore PREPARE, would fail whenever a worker sleeps.
    connection.execute("set milepost.wake = 'off'").await.unwrap();
    let name = format!("milepost-{}", uuid::Uuid::now_v7());
    let mut prepared = Vec::new();
    for (at, decision) in ["commit prepared", "rollback prepared"].into_iter().enumerate() {
        let grouped = runtime::job().group("prepared").key(format!("prepared-{at}"));
        connection.execute("begin").await.unwrap();
        prepared.push(milepost_postgres::enqueue(&mut connection, &runtime::job()).await.unwrap().job);
        prepared.push(milepost_postgres::enqueue(&mut connection, &grouped).await.unwrap().job);
        let prepare = sqlx::AssertSqlSafe(format!("prepare transaction '{name}'"));
        connection.execute(sqlx::raw_sql(prepare)).await.unwrap();
        for &job in &prepared[at * 2..] {
            assert!(store.job(job).await.unwrap().is_none(), "a prepared transaction is not visible");
        }
        let decide = sqlx::AssertSqlSafe(format!("{decision} '{name}'"));
        connection.execute(sqlx::raw_sql(decide)).await.unwrap();
        if at == 0 {
            scene.assert_all_succeed(&prepared).await;
        }
    }
    for &job in &prepared[2..] {
        assert!(store.job(job).await.unwrap().is_none(), "rolled back");
    }
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_open_side_by_side_with_one_key_make_one_job() {
    let (database, _, scene) = Database::with_scene().await;
    let mut first = PgConnection::connect(&database.url()).await.unwrap();
    let mut second = PgConnection::connect(&database.url()).await.unwrap();
    let mut tx = first.begin().await.unwrap();
    let made = milepost_postgres::enqueue(&mut tx, &Scene::job().key("k")).await.unwrap();
    let waiting = tokio::spawn(async move {
        let mut tx = second.begin().await.unwrap();
        let made = milepost_postgres::enqueue(&mut tx, &Scene::job().key("k")).await.unwrap();
        tx.commit().await.unwrap();
        made
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished(), "the second transaction waits for the outcome of the first");
    tx.commit().await.unwrap();
    let second = waiting.await.unwrap();
    assert_eq!((second.job, second.duplicate), (made.job, true));
    wait::until("one job can be claimed", || async { scene.claim(10).await.len() == 1 }).await;
    assert_eq!(scene.count(made.job, Verb::Create).await, 1);
}

/// Returns whether this connection still exists on the server.
async fn is_connected(store: &PostgresStore, pid: i32) -> bool {
    let query = sqlx::query_scalar("select exists (select from pg_stat_activity where pid = $1)");
    query.bind(pid).fetch_one(store.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_a_transaction_that_rested_too_long_is_worth_repeating() {
    let (database, store) = Database::with_store().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    tx.execute("set local idle_in_transaction_session_timeout = '1ms'").await.unwrap();
    wait::until("the server has ended the session", || async { !is_connected(&store, pid).await }).await;
    let error = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap_err();
    assert!(error.chain().contains("idle-in-transaction timeout"), "{}", error.chain());
    assert!(error.is_transient(), "{error:?}");
}

//! Tests of the audit log while other sessions change the same subjects.

use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::audit::{acting, only_entry};
use milepost_core::error::StoreError;
use milepost_core::event::Begin;
use milepost_core::port::{Operation, Store};
use milepost_core::transition::Verb;
use milepost_postgres::PostgresStore;
use milepost_testkit::Scene;
use milepost_testkit::database::{Database, until_one_waits, until_waiting};
use serde_json::json;
use sqlx::Executor;

async fn fresh() -> (Database, PostgresStore, Arc<dyn Store>) {
    let (database, store) = Database::with_store().await;
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    (database, store, shared)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_before_is_the_one_that_was_changed() {
    let (_database, postgres, store) = fresh().await;
    let scene = Scene::on(Arc::clone(&store)).await;
    let job = scene.running(Scene::job()).await.run.job;
    let mut transaction = postgres.pool().begin().await.unwrap();
    let end = "update milepost.live set state = 'failed', failed_at = now(), worker_id = null";
    transaction.execute(end).await.unwrap();
    let ada = acting(&store);
    let cancel = tokio::spawn(async move { ada.operate(job, &Operation::new(Verb::Cancel)).await });
    until_one_waits(&postgres).await;
    transaction.commit().await.unwrap();
    cancel.await.unwrap().unwrap();
    let detail = only_entry(&store).await.detail;
    assert_eq!(
        (&detail["before"]["state"], &detail["after"]["state"]),
        (&json!("failed"), &json!("canceled"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_actors_at_the_same_thing_one_changes_it() {
    let (_database, postgres, store) = fresh().await;
    let mut transaction = postgres.pool().begin().await.unwrap();
    transaction.execute("lock table milepost.queue").await.unwrap();
    let pause = || {
        let ada = acting(&store);
        tokio::spawn(async move { ada.pause_queue("mail", true).await.unwrap() })
    };
    let both = [pause(), pause()];
    until_one_waits(&postgres).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    transaction.commit().await.unwrap();
    let [one, other] = both;
    assert!(one.await.unwrap() ^ other.await.unwrap(), "exactly one call paused the queue");
    assert_eq!(only_entry(&store).await.subject.as_deref(), Some("mail"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_taken_from_another_server_is_audited() {
    let (_database, _, store) = fresh().await;
    store.subscribe("all", Begin::Beginning).await.unwrap();
    let ada = acting(&store);
    assert_eq!(ada.reseed().await.unwrap(), 1);
    let entry = only_entry(&store).await;
    assert_eq!((entry.what.as_str(), entry.subject), ("log.reseed", None));
    assert_eq!(entry.detail, json!({ "after": { "subscriptions": 1 } }));
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_never_dropped_without_a_name_in_the_audit() {
    let (_database, postgres) = Database::with_store().await;
    for call in [
        "select milepost.put_consumer('shop', gap_wait_ms => 0)",
        "select milepost.receive('shop', 'order', '1', 2, gen_random_uuid(), 't')",
        "select milepost.give_up_gaps('shop')",
        "select milepost.drop_dead(array(select pos from milepost.inbox_dead), null)",
    ] {
        postgres.pool().execute(call).await.unwrap();
    }
    let dropped = "select who from milepost.audit where what = 'inbox.drop'";
    let dropped: Vec<String> = sqlx::query_scalar(dropped).fetch_all(postgres.pool()).await.unwrap();
    assert_eq!(dropped, ["postgres"]);
    for who in ["repeat('x', 201)", "E'a\\nb'"] {
        let call = format!("select milepost.retry_dead('{{}}', {who})");
        let refused = postgres.pool().execute(sqlx::AssertSqlSafe(call)).await.unwrap_err();
        assert!(refused.to_string().contains("at most 200 bytes"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_others_move_between_its_tables_is_found() {
    let (_database, postgres, store) = fresh().await;
    let scene = Scene::on(Arc::clone(&store)).await;
    let job = scene.enqueue(Scene::job()).await;
    scene.operate(job, Operation::new(Verb::Skip)).await.unwrap();
    let operate = |verb: Verb| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.operate(job, &Operation::new(verb)).await })
    };
    let mut rerun = postgres.pool().begin().await.unwrap();
    let call = format!("select milepost.change('{}', 'rerun')", job.0);
    rerun.execute(sqlx::AssertSqlSafe(call)).await.unwrap();
    let cancel = operate(Verb::Cancel);
    until_waiting(&postgres, 1).await;
    let skip = operate(Verb::Skip);
    until_waiting(&postgres, 2).await;
    rerun.commit().await.unwrap();
    // Whichever is first, the other one then finds the job in a state that may not allow its verb.
    for ended in [cancel.await.unwrap(), skip.await.unwrap()] {
        assert!(matches!(ended, Ok(_) | Err(StoreError::Illegal { .. })), "{ended:?}");
    }
}

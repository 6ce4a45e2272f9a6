//! Tests that a key has one job while retention deletes jobs.

use milepost_core::finish::End;
use milepost_core::port::MaintenanceStore;
use milepost_core::retention::Pace;
use milepost_postgres::PostgresStore;
use milepost_testkit::Scene;
use milepost_testkit::database::{Database, until_one_waits};
use milepost_testkit::scene::KIND;
use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use crate::retention::NOTHING_KEPT;

const ENQUEUE: &str = "select job_id, duplicate from milepost.enqueue_many(
    array_fill($1::text, array[cardinality($2::text[])]), array_fill('{}'::jsonb, array[cardinality($2::text[])]), keys => $2)";

async fn enqueue(connection: &mut PgConnection, keys: &[&str]) -> Vec<(Uuid, bool)> {
    try_enqueue(connection, keys).await.unwrap()
}

async fn try_enqueue(connection: &mut PgConnection, keys: &[&str]) -> sqlx::Result<Vec<(Uuid, bool)>> {
    sqlx::query_as(ENQUEUE).bind(KIND).bind(keys).fetch_all(connection).await
}

/// Creates a store with one job, which has the key `a` and has succeeded.
async fn store_with_ended_job() -> (Database, PostgresStore) {
    let (database, store, scene) = Database::with_scene().await;
    let job = scene.running(Scene::job().key("a")).await;
    scene.finish(&job, End::Succeed { result: None }).await;
    (database, store)
}

async fn delete_ended_job(store: &PostgresStore) {
    let pruned = store.prune(&NOTHING_KEPT, Pace { limit: 100, rest: 0 }).await.unwrap();
    assert_eq!(pruned.what.jobs(), 1);
}

async fn owners_of_a(store: &PostgresStore) -> Vec<Uuid> {
    let owners = "select job_id from milepost.job_key where key = 'a'";
    sqlx::query_scalar(owners).fetch_all(store.pool()).await.unwrap()
}

#[tokio::test]
async fn a_key_that_retention_deletes_while_the_call_waits_for_another_key_gets_the_new_job() {
    let (database, store) = store_with_ended_job().await;
    let mut rival = PgConnection::connect(&database.url()).await.unwrap();
    let mut caller = PgConnection::connect(&database.url()).await.unwrap();
    let mut rivals = rival.begin().await.unwrap();
    enqueue(&mut rivals, &["b"]).await;
    let call = tokio::spawn(async move { enqueue(&mut caller, &["a", "b"]).await });
    until_one_waits(&store).await;
    delete_ended_job(&store).await;
    rivals.rollback().await.unwrap();
    let made = call.await.unwrap();
    assert_eq!(made.iter().map(|(_, duplicate)| *duplicate).collect::<Vec<_>>(), [false, false]);
    assert_eq!(owners_of_a(&store).await, [made[0].0]);
    assert_eq!(enqueue(&mut rival, &["a"]).await, [(made[0].0, true)]);
}

#[tokio::test]
async fn a_caller_in_repeatable_read_repeats_a_call_with_a_key_that_was_deleted_since_its_snapshot() {
    let (database, store) = store_with_ended_job().await;
    let mut caller = PgConnection::connect(&database.url()).await.unwrap();
    let begin = "begin isolation level repeatable read; select count(*) from milepost.job";
    caller.execute(begin).await.unwrap();
    delete_ended_job(&store).await;
    let refused = try_enqueue(&mut caller, &["a"]).await.unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some("40001"));
    caller.execute("rollback").await.unwrap();
    caller.execute(begin).await.unwrap();
    let made = enqueue(&mut caller, &["a"]).await;
    caller.execute("commit").await.unwrap();
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(!made[0].1, "a new job is created");
    assert_eq!(owners_of_a(&store).await, [made[0].0]);
}

#[tokio::test]
async fn an_id_that_a_job_has_is_refused_by_the_documented_constraints() {
    let (database, store, scene) = Database::with_scene().await;
    let mut caller = PgConnection::connect(&database.url()).await.unwrap();
    let job = scene.running(Scene::job()).await;
    let mut refusals = Vec::new();
    for end in [None, Some(End::Succeed { result: None })] {
        if let Some(end) = end {
            scene.finish(&job, end).await;
        }
        let again = sqlx::query("select milepost.enqueue($1, id => $2)").bind(KIND).bind(job.run.job.0);
        let refused = again.execute(&mut caller).await.unwrap_err();
        let refused = refused.as_database_error().unwrap();
        assert_eq!(refused.code().as_deref(), Some("23505"));
        refusals.push(refused.constraint().unwrap().to_owned());
    }
    assert!(refusals.iter().all(|name| ["live_pkey", "job_pkey"].contains(&name.as_str())), "{refusals:?}");
    assert_eq!(refusals[1], "job_pkey", "the job has ended");
    store.close().await;
}

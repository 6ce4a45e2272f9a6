//! Recovery from PostgreSQL workers that stopped in the middle of an operation, or long ago.

use milepost_conformance::rescue::no_delay;
use milepost_core::claim::ClaimedJob;
use milepost_core::ident::WorkerId;
use milepost_core::port::MaintenanceStore;
use milepost_core::state::JobState;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::scene::{LONG, register};
use milepost_testkit::{Scene, effect};
use sqlx::{Connection, PgConnection};

/// Returns a worker that has claimed `jobs` jobs.
async fn holder(scene: &Scene, jobs: u32) -> (WorkerId, Vec<ClaimedJob>) {
    let new: Vec<_> = (0..jobs).map(|_| Scene::job()).collect();
    scene.store.enqueue_many(&new).await.unwrap();
    let worker = register(&scene.store, LONG).await;
    let claimed = scene.claim_for(worker, jobs).await.unwrap();
    assert_eq!(claimed.len(), jobs as usize);
    (worker, claimed)
}

async fn execute(store: &PostgresStore, sql: &'static str, worker: WorkerId) {
    sqlx::query(sql).bind(worker.0).execute(store.pool()).await.unwrap();
}

const EXPIRE: &str =
    "update milepost.worker set lease_expires_at = now() - interval '1 second' where id = $1";

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_left_half_done_holds_up_its_own_job_only() {
    let (database, store, scene) = Database::with_scene().await;
    effect::prepare(store.pool()).await;
    let (worker, claimed) = holder(&scene, 5).await;
    let mut dead = PgConnection::connect(&database.url()).await.unwrap();
    let mut half_done = dead.begin().await.unwrap();
    milepost_postgres::complete(&mut half_done, claimed[0].run, None).await.unwrap();

    execute(&store, EXPIRE, worker).await;
    let (_, other) = holder(&scene, 3).await;
    let rescued = store.rescue_expired(100, &no_delay).await.unwrap();
    assert_eq!(rescued.len(), 4, "all but the one whose lease may still be valid");
    assert!(store.rescue_expired(100, &no_delay).await.unwrap().is_empty());
    assert_eq!(scene.state(other[0].run.job).await, JobState::Running);

    half_done.rollback().await.unwrap();
    let rescued = store.rescue_expired(100, &no_delay).await.unwrap();
    assert_eq!(rescued.iter().map(|lost| lost.run).collect::<Vec<_>>(), [claimed[0].run]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_worker_that_died_long_ago_are_taken_back() {
    let (_database, store, scene) = Database::with_scene().await;
    let (worker, claimed) = holder(&scene, 30).await;
    execute(&store, EXPIRE, worker).await;
    assert_eq!(
        store.rescue_expired(10, &no_delay).await.unwrap().len(),
        10,
        "rescued before all workers went down"
    );
    execute(&store, "update milepost.worker set ended_at = now() - interval '40 days' where id = $1", worker)
        .await;
    let mut rescued = 10;
    for _ in 0..2 {
        rescued += store.rescue_expired(10, &no_delay).await.unwrap().len();
    }
    assert_eq!(rescued, claimed.len());
    assert!(store.rescue_expired(10, &no_delay).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_holds_nothing_any_more_is_looked_at_once() {
    let (_database, store, scene) = Database::with_scene().await;
    let (worker, _) = holder(&scene, 1).await;
    execute(&store, EXPIRE, worker).await;
    let cleared = async || -> bool {
        sqlx::query_scalar("select cleared_at is not null from milepost.worker where id = $1")
            .bind(worker.0)
            .fetch_one(store.pool())
            .await
            .unwrap()
    };
    assert!(!cleared().await);
    store.rescue_expired(10, &no_delay).await.unwrap();
    assert!(cleared().await);
}

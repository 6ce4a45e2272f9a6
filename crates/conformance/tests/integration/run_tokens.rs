//! Run tokens after promotions and restores: a run whose claim was lost ends no other run.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::claim::ClaimedJob;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::{JobId, RunToken, WorkerId};
use milepost_testkit::scene::{failure, register};
use milepost_testkit::server::Server;
use milepost_testkit::{Scene, database, wait};
use sqlx::{Connection, Executor, PgConnection};

use crate::failover::DONE;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_failover_took_back_ends_no_other_run() {
    let server = Server::create().await;
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    assert_lost_claim_is_fenced(&server, &scene, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_failover_took_back_ends_no_other_run_in_a_store_that_was_on_another_server() {
    let (server, other) = (Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    for _promotion in [1, 2, 3] {
        other.stop().await;
        other.start_promoted().await;
    }
    server.dump_to(&other).await;
    let there = Scene::on(Arc::new(database::open(&other.url()).await)).await;
    let run = there.claim_for(there.worker, 1).await.unwrap().remove(0);
    assert!(run.run.token.0 > 300_000, "{run:?}");
    there.finish(&run, End::Retry { delay: Duration::ZERO, failure: failure() }).await;

    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    connection.execute("drop schema milepost cascade").await.unwrap();
    other.dump_to(&server).await;
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    assert_lost_claim_is_fenced(&server, &scene, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_restores_of_one_dump_have_different_run_tokens() {
    let (server, other) = (Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    scene.enqueue(Scene::job()).await;
    let mut tokens = Vec::new();
    for _restore in [1, 2] {
        server.dump_to(&other).await;
        let restored = Scene::on(Arc::new(database::open(&other.url()).await)).await;
        tokens.push(restored.claim_for(restored.worker, 1).await.unwrap().remove(0).run.token);
        restored.store.retire_worker(restored.worker).await.unwrap();
        let mut connection = PgConnection::connect(&other.url()).await.unwrap();
        connection.execute("drop schema milepost cascade").await.unwrap();
    }
    assert_ne!(tokens[0], tokens[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lives_through_the_restore_of_a_dump_registers_again() {
    let (server, other) = (Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    server.dump_to(&other).await;
    let lost = scene.claim_for(scene.worker, 1).await.unwrap().remove(0);
    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    connection.execute("drop schema milepost cascade").await.unwrap();
    other.dump_to(&server).await;
    assert_worker_registers_again(&scene, id, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lives_through_the_restore_of_the_data_registers_again() {
    let server = Server::create().await;
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    server.dump_data().await;
    let before = scene.store.feed_end().await.unwrap().as_str().split('/').next().map(str::to_owned);
    let worker = register(&scene.store, Duration::from_secs(30)).await;
    let lost = scene.claim_for(worker, 1).await.unwrap().remove(0);
    server.restore_data().await;
    let epoch = async || -> Option<String> {
        let mut connection = PgConnection::connect(&server.url()).await.unwrap();
        sqlx::query_scalar("select max(id) from milepost.running_epoch")
            .fetch_one(&mut connection)
            .await
            .unwrap()
    };
    assert_eq!(epoch().await, None, "positions of the stream are of another epoch");
    let next = assert_worker_registers_again(&scene, id, &lost).await;
    // Each claim reads the table, so no dead rows may be left in it.
    let pages = "select pg_relation_size('milepost.timeline') / current_setting('block_size')::int";
    let mut connection = PgConnection::connect(&server.url()).await.unwrap();
    let pages: i64 = sqlx::query_scalar(pages).fetch_one(&mut connection).await.unwrap();
    assert_eq!(pages, 1);
    assert!(next.0 > worker.0 + 10_000, "{next} after {worker}");
    assert!(epoch().await.is_some_and(|now| before.as_ref() != Some(&now)), "{before:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_lives_through_a_restore_in_a_copy_of_the_data_folder_registers_again() {
    let server = Server::create().await;
    server.stop().await;
    server.copy_files();
    server.start().await;
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    server.dump().await;
    let lost = scene.claim_for(scene.worker, 1).await.unwrap().remove(0);
    // The same server as before the migration: its transactions get the same ids again.
    server.stop().await;
    server.put_files_back();
    server.start().await;
    server.restore().await;
    wait::until("the server answers", || async { scene.store.clock().await.is_ok() }).await;
    assert_worker_registers_again(&scene, id, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_is_restored_into_tables_of_a_new_store_is_noticed() {
    let (server, new) = (Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    let there = Scene::on(Arc::new(database::open(&new.url()).await)).await;
    let lost = scene.claim_for(scene.worker, 1).await.unwrap().remove(0);
    // What the new store and its worker noted stays beside the rows of the dump.
    server.copy_rows_to(&new, &["timeline", "job", "live"]).await;
    let waits = "update milepost.live set state = 'pending', ready_at = now(), attempt = 0, token = 0,
                                          worker_id = null, claim_id = null, started_at = null";
    PgConnection::connect(&new.url()).await.unwrap().execute(waits).await.unwrap();
    assert_worker_registers_again(&there, id, &lost).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_is_restored_while_a_registration_notes_another_restore_is_noticed() {
    let (first, second, new) = (Server::create().await, Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&first.url()).await)).await;
    let id = scene.enqueue(Scene::job()).await;
    Scene::on(Arc::new(database::open(&second.url()).await)).await;
    let restored_before = "update milepost.timeline set timelines_before = 7";
    PgConnection::connect(&second.url()).await.unwrap().execute(restored_before).await.unwrap();
    let there = Scene::on(Arc::new(database::open(&new.url()).await)).await;
    first.copy_rows_to(&new, &["timeline", "job", "live"]).await;

    let mut epoch = PgConnection::connect(&new.url()).await.unwrap();
    epoch.execute("begin; update milepost.epoch set id = id").await.unwrap();
    let store = there.store.clone();
    let registers = tokio::spawn(async move { register(&store, Duration::from_secs(30)).await });
    wait::until("the registration waits for the epoch", || async {
        let mut observer = PgConnection::connect(&new.url()).await.unwrap();
        let waits = "select exists (select from pg_locks where not granted and locktype = 'transactionid')";
        sqlx::query_scalar(waits).fetch_one(&mut observer).await.unwrap()
    })
    .await;
    second.copy_rows_to(&new, &["timeline"]).await;
    epoch.execute("commit").await.unwrap();

    let worker = registers.await.unwrap();
    let claimed = there.claim_for(worker, 1).await.unwrap().remove(0).run;
    assert_eq!(claimed.job, id);
    assert!(claimed.token > RunToken(800_000), "{} can be a token of the second store", claimed.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_tokens_of_a_restore_exceed_those_of_a_promotion_that_nobody_noted() {
    let (server, other) = (Server::create().await, Server::create().await);
    let scene = Scene::on(Arc::new(database::open(&server.url()).await)).await;
    server.stop().await;
    server.copy_files();
    server.put_files_back();
    server.start_promoted().await;
    wait::until("the server answers", || async { scene.store.clock().await.is_ok() }).await;
    let before = scene.running(Scene::job()).await;
    assert!(before.run.token > RunToken(100_000), "{}", before.run.token);
    scene.finish(&before, DONE).await;
    server.dump_to(&other).await;

    let restored = Scene::on(Arc::new(database::open(&other.url()).await)).await;
    let after = restored.running(Scene::job()).await.run.token;
    // 100,000 tokens belong to each timeline.
    assert!(after.0 / 100_000 > before.run.token.0 / 100_000, "{after} after {}", before.run.token);
}

/// Asserts that the worker of the scene cannot claim the job before a worker has registered, and that the end of the lost run ends no other one.
/// Returns the new worker.
async fn assert_worker_registers_again(scene: &Scene, id: JobId, lost: &ClaimedJob) -> WorkerId {
    let claimed = scene.claim_for(scene.worker, 1).await;
    assert!(matches!(claimed, Err(StoreError::WorkerLost(worker)) if worker == scene.worker), "{claimed:?}");
    let worker = register(&scene.store, Duration::from_secs(30)).await;
    let run = scene.claim_for(worker, 1).await.unwrap().remove(0);
    assert_eq!((run.run.job, run.attempt), (id, lost.attempt));
    assert!(run.run.token > lost.run.token, "{} after {}", run.run.token, lost.run.token);
    assert_eq!(scene.finish_by(worker, lost, DONE).await, Finished::Fenced);
    assert_eq!(scene.finish_by(worker, &run, DONE).await, Finished::Accepted);
    worker
}

/// Claims the only job on a server and loses the claim in a promotion; the end of the lost run must not end the next one.
async fn assert_lost_claim_is_fenced(server: &Server, scene: &Scene, id: JobId) {
    server.stop().await;
    server.copy_files();
    server.start().await;
    let claimed = || async { scene.claim_for(scene.worker, 1).await.is_ok_and(|jobs| !jobs.is_empty()) };
    wait::until("the job is claimed", claimed).await;
    let lost = scene.store.held(scene.worker).await.unwrap().remove(0);

    server.crash().await;
    server.put_files_back();
    server.start_promoted().await;
    wait::until("the job is claimed again", claimed).await;
    let run = scene.store.held(scene.worker).await.unwrap().remove(0);
    assert_eq!((run.run.job, lost.run.job, run.attempt), (id, id, lost.attempt));
    assert!(run.run.token > lost.run.token, "{} after {}", run.run.token, lost.run.token);
    assert_eq!(scene.finish(&lost, DONE).await, Finished::Fenced);
    assert_eq!(scene.finish(&run, DONE).await, Finished::Accepted);
    scene.assert_history_folds(id).await;
}

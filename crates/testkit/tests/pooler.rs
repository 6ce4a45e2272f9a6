//! Behind a transaction pooler: no LISTEN, no session settings, no prepared statements that last.

use std::sync::Arc;
use std::time::Duration;

use milepost::{Outcome, RetryPolicy, Worker};
use milepost_core::port::Store;
use milepost_core::state::JobState;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use milepost_testkit::{Scene, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn poll_only_mode_runs_jobs_and_groups_to_their_end() {
    let database = Database::create().await;
    let options = PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&database.url(), options).await.unwrap();
    store.migrate().await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let worker = Worker::builder(store.clone())
        .handle_kind("polled", RetryPolicy::default(), |_| async { Ok(Outcome::Done) })
        .options(|options| options.poll_interval = Duration::from_millis(20))
        .start()
        .await
        .unwrap();
    let scene = Scene::on(store).await;
    let mut jobs = Vec::new();
    for number in 0..50 {
        let mut job = Scene::job();
        job.kind = "polled".to_owned();
        jobs.push(scene.enqueue(if number % 5 == 0 { job.group("g") } else { job }).await);
    }
    for &job in &jobs {
        wait::until("the job has ended", || async { scene.state(job).await == JobState::Succeeded }).await;
        scene.assert_history_folds(job).await;
    }
    worker.shutdown().await;
}

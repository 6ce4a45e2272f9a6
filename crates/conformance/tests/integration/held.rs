//! Ends of runs beside open transactions that hold some of them.

use std::sync::Arc;

use milepost::Outcome;
use milepost_conformance::batches::{Batches, done, graph};
use milepost_conformance::runtime;
use milepost_core::claim::ClaimedJob;
use milepost_core::finish::{Finish, Finished};
use milepost_core::state::JobState;
use milepost_testkit::database::Database;
use milepost_testkit::scene::KIND;
use milepost_testkit::{Scene, wait};
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::watch;

fn end(job: &ClaimedJob) -> Finish {
    Finish { run: job.run, end: done(), grouped: job.group.is_some(), task: job.batch.is_some() }
}

/// More than the worker has concurrent calls for ends.
const HELD: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_an_open_transaction_cancels_delay_no_ends_of_others() {
    let (database, store, scene) = Database::with_scene().await;
    let (open, gate) = watch::channel(false);
    let worker = runtime::start(Arc::new(store.clone()), move |context| {
        let mut gate = gate.clone();
        async move {
            if context.job().payload == "true" {
                let _ = gate.wait_for(|open| *open).await;
            }
            Ok(Outcome::Done)
        }
    })
    .await;
    let slow = scene.enqueue_many(HELD, runtime::KIND, json!(true)).await;
    for &job in &slow {
        wait::until("it runs", || async { scene.state(job).await == JobState::Running }).await;
    }
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin").await.unwrap();
    for job in &slow {
        sqlx::query("select milepost.cancel($1)").bind(job.0).execute(&mut holder).await.unwrap();
    }
    open.send(true).unwrap();
    for _ in 0..3 {
        let quick = scene.enqueue_many(20, runtime::KIND, json!(false)).await;
        scene.assert_all_succeed(&quick).await;
    }
    assert_eq!(scene.state(slow[0]).await, JobState::Running, "its end is held");
    holder.execute("commit").await.unwrap();
    scene.assert_all_succeed(&slow).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_job_whose_group_is_held_is_stored_later() {
    let (database, _, scene) = Database::with_scene().await;
    scene.enqueue_many(3, KIND, json!({})).await;
    scene.enqueue(Scene::job().group("g")).await;
    let claimed = scene.claim(10).await;
    assert_eq!(claimed.len(), 4);
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin; select from milepost.group_slot for update").await.unwrap();
    assert_stored_around_the_held(&scene, &claimed, |job| job.group.is_some(), &mut holder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_task_whose_batch_is_held_is_stored_later() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store)).await;
    let batch = batches.run(graph("pair", &[("a", &[]), ("b", &[]), ("c", &["a", "b"])]), json!({})).await;
    let tasks = batches.claim(batch).await;
    let free = batches.scene.running(Scene::job()).await;
    let mut holder = PgConnection::connect(&database.url()).await.unwrap();
    holder.execute("begin").await.unwrap();
    let complete = sqlx::query("select milepost.complete($1, $2)")
        .bind(tasks["a"].run.job.0)
        .bind(tasks["a"].run.token.0);
    complete.execute(&mut holder).await.unwrap();
    let claimed = [free, tasks["b"].clone()];
    assert_stored_around_the_held(&batches.scene, &claimed, |job| job.batch.is_some(), &mut holder).await;
    batches.assert_states(batch, "a succeeded, b succeeded, c active").await;
}

/// Asserts that ends are stored except the held ones, and these when the holder has committed.
async fn assert_stored_around_the_held(
    scene: &Scene,
    claimed: &[ClaimedJob],
    is_held: impl Fn(&ClaimedJob) -> bool,
    holder: &mut PgConnection,
) {
    let ends: Vec<Finish> = claimed.iter().map(end).collect();
    let told = |held, others| -> Vec<Finished> {
        claimed.iter().map(|job| if is_held(job) { held } else { others }).collect()
    };
    let answers = scene.store.finish_many(scene.worker, &ends).await.unwrap();
    assert_eq!(answers, told(Finished::Held, Finished::Accepted));
    let again = scene.store.finish_many(scene.worker, &ends).await.unwrap();
    assert_eq!(again, told(Finished::Held, Finished::Repeated));
    holder.execute("commit").await.unwrap();
    let freed = scene.store.finish_many(scene.worker, &ends).await.unwrap();
    assert_eq!(freed, told(Finished::Accepted, Finished::Repeated));
}

//! What retention leaves in the database, table by table.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

use std::sync::Arc;
use std::time::Duration;

use milepost_core::finish::End;
use milepost_core::port::{IntakeStore, MaintenanceStore, Operation, Store, WorkerStore};
use milepost_core::retention::{Keep, Pace, Pruned, RetentionPolicy};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{Progress, Report};
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::scene::{LONG, register};
use milepost_testkit::{Scene, wait};
use sqlx::{AssertSqlSafe, Executor};

const NOTHING_KEPT: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    failed: Keep::For(Duration::ZERO),
    history: Keep::Forever,
    keys: Keep::For(Duration::ZERO),
    workers: Keep::days(1),
};

async fn prune(store: &PostgresStore, limit: u32) -> Pruned {
    store.prune(&NOTHING_KEPT, Pace { limit, rest: 0 }).await.unwrap()
}

async fn rows(store: &PostgresStore, table: &str) -> i64 {
    let count = AssertSqlSafe(format!("select count(*) from milepost.{table}"));
    sqlx::query_scalar(count).fetch_one(store.pool()).await.unwrap()
}

async fn scene(store: &PostgresStore) -> Scene {
    Scene::on(Arc::new(store.clone()) as Arc<dyn Store>).await
}

#[tokio::test]
async fn a_job_that_is_forgotten_leaves_no_row_behind() {
    let (_database, store) = Database::with_store().await;
    let scene = scene(&store).await;
    for end in [End::Succeed { result: None }, End::Cancel] {
        let job = scene.running(Scene::job().key(end.verb().as_str()).group("g")).await;
        let progress = Some(Progress { done: 1, total: None, message: None });
        store.report_many(&[Report { run: job.run, progress, checkpoint: None }]).await.unwrap();
        scene.finish(&job, end).await;
    }
    scene.job_in(JobState::Failed).await;
    assert_eq!(prune(&store, 100).await.what.jobs(), 3);
    for table in ["job", "live", "ended", "job_key", "progress", "history", "group_slot"] {
        assert_eq!(rows(&store, table).await, 0, "{table}");
    }
}

#[tokio::test]
async fn workers_are_forgotten_when_they_left_nothing_behind() {
    let (_database, store) = Database::with_store().await;
    let scene = scene(&store).await;
    let (idle, busy) = (register(&scene.store, LONG).await, register(&scene.store, LONG).await);
    scene.enqueue(Scene::job()).await;
    assert_eq!(scene.claim_for(busy, 1).await.unwrap().len(), 1);
    for worker in [idle, busy] {
        store.retire_worker(worker).await.unwrap();
    }
    let long_ago =
        "update milepost.worker set ended_at = ended_at - interval '2 days' where ended_at is not null";
    store.pool().execute(long_ago).await.unwrap();
    assert_eq!(prune(&store, 100).await.what.workers, 1);
    assert_eq!(rows(&store, "worker").await, 2, "the living one, and the one whose job must be rescued");
}

#[tokio::test]
async fn a_job_that_somebody_changes_is_passed_over_without_waiting() {
    let (_database, store) = Database::with_store().await;
    let scene = scene(&store).await;
    let (first, _) = scene.job_in(JobState::Canceled).await;
    let (second, _) = scene.job_in(JobState::Failed).await;
    scene.job_in(JobState::Canceled).await;
    let mut change = store.pool().begin().await.unwrap();
    for (job, verb) in [(first, "rerun"), (second, "retry_now")] {
        sqlx::query("select milepost.change($1, $2::text::milepost.verb)")
            .bind(job.0)
            .bind(verb)
            .execute(&mut *change)
            .await
            .unwrap();
    }
    let pruned = tokio::time::timeout(Duration::from_secs(5), prune(&store, 100)).await.unwrap();
    assert_eq!(pruned.what.jobs(), 1, "only the one that nobody changes");
    change.commit().await.unwrap();
    for job in [first, second] {
        assert_eq!(scene.state(job).await, JobState::Pending);
        scene.assert_history_folds(job).await;
    }
    assert_eq!(prune(&store, 100).await.what.jobs(), 0);
}

#[tokio::test]
async fn entries_that_vacuum_cannot_remove_are_not_walked_by_every_batch() {
    const JOBS: usize = 200;
    let (_database, store) = Database::with_store().await;
    let scene = scene(&store).await;
    let mut holder = store.pool().begin().await.unwrap();
    holder.execute("set transaction isolation level repeatable read").await.unwrap();
    holder.execute("select count(*) from milepost.job").await.unwrap();
    for job in store.enqueue_many(&(0..JOBS).map(|_| Scene::job()).collect::<Vec<_>>()).await.unwrap() {
        scene.operate(job.job, Operation::new(Verb::Cancel)).await.unwrap();
    }
    let mut forgotten = 0;
    while forgotten < JOBS as u64 {
        let pruned = prune(&store, 10).await.what.canceled;
        assert!(pruned > 0, "{forgotten} are forgotten");
        forgotten += pruned;
    }
    holder.rollback().await.unwrap();

    // The server counts with a delay; what was deleted and what was read for it arrive together.
    let deleted = "select n_tup_del from pg_stat_user_tables where relid = 'milepost.ended'::regclass";
    wait::until("the server has counted", || async {
        sqlx::query_scalar::<_, i64>(deleted).fetch_one(store.pool()).await.unwrap() == JOBS as i64
    })
    .await;
    let read =
        "select idx_tup_read from pg_stat_user_indexes where indexrelid = 'milepost.ended_due'::regclass";
    let read: i64 = sqlx::query_scalar(read).fetch_one(store.pool()).await.unwrap();
    assert!(read < 2 * JOBS as i64, "{read} entries were read for {JOBS} jobs");
}

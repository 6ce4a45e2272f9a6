//! Tests of the rows that retention leaves in each table.

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

pub(crate) const NOTHING_KEPT: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    failed: Keep::For(Duration::ZERO),
    history: Keep::Forever,
    keys: Keep::For(Duration::ZERO),
    workers: Keep::days(1),
    batches: Keep::Forever,
    inbox: Keep::Forever,
    events: Keep::Forever,
    audit: Keep::Forever,
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
    assert_eq!(rows(&store, "worker").await, 2, "the active worker, and the one whose job must be rescued");
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
    let pruned = tokio::time::timeout(wait::LIMIT, prune(&store, 100)).await.unwrap();
    assert_eq!(pruned.what.jobs(), 1, "only the job that no transaction changes");
    change.commit().await.unwrap();
    for job in [first, second] {
        assert_eq!(scene.state(job).await, JobState::Pending);
        scene.assert_history_folds(job).await;
    }
    assert_eq!(prune(&store, 100).await.what.jobs(), 0);
}

#[tokio::test]
async fn batches_go_on_where_the_last_one_of_any_process_ended_and_come_round() {
    const JOBS: usize = 300;
    let (_database, store) = Database::with_store().await;
    let scene = scene(&store).await;
    for job in store.enqueue_many(&(0..JOBS).map(|_| Scene::job()).collect::<Vec<_>>()).await.unwrap() {
        scene.operate(job.job, Operation::new(Verb::Cancel)).await.unwrap();
    }
    let place = || async {
        let place = "update milepost.turn set until = now() where name = 'retention' returning place";
        sqlx::query_scalar::<_, i64>(place).fetch_one(store.pool()).await.unwrap()
    };
    let (mut forgotten, mut places) = (0, vec![0]);
    for _ in 0..JOBS / 100 + 1 {
        let pruned = store.prune(&NOTHING_KEPT, Pace { limit: 100, rest: 1 }).await.unwrap();
        forgotten += pruned.what.canceled;
        places.push(place().await);
    }
    assert_eq!(forgotten, JOBS as u64);
    assert!(places.windows(2).take(JOBS / 100).all(|pair| pair[0] <= pair[1]), "{places:?}");
    assert!(places[JOBS / 100] > 0, "it continues from the last position: {places:?}");
    assert_eq!(places.last(), Some(&0), "after the end it starts again: {places:?}");
}

#[tokio::test]
async fn a_walk_that_found_nothing_is_put_off_for_a_hundredth_of_the_period() {
    let (_database, store) = Database::with_store().await;
    let policy =
        RetentionPolicy { succeeded: Keep::For(Duration::from_secs(100_000)), ..RetentionPolicy::FOREVER };
    assert_eq!(store.prune(&policy, Pace { limit: 100, rest: 10 }).await.unwrap(), Pruned::default());
    let rest = "select extract(epoch from until - now())::float8 from milepost.turn where name = 'retention'";
    let rest: f64 = sqlx::query_scalar(rest).fetch_one(store.pool()).await.unwrap();
    assert!((900.0..=1000.0).contains(&rest), "{rest} s");
}

#[tokio::test]
async fn what_is_kept_for_ever_is_not_walked() {
    let (_database, store) = Database::with_store().await;
    // A thousand blocks, which are two batches of a scan.
    let fill = "insert into milepost.ended (id, ended_at, token, attempt, max_attempts, state)
                select gen_random_uuid(), now(), 1, 1, 1, 'succeeded' from generate_series(1, 90000)";
    store.pool().execute(fill).await.unwrap();
    let pace = Pace { limit: 100, rest: 0 };
    let walked = RetentionPolicy { succeeded: Keep::days(1), ..RetentionPolicy::FOREVER };
    assert!(store.prune(&walked, pace).await.unwrap().more, "more blocks remain");
    assert_eq!(store.prune(&RetentionPolicy::FOREVER, pace).await.unwrap(), Pruned::default());
}

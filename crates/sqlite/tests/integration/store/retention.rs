//! The rows that retention leaves in the file, table by table.

use std::time::Duration;

use milepost_core::port::{MaintenanceStore, Store, WorkerStore};
use milepost_core::retention::{Keep, Pace, Pruned, RetentionPolicy};
use milepost_core::worker::{Progress, Report};

use crate::store::fixture::{HOUR, Home, claim, enqueue, finish, job, success, worker};

const NOTHING_KEPT: RetentionPolicy = RetentionPolicy {
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

async fn prune(home: &Home) -> Pruned {
    tokio::time::sleep(Duration::from_millis(3)).await;
    // A call stops when its time limit is reached; the next one continues.
    let mut sum = Pruned::default();
    loop {
        sum += home.store.prune(&NOTHING_KEPT, Pace { limit: 100, rest: 0 }).await.unwrap();
        if !sum.more {
            return sum;
        }
    }
}

fn rows(home: &Home, table: &str) -> i64 {
    home.connection()
        .query_row(&format!("SELECT count(*) FROM milepost_{table}"), (), |row| row.get(0))
        .unwrap()
}

/// Ends a job that has a key, progress and a checkpoint.
async fn end_one(store: &dyn Store) {
    let worker = worker(store, &["a"], HOUR).await;
    enqueue(store, job("a").key("k")).await;
    let run = claim(store, worker, &["a"], 1).await[0].run;
    let progress = Some(Progress { done: 1, total: None, message: None });
    store.report_many(&[Report { run, progress, checkpoint: Some("1".to_owned()) }]).await.unwrap();
    finish(store, worker, run, success()).await;
    store.retire_worker(worker).await.unwrap();
}

#[tokio::test]
async fn a_job_that_is_forgotten_leaves_no_row_behind() {
    let home = Home::new().await;
    end_one(&home.store).await;
    enqueue(&home.store, job("b")).await;
    assert_eq!(prune(&home).await.what.succeeded, 1);
    for (table, expected) in [
        ("job", 1),
        ("live", 1),
        ("ended", 0),
        ("job_key", 0),
        ("progress", 0),
        ("history", 1),
        ("worker", 1),
    ] {
        assert_eq!(rows(&home, table), expected, "{table}");
    }
}

#[tokio::test]
async fn the_newest_place_in_history_is_never_given_again() {
    let home = Home::new().await;
    let newest = || -> i64 {
        home.connection().query_row("SELECT max(pos) FROM milepost_history", (), |row| row.get(0)).unwrap()
    };
    end_one(&home.store).await;
    let before = newest();
    assert_eq!(prune(&home).await.what.succeeded, 0, "the newest entry is kept");
    enqueue(&home.store, job("b")).await;
    assert_eq!((prune(&home).await.what.succeeded, newest()), (1, before + 1));
}

#[tokio::test]
async fn workers_are_forgotten_when_they_left_nothing_behind() {
    let home = Home::new().await;
    end_one(&home.store).await;
    let busy = worker(&home.store, &["a"], HOUR).await;
    enqueue(&home.store, job("a")).await;
    claim(&home.store, busy, &["a"], 1).await;
    home.store.retire_worker(busy).await.unwrap();
    worker(&home.store, &["a"], HOUR).await;
    let long_ago =
        "UPDATE milepost_worker SET ended_at_ms = ended_at_ms - 2 * 86400000 WHERE ended_at_ms IS NOT NULL";
    assert_eq!(home.connection().execute(long_ago, ()).unwrap(), 2);
    assert_eq!(prune(&home).await.what.workers, 1);
    assert_eq!(rows(&home, "worker"), 2, "the active worker, and the one whose job must be rescued");
}

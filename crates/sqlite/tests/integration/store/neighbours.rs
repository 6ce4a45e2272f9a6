//! Several stores on one file, each with separate connections, as if they were several processes. Tests with real processes are in the
//! testkit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, Finished};
use milepost_core::port::{AdminStore, IntakeStore, Store};
use milepost_core::state::JobState;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::wait;
use tokio::sync::Barrier;

use crate::store::fixture::{HOUR, Home, claim, job, success, worker};

/// Works until no job is left; after its first claim it waits until all others have made theirs.
async fn drain(store: &dyn Store, all_began: &Barrier) -> usize {
    let worker = worker(store, &["a"], HOUR).await;
    let mut done = 0;
    loop {
        let claimed = claim(store, worker, &["a"], 100).await;
        if done == 0 {
            all_began.wait().await;
        }
        if claimed.is_empty() {
            return done;
        }
        let finishes: Vec<_> = claimed
            .iter()
            .map(|job| Finish { run: job.run, end: success(), grouped: false, task: false })
            .collect();
        let ended = store.finish_many(worker, &finishes).await.unwrap();
        assert!(ended.iter().all(|&end| end == Finished::Accepted));
        done += ended.len();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_stores_under_load_both_go_on_and_no_job_runs_twice() {
    let home = Home::new().await;
    let stores = [home.store.clone(), home.neighbour()];
    let enqueuers = stores.clone().map(|store| {
        tokio::spawn(async move {
            let mut slowest = Duration::ZERO;
            for _ in 0..20 {
                let jobs: Vec<_> = (0..200).map(|_| job("a")).collect();
                let begun = Instant::now();
                store.enqueue_many(&jobs).await.unwrap();
                slowest = slowest.max(begun.elapsed());
            }
            slowest
        })
    });
    for enqueuer in enqueuers {
        let slowest = enqueuer.await.unwrap();
        assert!(slowest < wait::LIMIT, "{slowest:?}");
    }
    let all_began = Arc::new(Barrier::new(stores.len()));
    let drainers = stores.map(|store| {
        let all_began = all_began.clone();
        tokio::spawn(async move { drain(&store, &all_began).await })
    });
    let mut done = Vec::new();
    for drainer in drainers {
        done.push(drainer.await.unwrap());
    }
    assert_eq!(done.iter().sum::<usize>(), 8000);
    assert!(done.iter().all(|&part| part > 0), "{done:?}");
    assert_eq!(home.store.count_by_state().await.unwrap(), [(JobState::Succeeded, 8000)]);
}

#[tokio::test]
async fn a_lock_that_another_process_keeps_is_told_with_the_file_and_the_cause() {
    let home = Home::new().await;
    let options = SqliteOptions { busy_timeout: Duration::from_millis(80), ..SqliteOptions::default() };
    let store = SqliteStore::open(&home.path, options).unwrap();
    let keeper = home.connection();
    keeper.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let error = store.enqueue_many(&[job("a")]).await.unwrap_err();
    assert!(begun.elapsed() >= options.busy_timeout);
    assert!(matches!(&error, StoreError::Unavailable { .. }), "{error:?}");
    let words = error.chain();
    assert!(
        words.contains("milepost.db") && words.contains("another process keeps the file locked"),
        "{words}"
    );
    keeper.execute_batch("ROLLBACK").unwrap();
    store.enqueue_many(&[job("a")]).await.unwrap();
}

#[tokio::test]
async fn reads_go_on_while_another_process_writes() {
    let home = Home::new().await;
    home.store.enqueue_many(&[job("a")]).await.unwrap();
    let keeper = home.connection();
    keeper.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(home.store.count_by_state().await.unwrap(), [(JobState::Pending, 1)]);
}

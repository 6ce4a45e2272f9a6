//! Workers whose lease ran out lose what they held.

use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::finish::Finished;
use milepost_core::port::{AdminStore, MaintenanceStore, Operation, WorkerStore};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::fixture::{HOUR, Home, assert_told, claim, enqueue, finish, job, state, success, worker};

const LEASE: Duration = Duration::from_millis(60);

#[tokio::test]
async fn a_lost_lease_reschedules_fails_or_stops_what_the_worker_held() {
    let home = Home::new().await;
    let store = &home.store;
    let retried = enqueue(store, job("a")).await;
    let spent = enqueue(store, job("a").max_attempts(1)).await;
    let canceled = enqueue(store, job("a")).await;
    let worker_id = worker(store, &["a"], LEASE).await;
    let runs = claim(store, worker_id, &["a"], 10).await;
    assert_eq!(runs.len(), 3);
    let cancel = Operation::new(Verb::Cancel).grace(HOUR);
    store.operate(canceled, &cancel).await.unwrap();
    let delay = |_: &str, attempt: u32| Duration::from_millis(u64::from(attempt));
    assert!(store.rescue_expired(10, &delay).await.unwrap().is_empty());

    tokio::time::sleep(LEASE + Duration::from_millis(20)).await;
    let heartbeat = store.heartbeat(worker_id).await;
    assert!(matches!(heartbeat, Err(StoreError::WorkerLost(lost)) if lost == worker_id));
    let mut rescued = Vec::new();
    // At most two jobs a call.
    for expected in [2, 1, 0] {
        let some = store.rescue_expired(2, &delay).await.unwrap();
        assert_eq!(some.len(), expected);
        rescued.extend(some);
    }
    let verb_of = |id| rescued.iter().find(|one| one.run.job == id).unwrap().verb;
    assert_eq!(verb_of(retried), Verb::Retry);
    assert_eq!(verb_of(spent), Verb::Fail);
    assert_eq!(verb_of(canceled), Verb::Cancel);
    assert_eq!(state(store, spent).await, JobState::Failed);
    for run in runs {
        assert_eq!(
            finish(store, worker_id, run.run, success()).await,
            Finished::Fenced
        );
        assert_told(store, run.run.job).await;
    }
    let history = store.history(retried).await.unwrap();
    assert_eq!(history.last().unwrap().error_code.as_deref(), Some("lease_lost"));
    assert!(store.workers().await.unwrap()[0].died);
}

#[tokio::test]
async fn a_worker_whose_lease_ran_out_gets_no_jobs() {
    let home = Home::new().await;
    enqueue(&home.store, job("a")).await;
    let worker = worker(&home.store, &["a"], Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let claim = milepost_core::claim::Claim {
        worker,
        claim_id: 1,
        queues: vec!["default".to_owned()],
        kinds: vec!["a".to_owned()],
        limit: 1,
    };
    let refused = home.store.claim(&claim).await;
    assert!(matches!(refused, Err(StoreError::WorkerLost(_))));
}

#[tokio::test]
async fn what_a_worker_left_behind_when_it_retired_is_taken_back() {
    let home = Home::new().await;
    let store = &home.store;
    let id = enqueue(store, job("a")).await;
    let worker = worker(store, &["a"], HOUR).await;
    claim(store, worker, &["a"], 1).await;
    assert_eq!(store.held(worker).await.unwrap()[0].run.job, id);
    store.retire_worker(worker).await.unwrap();
    let rescued = store.rescue_expired(10, &|_, _| Duration::ZERO).await.unwrap();
    assert_eq!(rescued.len(), 1);
    assert_eq!(state(store, id).await, JobState::RetryWait);
}

//! Jobs of a group run one at a time.

use std::time::Duration;

use milepost_core::finish::{End, Finished};
use milepost_core::job::{Priority, StartAt};
use milepost_core::listing::Waiting;
use milepost_core::port::{AdminStore, MaintenanceStore, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::fixture::{
    HOUR, Home, assert_told, claim, enqueue, failure, finish, job, retry, state, success, worker,
};

#[tokio::test]
async fn a_slot_goes_to_the_next_by_priority_then_due_time_when_its_holder_ends() {
    let home = Home::new().await;
    let store = &home.store;
    let first = enqueue(store, job("a").group("g")).await;
    let last = enqueue(
        store,
        job("a").group("g").priority(Priority::try_from(4).unwrap()),
    )
    .await;
    let second = enqueue(
        store,
        job("a")
            .group("g")
            .start(StartAt::After(Duration::from_millis(1))),
    )
    .await;
    let waiting = store.job(second).await.unwrap().unwrap().waiting_for;
    let group = Waiting::Group {
        group: "g".to_owned(),
        holder: Some(first),
    };
    assert_eq!(waiting, Some(group));

    let worker = worker(store, &["a"], HOUR).await;
    for expected in [first, second, last] {
        tokio::time::sleep(Duration::from_millis(3)).await;
        let claimed = claim(store, worker, &["a"], 10).await;
        assert_eq!(
            claimed.iter().map(|job| job.run.job).collect::<Vec<_>>(),
            [expected]
        );
        assert_eq!(
            finish(store, worker, claimed[0].run, success()).await,
            Finished::Accepted
        );
    }
    for job in [first, second, last] {
        assert_told(store, job).await;
    }
}

#[tokio::test]
async fn a_job_that_waits_for_its_next_attempt_keeps_its_slot() {
    let home = Home::new().await;
    let store = &home.store;
    let first = enqueue(store, job("a").group("g")).await;
    let second = enqueue(store, job("a").group("g")).await;
    let worker = worker(store, &["a"], HOUR).await;
    let run = claim(store, worker, &["a"], 10).await[0].run;
    finish(store, worker, run, retry(Duration::ZERO)).await;
    assert_eq!(state(store, second).await, JobState::Blocked);
    let run = claim(store, worker, &["a"], 10).await[0].run;
    assert_eq!(run.job, first);
    finish(store, worker, run, End::Fail { failure: failure() }).await;
    assert_eq!(state(store, second).await, JobState::Pending);

    let back = Operation::new(Verb::RetryNow);
    store.operate(first, &back).await.unwrap();
    assert_eq!(state(store, first).await, JobState::Blocked);
    store
        .operate(second, &Operation::new(Verb::Cancel))
        .await
        .unwrap();
    assert_eq!(state(store, first).await, JobState::Pending);
    assert_told(store, first).await;
    assert_told(store, second).await;
}

#[tokio::test]
async fn a_waiter_that_is_canceled_does_not_free_the_slot_of_the_holder() {
    let home = Home::new().await;
    let store = &home.store;
    enqueue(store, job("a").group("g")).await;
    let second = enqueue(store, job("a").group("g")).await;
    let third = enqueue(store, job("a").group("g")).await;
    store
        .operate(second, &Operation::new(Verb::Cancel))
        .await
        .unwrap();
    assert_eq!(state(store, third).await, JobState::Blocked);
    assert_eq!(store.fill_groups().await.unwrap(), 0);
    home.connection().execute("DELETE FROM group_slot", ()).unwrap();
    assert_eq!(store.fill_groups().await.unwrap(), 1);
    assert_eq!(state(store, third).await, JobState::Pending);
}

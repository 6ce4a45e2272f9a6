//! Notifications that checking the store is worthwhile.

use std::time::{Duration, Instant};

use milepost_core::event::{Begin, Changes};
use milepost_core::job::StartAt;
use milepost_core::port::{AdminStore, IntakeStore, Operation, RelayStore, Wake, WakeStream, WorkerStore};
use milepost_core::transition::Verb;
use milepost_testkit::wait;
use tokio::time::timeout;

use crate::store::fixture::{HOUR, Home, claim, enqueue, finish, job, success, worker};

/// How long a notification may take on a busy machine.
const SOON: Duration = wait::LIMIT;

/// Consumes pending notifications.
async fn settle(wakes: &mut Box<dyn WakeStream>) {
    while timeout(Duration::from_millis(300), wakes.next()).await.is_ok() {}
}

#[tokio::test]
async fn an_enqueue_wakes_waiters_of_this_process_and_of_others() {
    let home = Home::new().await;
    let other = home.neighbour();
    let mut here = home.store.wakes().await.unwrap();
    let mut there = other.wakes().await.unwrap();
    settle(&mut here).await;
    settle(&mut there).await;
    home.store.enqueue_many(&[job("a")]).await.unwrap();
    assert_eq!(timeout(SOON, here.next()).await, Ok(Wake::Ready));
    assert_eq!(timeout(SOON, there.next()).await, Ok(Wake::Ready));
}

#[tokio::test]
async fn a_job_that_becomes_due_wakes_waiters() {
    let home = Home::new().await;
    let due = worker(&home.store, &["a"], HOUR).await;
    let mut wakes = home.store.wakes().await.unwrap();
    let delay = Duration::from_millis(150);
    let begun = Instant::now();
    enqueue(&home.store, job("a").start(StartAt::After(delay))).await;
    let woken = async {
        loop {
            assert_eq!(wakes.next().await, Wake::Ready);
            if !claim(&home.store, due, &["a"], 1).await.is_empty() {
                break;
            }
        }
    };
    timeout(SOON, woken).await.expect("a notification arrives when the job is due");
    assert!(begun.elapsed() >= Duration::from_millis(140));
}

#[tokio::test]
async fn a_job_that_becomes_due_for_others_wakes_nobody_here() {
    let home = Home::new().await;
    worker(&home.store, &["a"], HOUR).await;
    let left = worker(&home.store, &["b"], HOUR).await;
    home.store.retire_worker(left).await.unwrap();
    let soon = StartAt::After(Duration::from_secs(3));
    let mut wakes = home.store.wakes().await.unwrap();
    let other = home.neighbour();
    worker(&other, &["b"], HOUR).await;
    let mut theirs = other.wakes().await.unwrap();
    enqueue(&home.store, job("b").start(soon)).await;
    enqueue(&home.store, job("a").queue("elsewhere").start(soon)).await;
    // Earlier notifications may arrive late on a busy machine.
    tokio::time::sleep(Duration::from_secs(1)).await;
    settle(&mut wakes).await;
    settle(&mut theirs).await;
    assert_eq!(timeout(SOON, theirs.next()).await, Ok(Wake::Ready), "workers that serve it are notified");
    assert!(timeout(Duration::from_millis(50), wakes.next()).await.is_err(), "no worker here serves it");
}

#[tokio::test]
async fn a_request_to_stop_wakes_waiters_of_this_process_and_of_others() {
    let home = Home::new().await;
    let other = home.neighbour();
    let id = enqueue(&home.store, job("a")).await;
    let worker = worker(&home.store, &["a"], HOUR).await;
    claim(&home.store, worker, &["a"], 1).await;
    let mut here = home.store.wakes().await.unwrap();
    let mut there = other.wakes().await.unwrap();
    settle(&mut here).await;
    settle(&mut there).await;
    let cancel = Operation::new(Verb::Cancel).grace(HOUR);
    home.store.operate(id, &cancel).await.unwrap();
    assert_eq!(timeout(SOON, here.next()).await, Ok(Wake::Stop));
    assert_eq!(timeout(SOON, there.next()).await, Ok(Wake::Stop));
}

#[tokio::test]
async fn a_change_that_somebody_wants_wakes_who_follows_the_log() {
    let home = Home::new().await;
    let other = home.neighbour();
    home.store.subscribe("audit", Begin::Beginning).await.unwrap();
    let changes = Changes { kinds: vec!["a".to_owned()], dags: Vec::new() };
    assert!(home.store.record_changes("audit", &changes).await.unwrap());
    let worker = worker(&home.store, &["a", "b"], HOUR).await;
    enqueue(&home.store, job("a")).await;
    enqueue(&home.store, job("b")).await;
    let (mut here, mut there) = (home.store.log_wakes(), other.log_wakes());
    settle(&mut here).await;
    settle(&mut there).await;
    let held = claim(&home.store, worker, &["a"], 1).await;
    assert_eq!(timeout(SOON, here.next()).await, Ok(Wake::Ready), "a claim");
    assert_eq!(timeout(SOON, there.next()).await, Ok(Wake::Ready), "a claim elsewhere");
    settle(&mut here).await;
    finish(&home.store, worker, held[0].run, success()).await;
    assert_eq!(timeout(SOON, here.next()).await, Ok(Wake::Ready), "an end");
    settle(&mut here).await;
    assert_eq!(claim(&home.store, worker, &["b"], 1).await.len(), 1);
    assert!(timeout(Duration::from_millis(50), here.next()).await.is_err(), "no subscription requests these");
}

//! What operators see.

use milepost_core::job::{Priority, StartAt};
use milepost_core::listing::{JobFilter, Waiting};
use milepost_core::port::{AdminStore, Operation, WorkerStore};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::fixture::{HOUR, Home, claim, claim_as, enqueue, finish, job, success, worker};

#[tokio::test]
async fn lists_show_live_and_ended_jobs_newest_first_in_pages() {
    let home = Home::new().await;
    let store = &home.store;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(enqueue(store, job("a").key(format!("k{n}"))).await);
    }
    let worker = worker(store, &["a"], HOUR).await;
    let run = claim(store, worker, &["a"], 1).await[0].run;
    finish(store, worker, run, success()).await;
    store.operate(ids[3], &Operation::new(Verb::Skip)).await.unwrap();

    let mut seen = Vec::new();
    let mut filter = JobFilter {
        limit: 2,
        ..JobFilter::default()
    };
    loop {
        let page = store.jobs(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        seen.extend(page.iter().map(|row| row.id));
    }
    assert_eq!(seen, ids.iter().rev().copied().collect::<Vec<_>>());

    let only = |state, key: Option<&str>| JobFilter {
        state,
        key: key.map(str::to_owned),
        ..JobFilter::default()
    };
    let skipped = store.jobs(&only(Some(JobState::Skipped), None)).await.unwrap();
    assert_eq!(skipped.iter().map(|row| row.id).collect::<Vec<_>>(), [ids[3]]);
    let keyed = store.jobs(&only(None, Some("k0"))).await.unwrap();
    assert_eq!((keyed[0].id, keyed[0].state), (ids[0], JobState::Succeeded));
    assert!(keyed[0].ended_at.is_some());
}

#[tokio::test]
async fn a_job_that_does_not_run_says_why() {
    let home = Home::new().await;
    let store = &home.store;
    let id = enqueue(store, job("a")).await;
    let why = async |id| store.job(id).await.unwrap().unwrap().waiting_for;
    let no_worker = Waiting::NoWorker {
        kind: "a".to_owned(),
        queue: "default".to_owned(),
    };
    assert_eq!(why(id).await, Some(no_worker));
    let worker = worker(store, &["a"], HOUR).await;
    assert_eq!(why(id).await, Some(Waiting::Turn));
    assert!(store.pause_queue("default", true).await.unwrap());
    assert!(!store.pause_queue("default", true).await.unwrap());
    assert!(claim(store, worker, &["a"], 1).await.is_empty());
    assert!(matches!(why(id).await, Some(Waiting::PausedQueue { .. })));
    assert!(store.queues().await.unwrap()[0].paused_at.is_some());
    assert!(store.pause_queue("default", false).await.unwrap());
    let later = enqueue(store, job("a").start(StartAt::After(HOUR))).await;
    assert!(matches!(why(later).await, Some(Waiting::Time { .. })));
    claim(store, worker, &["a"], 1).await;
    assert_eq!(why(id).await, None);
}

#[tokio::test]
async fn kinds_take_turns_within_a_priority_and_higher_priorities_go_first() {
    let home = Home::new().await;
    let store = &home.store;
    for _ in 0..6 {
        enqueue(store, job("a")).await;
    }
    enqueue(store, job("b")).await;
    enqueue(store, job("b")).await;
    let first = Priority::try_from(1).unwrap();
    enqueue(store, job("b").priority(first)).await;
    let worker = worker(store, &["a", "b"], HOUR).await;
    let mut kinds = Vec::new();
    for claim_id in 0..4 {
        let claimed = claim_as(store, worker, claim_id, &["a", "b"], 1).await;
        kinds.push(claimed[0].kind.clone());
    }
    assert_eq!(kinds[0], "b", "the higher priority");
    kinds[1..].sort();
    assert!(kinds[1..].contains(&"a".to_owned()) && kinds[1..].contains(&"b".to_owned()));
    let rest = claim_as(store, worker, 9, &["a", "b"], 100).await;
    assert_eq!(rest.len(), 5);
    assert_eq!(store.held(worker).await.unwrap().len(), 9);
}

//! Retention by several workers, beside running jobs, and after crashes.

use super::retention::{NOTHING_KEPT, by_hand, is_gone, let_time_pass, prune, succeeded};
use super::runtime;
use futures::future::join_all;
use milepost::{JobError, Outcome};
use milepost_core::error::StoreError;
use milepost_core::event::listing::EventFilter;
use milepost_core::event::{Aggregate, Begin, NewEvent};
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::port::Operation;
use milepost_core::retention::{Keep, Pace, Pruned, RetentionPolicy};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::scene::Scene;
use milepost_testkit::wait;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub async fn a_pruner_that_dies_between_batches_leaves_whole_jobs(scene: Scene) {
    let mut jobs = Vec::new();
    for n in 0..10 {
        jobs.push(succeeded(&scene, &n.to_string()).await);
    }
    let_time_pass(&scene).await;
    let mut pruned = scene.store.prune(&NOTHING_KEPT, by_hand(3)).await.unwrap();
    while pruned.what.succeeded == 0 {
        pruned = scene.store.prune(&NOTHING_KEPT, by_hand(3)).await.unwrap();
    }
    // A store may also limit the time of a call, so a call deletes fewer jobs on a busy machine.
    assert!(pruned.more && pruned.what.succeeded <= 3, "{pruned:?}");
    let mut gone = 0;
    for (n, &job) in jobs.iter().enumerate() {
        let duplicate = scene.try_enqueue(Scene::job().key(n.to_string())).await.unwrap().duplicate;
        if is_gone(&scene, job).await {
            gone += 1;
            assert!(!duplicate, "the key is free");
        } else {
            assert!(duplicate, "the key is taken");
            scene.assert_history_folds(job).await;
        }
    }
    assert_eq!(gone, pruned.what.succeeded);
}

pub async fn a_rerun_beside_a_pruner_wins_or_loses_cleanly(scene: Scene) {
    let mut jobs = Vec::new();
    for n in 0..60 {
        jobs.push(succeeded(&scene, &n.to_string()).await);
    }
    let_time_pass(&scene).await;
    let pruner = {
        let scene = scene.clone();
        tokio::spawn(async move {
            let mut sum = 0;
            loop {
                let pruned = scene.store.prune(&NOTHING_KEPT, by_hand(4)).await.unwrap();
                sum += pruned.what.succeeded;
                if !pruned.more {
                    return sum;
                }
            }
        })
    };
    // In reverse order, so that they meet the pruner, which starts with the oldest jobs.
    let reruns = jobs.iter().rev().map(|&job| {
        let scene = scene.clone();
        tokio::spawn(async move { (job, scene.operate(job, Operation::new(Verb::Rerun)).await) })
    });
    let mut won = 0;
    for rerun in join_all(reruns).await {
        match rerun.unwrap() {
            (job, Ok(_)) => {
                won += 1;
                assert_eq!(scene.state(job).await, JobState::Pending);
                scene.assert_history_folds(job).await;
            }
            (job, Err(StoreError::NoSuchJob(_))) => assert!(is_gone(&scene, job).await),
            (job, Err(error)) => panic!("rerun of {job}: {error:?}"),
        }
    }
    let lost = pruner.await.unwrap() + prune(&scene, &NOTHING_KEPT).await.what.succeeded;
    assert_eq!(won + lost, 60, "each job is either rerun or deleted");
    assert_eq!(scene.claim(100).await.len() as u64, won);
}

pub async fn many_pruners_forget_each_job_once(scene: Scene) {
    let jobs: Vec<_> = (0..300).map(|n| Scene::job().key(n.to_string())).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    for job in scene.claim(300).await {
        scene.finish(&job, End::Succeed { result: None }).await;
    }
    let_time_pass(&scene).await;
    let forgotten = Arc::new(AtomicU64::new(0));
    let pruners = (0..4).map(|_| {
        let (scene, forgotten) = (scene.clone(), forgotten.clone());
        tokio::spawn(async move {
            let (mut sum, mut after) = (Pruned::default(), 0);
            // While another pruner processes a batch, a call may report that no rows are left. Therefore continue until all are deleted, and then a
            // few times more.
            while after < 10 {
                after += u32::from(forgotten.load(Ordering::SeqCst) >= 300);
                let pruned = scene.store.prune(&NOTHING_KEPT, by_hand(20)).await.unwrap();
                forgotten.fetch_add(pruned.what.succeeded, Ordering::SeqCst);
                sum += pruned;
            }
            sum
        })
    });
    let mut sum = Pruned::default();
    for pruned in
        tokio::time::timeout(wait::LIMIT, join_all(pruners)).await.expect("timed out before all were deleted")
    {
        sum += pruned.unwrap();
    }
    assert_eq!(sum.what.succeeded, 300);
    assert_eq!(
        sum.rows,
        300 * (1 + 1 + 1 + 3),
        "one end, one job, one key and three history entries per job"
    );
}

pub async fn pruners_that_rest_take_turns(scene: Scene) {
    for n in 0..4 {
        succeeded(&scene, &n.to_string()).await;
    }
    let_time_pass(&scene).await;
    let in_turn = Pace { limit: 3, rest: 1_000_000 };
    // A store may also limit the time of a call, so on a busy machine the first calls may delete nothing.
    let mut first = scene.store.prune(&NOTHING_KEPT, in_turn).await.unwrap();
    while first.rows == 0 {
        first = scene.store.prune(&NOTHING_KEPT, in_turn).await.unwrap();
    }
    let first = first.what.succeeded;
    assert!((1..=3).contains(&first), "{first} jobs were deleted");
    assert_eq!(
        scene.store.prune(&NOTHING_KEPT, in_turn).await.unwrap(),
        Pruned::default(),
        "the second call rests and deletes nothing"
    );
    assert_eq!(prune(&scene, &NOTHING_KEPT).await.what.succeeded, 4 - first);
}

pub async fn workers_forget_what_is_over(scene: Scene) {
    let done = succeeded(&scene, "k").await;
    let (dead, _) = scene.job_in(JobState::Failed).await;
    let_time_pass(&scene).await;
    let worker = runtime::builder(scene.store.clone())
        .options(|options| options.retention = NOTHING_KEPT)
        .start()
        .await
        .unwrap();
    wait::until("both jobs are deleted", || async {
        is_gone(&scene, done).await && is_gone(&scene, dead).await
    })
    .await;
    wait::until("both deletions are counted", || async { worker.stats().pruned == 2 }).await;
    assert_eq!(worker.stats().dead_letters_pruned, 1);
    worker.shutdown().await;
}

pub async fn workers_forget_events_that_every_subscription_has_gone_past(scene: Scene) {
    let store = &scene.store;
    let event = || NewEvent::new(Aggregate::new("order", "1"), "order.paid", &()).unwrap();
    store.emit_many(&[event(), event()]).await.unwrap();
    store.subscribe("s", Begin::Beginning).await.unwrap();
    let_time_pass(&scene).await;
    let policy = RetentionPolicy { events: Keep::For(Duration::ZERO), ..NOTHING_KEPT };
    while store.prune_log(Duration::ZERO).await.unwrap().is_some() {}
    let logged =
        async || store.events(&EventFilter { limit: 9, ..EventFilter::default() }).await.unwrap().len();
    assert_eq!(logged().await, 2, "the subscription has not read the events yet");
    store.remove_subscription("s").await.unwrap();
    let worker = runtime::builder(scene.store.clone())
        .options(|options| options.retention = policy)
        .start()
        .await
        .unwrap();
    wait::until("all are deleted", || async { logged().await == 0 }).await;
    worker.shutdown().await;
    assert_eq!(store.emit(&event()).await.unwrap().sequence, 3);
}

pub async fn retention_under_load_loses_nothing(scene: Scene) {
    const JOBS: usize = 400;
    let runs: Arc<Mutex<HashMap<JobId, u32>>> = Arc::default();
    let seen = runs.clone();
    let worker = runtime::start(scene.store.clone(), move |context| {
        *seen.lock().unwrap().entry(context.run().job).or_default() += 1;
        async move {
            match (context.attempt(), context.job().max_attempts) {
                (1, _) => Err(JobError::retryable("weather", "rain")),
                (_, 2) => Err(JobError::retryable("weather", "still")),
                _ => Ok(Outcome::Done),
            }
        }
    })
    .await;
    let policy = RetentionPolicy { failed: Keep::Forever, ..NOTHING_KEPT };
    let pruner = {
        let scene = scene.clone();
        tokio::spawn(async move {
            let mut sum = 0;
            while sum < JOBS as u64 / 2 {
                let_time_pass(&scene).await;
                sum += scene.store.prune(&policy, by_hand(20)).await.unwrap().what.succeeded;
            }
            sum
        })
    };
    let mut jobs = Vec::new();
    for n in 0..JOBS {
        let attempts = if n % 2 == 0 { 2 } else { 3 };
        jobs.push(scene.enqueue(runtime::job().max_attempts(attempts).key(n.to_string())).await);
    }
    let forgotten = tokio::time::timeout(wait::LIMIT, pruner).await.expect("timed out");
    assert_eq!(forgotten.unwrap(), JOBS as u64 / 2, "every second job succeeded and was deleted");
    for (n, &job) in jobs.iter().enumerate() {
        if n % 2 == 0 {
            scene.until(job, JobState::Failed).await;
            scene.assert_history_folds(job).await;
        } else {
            assert!(is_gone(&scene, job).await);
        }
    }
    worker.shutdown().await;
    let runs = runs.lock().unwrap();
    assert!(jobs.iter().all(|job| runs.get(job) == Some(&2)), "each job ran exactly twice");
}

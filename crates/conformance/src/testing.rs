//! Test support for applications: draining, waiting jobs, and attempts without a store.

use std::sync::Arc;
use std::time::Duration;

use milepost::testing::{self, Attempt, End};
use milepost::{Context, Job, JobError, KindOptions, NewJob, Outcome, RetryPolicy, StartAt, Worker};
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::runtime::{KIND, builder, job};
use milepost_testkit::scene::{LONG, Scene};

/// A job that enqueues smaller ones.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Tree {
    height: u32,
}

impl Job for Tree {
    const KIND: &'static str = "testing.tree";
}

pub async fn a_drain_runs_what_is_ready_and_what_that_makes_ready(scene: Scene) {
    let store = scene.store.clone();
    let worker = builder(scene.store.clone()).handle(move |tree: Tree, _: Context| {
        let store = store.clone();
        async move {
            for _ in 0..if tree.height > 0 { 2 } else { 0 } {
                store.enqueue(&Tree { height: tree.height - 1 }.to_job()?).await?;
            }
            Ok(())
        }
    });
    scene.enqueue(Tree { height: 5 }.to_job().unwrap()).await;
    let later = scene.enqueue(Tree { height: 0 }.to_job().unwrap().start(StartAt::After(LONG))).await;
    assert_eq!(worker.drain().await.unwrap().succeeded, 63);
    assert_eq!(scene.state(later).await, JobState::Pending, "the job is not due yet");
    assert!(scene.store.workers().await.unwrap().iter().all(|view| !view.died && view.running == 0));
    assert_eq!(worker.drain().await.unwrap().claimed, 0, "no job is left");
}

pub async fn a_drain_runs_all_of_a_group(scene: Scene) {
    let worker = builder(scene.store.clone()).handle(|_: Tree, _: Context| async { Ok(()) });
    for _ in 0..5 {
        scene.enqueue(Tree { height: 0 }.to_job().unwrap().group("one at a time")).await;
    }
    assert_eq!(worker.drain().await.unwrap().succeeded, 5);
}

pub async fn a_drain_leaves_retries_that_wait(scene: Scene) {
    let worker =
        builder(scene.store.clone()).handle_kind(KIND, RetryPolicy::fixed(LONG), |context| async move {
            if context.attempt() == 1 {
                Err(JobError::retryable("weather", "rain"))
            } else {
                Ok(Outcome::Done)
            }
        });
    let job = scene.enqueue(job()).await;
    assert_eq!(worker.drain().await.unwrap().retried, 1);
    assert_eq!(scene.state(job).await, JobState::RetryWait);
    scene.operate(job, Operation::new(Verb::RetryNow)).await.unwrap();
    assert_eq!(worker.drain().await.unwrap().succeeded, 1);
    scene.assert_history_folds(job).await;
}

pub async fn a_drain_waits_for_what_runs(scene: Scene) {
    let (gate, store) = (Arc::new(Semaphore::new(0)), scene.store.clone());
    let of_handler = gate.clone();
    let worker = builder(scene.store.clone()).handle(move |tree: Tree, _: Context| {
        let (gate, store) = (of_handler.clone(), store.clone());
        async move {
            if tree.height > 0 {
                gate.acquire().await?.forget();
                store.enqueue(&Tree { height: 0 }.to_job()?).await?;
            }
            Ok(())
        }
    });
    let slow = scene.enqueue(Tree { height: 1 }.to_job().unwrap()).await;
    let drain = tokio::spawn(async move { worker.drain().await });
    scene.until(slow, JobState::Running).await;
    // A claim finds nothing while the slow job runs; that must not end the drain.
    let other = scene.enqueue(Tree { height: 0 }.to_job().unwrap()).await;
    scene.until(other, JobState::Succeeded).await;
    assert!(!drain.is_finished());
    gate.add_permits(1);
    assert_eq!(drain.await.unwrap().unwrap().succeeded, 3);
}

pub async fn a_drain_that_is_dropped_hands_its_jobs_back(scene: Scene) {
    let worker =
        builder(scene.store.clone()).handle_kind(KIND, KindOptions::default(), |_| std::future::pending());
    let job = scene.enqueue(job()).await;
    tokio::select! {
        drained = worker.drain() => panic!("drained although its job has not ended: {drained:?}"),
        () = scene.until(job, JobState::Running) => {}
    }
    scene.until(job, JobState::Pending).await;
    assert_eq!(scene.view(job).await.row.attempt, 0, "the attempt is not counted");
}

pub async fn what_waits_is_found_with_its_payload(scene: Scene) {
    let jobs = [3, 1, 2].map(|height| Tree { height }.to_job().unwrap());
    let later = jobs[1].clone().start(StartAt::After(LONG)).key("later");
    scene.store.enqueue_many(&[jobs[0].clone(), later, jobs[2].clone()]).await.unwrap();
    scene.enqueue(job()).await;
    scene.operate(jobs[2].id, Operation::new(Verb::Cancel)).await.unwrap();
    let waiting = testing::waiting::<Tree>(&*scene.store).await.unwrap();
    let found: Vec<_> = waiting.iter().map(|(view, tree)| (view.row.key.as_deref(), tree.height)).collect();
    assert_eq!(found, [(None, 3), (Some("later"), 1)]);
}

async fn behave(context: Context) -> Result<Outcome, JobError> {
    let how: Value = serde_json::from_str(&context.job().payload)?;
    match how["do"].as_str().unwrap_or_default() {
        "result" => Outcome::result(&json!({ "sum": 7 })),
        "no json" => Ok(Outcome::Result("{".to_owned())),
        "fail" => Err(JobError::fatal("broken", "for ever")),
        "retry" => Err(JobError::retryable("weather", "rain").after(LONG * 2)),
        "convert" => Err("7 apples".parse::<i64>().unwrap_err().into()),
        "panic" => panic!("on purpose"),
        "snooze" => Ok(context.snooze(LONG)),
        "sleep" => std::future::pending().await,
        "lie" => Ok(Outcome::Completed),
        _ => Ok(Outcome::Done),
    }
}

pub async fn an_attempt_without_a_store_ends_as_one_with_it(scene: Scene) {
    let options = KindOptions {
        timeout: Some(Duration::from_millis(50)),
        ..RetryPolicy { jitter: 0.0, ..RetryPolicy::fixed(LONG) }.into()
    };
    let worker = Worker::builder(scene.store.clone()).handle_kind(KIND, options, behave);
    for (how, verb) in [
        ("nothing", Verb::Succeed),
        ("result", Verb::Succeed),
        ("no json", Verb::Fail),
        ("fail", Verb::Fail),
        ("retry", Verb::Retry),
        ("convert", Verb::Retry),
        ("panic", Verb::Retry),
        ("snooze", Verb::Yield),
        ("sleep", Verb::Retry),
        ("lie", Verb::Retry),
    ] {
        let job = NewJob::new(KIND, &json!({ "do": how })).unwrap();
        let ran = Attempt::of(job.clone()).run_kind(options, behave).await;
        assert_eq!(ran.end.verb(), verb, "{how}");

        let job = scene.enqueue(job).await;
        worker.drain().await.unwrap();
        let history = scene.history(job).await;
        let end = history.last().expect("the history has no end");
        let failure = ran.failure().map(|failure| (failure.code.as_str(), failure.message.as_str()));
        let stored = end.error_code.as_deref().zip(end.error_message.as_deref());
        assert_eq!((end.verb, stored), (verb, failure), "{how}");
        if let End::Retry { delay, .. } | End::Yield { delay, .. } = ran.end {
            let wait = end.ready_at.expect("the job has no next start").duration_since(end.at);
            assert_eq!(wait.unsigned_abs(), delay, "{how}");
        }
        let result =
            scene.view(job).await.result.map(|text| serde_json::from_str::<Value>(text.get()).unwrap());
        assert_eq!(ran.result::<Value>().unwrap(), result, "{how}");
    }
}

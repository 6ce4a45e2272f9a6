//! Handlers in a worker: their results and the resulting states of jobs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use milepost::{Context, Job, JobError, KindOptions, Outcome, RetryPolicy, Worker, WorkerBuilder};
use milepost_core::history::HistoryEntry;
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{Operation, Store};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::Progress;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use milepost_testkit::scene::Scene;
use milepost_testkit::wait;

/// The kind of most jobs in these tests; the scene's worker does not serve it.
pub const KIND: &str = "runtime";

/// Returns the builder of a worker that renews its lease only every 15 seconds: requests that arrive sooner did not depend on a heartbeat.
pub fn builder(store: Arc<dyn Store>) -> WorkerBuilder {
    Worker::builder(store).options(|options| {
        options.lease = Duration::from_secs(60);
        options.poll_interval = Duration::from_millis(200);
        options.drain = Duration::from_millis(300);
        options.hand_back_grace = Duration::from_millis(100);
        options.concurrency = 8;
    })
}

/// Starts a worker with this handler; failures are retried immediately.
pub async fn start<F, Fut>(store: Arc<dyn Store>, handler: F) -> Worker
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
{
    let soon = RetryPolicy::fixed(Duration::from_millis(10));
    builder(store).handle_kind(KIND, soon, handler).start().await.expect("started")
}

/// Returns a job of [`KIND`].
pub fn job() -> NewJob {
    NewJob::new(KIND, &json!({})).expect("JSON")
}

async fn the(scene: &Scene, job: JobId, verb: Verb) -> HistoryEntry {
    let mut found: Vec<_> = scene.history(job).await.into_iter().filter(|entry| entry.verb == verb).collect();
    assert_eq!(found.len(), 1, "one {verb}: {found:#?}");
    found.remove(0)
}

pub async fn a_panic_is_recorded_and_tried_again(scene: Scene) {
    let worker = start(scene.store.clone(), |context| async move {
        assert!(context.attempt() > 1, "panicked on purpose");
        Ok(Outcome::Done)
    })
    .await;
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Succeeded).await;
    let failed = the(&scene, job, Verb::Retry).await;
    assert_eq!(failed.error_code.as_deref(), Some("panic"));
    assert!(failed.error_message.unwrap().contains("panicked on purpose"));
    assert_eq!(worker.stats().panicked, 1);
    scene.assert_history_folds(job).await;
    worker.shutdown().await;
}

pub async fn an_attempt_over_its_time_is_tried_again(scene: Scene) {
    let worker = start(scene.store.clone(), |context| async move {
        if context.attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::Done)
    })
    .await;
    // The second attempt completes on its first poll, so it cannot exceed the timeout.
    let job = scene.enqueue(job().timeout(Duration::from_millis(50))).await;
    scene.until(job, JobState::Succeeded).await;
    assert_eq!(the(&scene, job, Verb::Retry).await.error_code.as_deref(), Some("timeout"));
    worker.shutdown().await;
}

pub async fn a_handler_whose_time_is_over_is_asked_to_stop_before_it_is_dropped(scene: Scene) {
    let options = KindOptions {
        timeout: Some(Duration::from_millis(50)),
        stop_grace: Duration::from_secs(60),
        ..RetryPolicy::fixed(Duration::from_millis(10)).into()
    };
    let handler = |context: Context| async move {
        context.cancellation().cancelled().await;
        Ok(if context.attempt() == 1 { Outcome::Stopped } else { Outcome::Done })
    };
    let worker = builder(scene.store.clone()).handle_kind(KIND, options, handler).start().await.unwrap();
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Succeeded).await;
    assert_eq!(the(&scene, job, Verb::Retry).await.error_code.as_deref(), Some("timeout"));
    assert_eq!(scene.view(job).await.row.attempt, 2, "the attempt that timed out is counted");
    scene.assert_history_folds(job).await;
    worker.shutdown().await;
}

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

impl Job for Greet {
    const KIND: &'static str = "runtime.greet";
}

pub async fn a_payload_that_does_not_fit_fails_for_good(scene: Scene) {
    let handler = |greet: Greet, _: Context| async move { Ok(json!({ "hello": greet.name })) };
    let worker = builder(scene.store.clone()).handle(handler).start().await.unwrap();
    let bad = scene.enqueue(NewJob::new(Greet::KIND, &json!({ "name": 7 })).unwrap()).await;
    let good = scene.enqueue(Greet { name: "Ada".to_owned() }.to_job().unwrap()).await;
    scene.until(bad, JobState::Failed).await;
    let failed = the(&scene, bad, Verb::Fail).await;
    assert_eq!((failed.error_code.as_deref(), failed.attempt), (Some("payload"), 1));
    scene.until(good, JobState::Succeeded).await;
    let result = scene.view(good).await.result.expect("stored");
    assert_eq!(serde_json::from_str::<Value>(result.get()).unwrap(), json!({ "hello": "Ada" }));
    worker.shutdown().await;
}

pub async fn a_final_failure_and_spent_attempts_end_in_the_dead_letter(scene: Scene) {
    let worker = start(scene.store.clone(), |context| async move {
        match context.job().max_attempts {
            3 => Err(JobError::retryable("weather", "rain")),
            _ => Err(JobError::fatal("broken", "for ever")),
        }
    })
    .await;
    let spent = scene.enqueue(job().max_attempts(3)).await;
    let hopeless = scene.enqueue(job()).await;
    for (job, code, attempts) in [(spent, "weather", 3), (hopeless, "broken", 1)] {
        scene.until(job, JobState::Failed).await;
        let failed = the(&scene, job, Verb::Fail).await;
        assert_eq!((failed.error_code.as_deref(), failed.attempt), (Some(code), attempts));
    }
    worker.shutdown().await;
}

pub async fn a_snoozed_job_comes_back_with_its_attempt(scene: Scene) {
    let wait = Duration::from_millis(100);
    let worker = start(scene.store.clone(), move |context| async move {
        assert_eq!(context.attempt(), 1);
        Ok(if context.run().token.0 < 3 { context.snooze(wait) } else { Outcome::Done })
    })
    .await;
    let job = scene.enqueue(job().max_attempts(1)).await;
    scene.until(job, JobState::Succeeded).await;
    let history = scene.history(job).await;
    for pair in history.windows(2).filter(|pair| pair[0].verb == Verb::Yield) {
        assert!(pair[1].at >= pair[0].ready_at.unwrap(), "claimed before it was due: {pair:#?}");
    }
    assert_eq!(scene.count(job, Verb::Yield).await, 2);
    worker.shutdown().await;
}

pub async fn progress_and_checkpoint_are_seen_while_the_job_runs(scene: Scene) {
    let gate = Arc::new(Semaphore::new(0));
    let of_handler = gate.clone();
    let worker = start(scene.store.clone(), move |context| {
        let gate = of_handler.clone();
        async move {
            if let Some(row) = context.last_checkpoint::<i64>().await? {
                return Outcome::result(&row);
            }
            context.progress(3, 10, "third".to_owned());
            context.checkpoint(&5).await?;
            gate.acquire().await?.forget();
            Err(JobError::retryable("half", "half way"))
        }
    })
    .await;
    let job = scene.enqueue(job()).await;
    let said = Progress { done: 3, total: Some(10), message: Some("third".to_owned()) };
    wait::until("progress and checkpoint are stored", || async {
        let view = scene.view(job).await;
        view.progress.as_ref() == Some(&said) && view.checkpoint.is_some_and(|row| row.get() == "5")
    })
    .await;
    assert_eq!(scene.state(job).await, JobState::Running);
    gate.add_permits(1);
    scene.until(job, JobState::Succeeded).await;
    assert_eq!(
        scene.view(job).await.result.expect("stored").get(),
        "5",
        "the next attempt continued from the checkpoint"
    );
    worker.shutdown().await;
}

pub async fn a_handler_that_ignores_a_cancel_is_fenced_off_after_its_grace(scene: Scene) {
    let gate = Arc::new(Semaphore::new(0));
    let of_handler = gate.clone();
    let worker = start(scene.store.clone(), move |_| {
        let gate = of_handler.clone();
        async move {
            gate.acquire().await?.forget();
            Ok(Outcome::Done)
        }
    })
    .await;
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Running).await;
    let operation = Operation::new(Verb::Cancel).grace(Duration::from_millis(100));
    scene.operate(job, operation).await.unwrap();
    scene.until(job, JobState::Canceled).await;
    gate.add_permits(1);
    wait::until("the late end is fenced", || async { worker.stats().fenced == 1 }).await;
    assert_eq!(scene.state(job).await, JobState::Canceled);
    scene.assert_history_folds(job).await;
    worker.shutdown().await;
}

pub async fn a_completion_that_was_not_committed_is_tried_again(scene: Scene) {
    let worker = start(scene.store.clone(), |context| async move {
        Ok(if context.attempt() == 1 { Outcome::Completed } else { Outcome::Done })
    })
    .await;
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Succeeded).await;
    assert_eq!(the(&scene, job, Verb::Retry).await.error_code.as_deref(), Some("not_committed"));
    worker.shutdown().await;
}

pub async fn a_worker_that_leaves_hands_long_jobs_back(scene: Scene) {
    let gate = Arc::new(Semaphore::new(0));
    let of_handler = gate.clone();
    let soon = RetryPolicy::fixed(Duration::from_millis(10));
    let worker = builder(scene.store.clone())
        // The long job uses the whole drain time; the short one needs only a moment.
        .options(|options| options.drain = Duration::from_secs(15))
        .handle_kind(KIND, soon, move |context| {
            let gate = of_handler.clone();
            async move {
                match context.job().max_attempts {
                    2 => gate.acquire().await?.forget(),
                    _ => std::future::pending().await,
                }
                Ok(Outcome::Done)
            }
        })
        .start()
        .await
        .unwrap();
    let (short, long) = (scene.enqueue(job().max_attempts(2)).await, scene.enqueue(job()).await);
    wait::until("both run", || async { worker.stats().claimed == 2 }).await;
    let goes_on = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        gate.add_permits(1);
    };
    tokio::join!(worker.shutdown(), goes_on);
    assert_eq!(scene.state(short).await, JobState::Succeeded);
    let row = scene.view(long).await.row;
    assert_eq!((row.state, row.attempt), (JobState::Pending, 0), "the attempt is not counted");
    assert!(scene.store.workers().await.unwrap().iter().all(|view| !view.died && view.running == 0));
}

pub async fn an_error_at_shutdown_does_not_spend_the_attempt(scene: Scene) {
    let worker = start(scene.store.clone(), |context| async move {
        context.cancellation().cancelled().await;
        Err(JobError::retryable("interrupted", "asked to stop"))
    })
    .await;
    let job = scene.enqueue(job()).await;
    wait::until("the job is running", || async { scene.state(job).await == JobState::Running }).await;
    worker.shutdown().await;
    let entry = the(&scene, job, Verb::Yield).await;
    assert_eq!(entry.note.as_deref(), Some("handed back at shutdown"));
    let view = scene.view(job).await;
    assert_eq!((view.row.state, view.row.attempt), (JobState::Pending, 0));
}

pub async fn a_checkpoint_of_a_fenced_run_says_so(scene: Scene) {
    let (fenced, told) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(None)));
    let of_handler = (fenced.clone(), told.clone());
    let worker = start(scene.store.clone(), move |context| {
        let (fenced, told) = of_handler.clone();
        async move {
            fenced.acquire().await?.forget();
            let error =
                context.checkpoint(&1).await.expect_err("the checkpoint of a fenced run was accepted");
            *told.lock().unwrap() = Some((error.code.clone(), context.cancellation().is_cancelled()));
            Err(error)
        }
    })
    .await;
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Running).await;
    scene.operate(job, Operation::new(Verb::Cancel).grace(Duration::from_millis(1))).await.unwrap();
    scene.until(job, JobState::Canceled).await;
    fenced.add_permits(1);
    wait::until("the handler received the error", || async { told.lock().unwrap().is_some() }).await;
    assert_eq!(*told.lock().unwrap(), Some(("fenced".to_owned(), true)));
    worker.shutdown().await;
}

//! Notifications of new work and of stop requests, for stores that provide them.

use std::time::Duration;

use milepost::{Outcome, RetryPolicy};
use milepost_core::port::{Operated, Operation, Wake};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::runtime;
use milepost_testkit::scene::{KIND, LONG, Scene};
use milepost_testkit::wait;

/// Checks that a new job wakes a sleeper. The store's sleepers must not poll during the test.
pub async fn a_job_wakes_a_sleeper(scene: Scene) {
    let mut wakes = scene.store.wakes().await.unwrap();
    // Discard the wake-ups that listening causes at its start.
    while tokio::time::timeout(Duration::from_millis(300), wakes.next()).await.is_ok() {}
    for _ in 0..5 {
        let job = scene.enqueue(Scene::job()).await;
        let woken = async { while wakes.next().await != Wake::Ready {} };
        tokio::time::timeout(wait::LIMIT, woken).await.expect("no worker was woken");
        assert_eq!(scene.claim(1).await[0].run.job, job);
    }
    let running = scene.running(Scene::job()).await;
    assert_eq!(running.kind, KIND);
    let operation = Operation::new(Verb::Cancel).grace(LONG);
    scene.operate(running.run.job, operation).await.unwrap();
    let asked = async { while wakes.next().await != Wake::Stop {} };
    tokio::time::timeout(wait::LIMIT, asked).await.expect("the stop request woke no worker");
}

pub async fn a_cancel_reaches_the_handler_without_a_heartbeat(scene: Scene) {
    // This worker's heartbeats are too rare to report the request, and the grace period does not end during the test.
    let worker = runtime::builder(scene.store.clone())
        .options(|options| options.lease = LONG)
        .handle_kind(runtime::KIND, RetryPolicy::default(), |context| async move {
            context.cancellation().cancelled().await;
            Ok(Outcome::Stopped)
        })
        .start()
        .await
        .unwrap();
    for (verb, state) in [(Verb::Cancel, JobState::Canceled), (Verb::Abort, JobState::Aborted)] {
        let job = scene.enqueue(runtime::job()).await;
        scene.until(job, JobState::Running).await;
        let operation = Operation::new(verb).grace(LONG);
        assert_eq!(scene.operate(job, operation).await.unwrap(), Operated::StopRequested);
        scene.until(job, state).await;
        scene.assert_history_folds(job).await;
    }
    wait::until("both stops were counted", || async { worker.stats().stopped == 2 }).await;
    worker.shutdown().await;
}

//! Hints of new work and of stop requests, from stores that give them.

use std::time::{Duration, Instant};

use milepost::Outcome;
use milepost_core::port::{Operated, Operation, Wake};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use super::runtime;
use crate::scene::{KIND, LONG, Scene};
use crate::wait;

pub async fn a_job_wakes_a_sleeper(scene: Scene) {
    let mut wakes = scene.store.wakes().await.unwrap();
    // Whatever the start of listening brings.
    while tokio::time::timeout(Duration::from_millis(300), wakes.next()).await.is_ok() {}
    for round in 0..5 {
        let job = scene.enqueue(Scene::job()).await;
        let limit = Duration::from_millis(900);
        let woken = async { while wakes.next().await != Wake::Ready {} };
        assert!(tokio::time::timeout(limit, woken).await.is_ok(), "round {round}: nobody woke");
        assert_eq!(scene.claim(1).await[0].run.job, job);
    }
    let running = scene.running(Scene::job()).await;
    assert_eq!(running.kind, KIND);
    let operation = Operation::new(Verb::Cancel).grace(LONG);
    scene.operate(running.run.job, operation).await.unwrap();
    let asked = async { while wakes.next().await != Wake::Stop {} };
    assert!(tokio::time::timeout(Duration::from_secs(5), asked).await.is_ok(), "a stop request wakes, too");
}

pub async fn a_cancel_reaches_the_handler_at_once(scene: Scene) {
    let worker = runtime::start(scene.store.clone(), |context| async move {
        context.cancellation().cancelled().await;
        Ok(Outcome::Stopped)
    })
    .await;
    for (verb, state) in [(Verb::Cancel, JobState::Canceled), (Verb::Abort, JobState::Aborted)] {
        let job = scene.enqueue(runtime::job()).await;
        scene.until(job, JobState::Running).await;
        let asked = Instant::now();
        let operation = Operation::new(verb).grace(Duration::from_secs(60));
        assert_eq!(scene.operate(job, operation).await.unwrap(), Operated::StopRequested);
        scene.until(job, state).await;
        assert!(asked.elapsed() < Duration::from_secs(2), "{verb} took {:?}", asked.elapsed());
        scene.assert_history_folds(job).await;
    }
    wait::until("both were counted", || async { worker.stats().stopped == 2 }).await;
    worker.shutdown().await;
}

//! Workers whose store loses or delays answers.

use std::collections::HashMap;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use milepost::{Outcome, Worker};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use tokio::sync::Semaphore;

use crate::runtime::{self, job};
use milepost_testkit::faulty::Faulty;
use milepost_testkit::scene::Scene;
use milepost_testkit::wait;

/// Number of handler calls for each job.
type Runs = Arc<Mutex<HashMap<JobId, u32>>>;

/// Starts a worker that counts its runs. Jobs with two attempts wait for a permit of the gate.
async fn start(store: Arc<Faulty>) -> (Worker, Runs, Arc<Semaphore>) {
    let (runs, gate) = (Runs::default(), Arc::new(Semaphore::new(0)));
    let (of_handler, gate_of_handler) = (runs.clone(), gate.clone());
    let worker = runtime::start(store, move |context| {
        *of_handler.lock().unwrap().entry(context.run().job).or_default() += 1;
        let gate = gate_of_handler.clone();
        async move {
            if context.job().max_attempts == 2 {
                gate.acquire().await?.forget();
            }
            Ok(Outcome::Done)
        }
    })
    .await;
    (worker, runs, gate)
}

fn assert_run_once_each(runs: &Runs, jobs: &[JobId]) {
    let runs = runs.lock().unwrap();
    assert!(jobs.iter().all(|job| runs.get(job) == Some(&1)), "{runs:?} of {jobs:?}");
}

pub async fn jobs_of_a_claim_whose_answer_was_lost_are_adopted(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    faulty.claims_lost.store(1, SeqCst);
    // The first query for the worker's jobs after the lost claim gets no answer either.
    faulty.looks_lost.store(1, SeqCst);
    let (worker, runs, _) = start(faulty).await;
    let jobs: Vec<NewJob> = (0..5).map(|_| job()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    let jobs: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    scene.assert_all_succeed(&jobs).await;
    assert_run_once_each(&runs, &jobs);
    assert!(worker.stats().adopted >= 1, "{:?}", worker.stats());
    for job in jobs {
        assert_eq!(scene.count(job, Verb::Claim).await, 1, "the job was not rescued after its lease expired");
    }
    worker.shutdown().await;
}

pub async fn an_end_whose_answer_was_lost_is_told_again(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    faulty.ends_lost.store(1, SeqCst);
    let (worker, runs, _) = start(faulty).await;
    let job = scene.enqueue(job()).await;
    wait::until("the store has already stored the end", || async { worker.stats().repeated == 1 }).await;
    scene.assert_all_succeed(&[job]).await;
    assert_run_once_each(&runs, &[job]);
    worker.shutdown().await;
}

pub async fn an_end_that_the_store_does_not_take_for_now_is_told_until_it_does(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    faulty.ends_failed.store(3, SeqCst);
    let (worker, runs, _) = start(faulty).await;
    let job = scene.enqueue(job()).await;
    scene.assert_all_succeed(&[job]).await;
    assert_run_once_each(&runs, &[job]);
    worker.shutdown().await;
}

pub async fn an_end_whose_words_are_refused_becomes_a_failure_that_says_so(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    // The failure that replaces the rejected end is rejected at first, too.
    faulty.ends_refused.store(2, SeqCst);
    let (worker, runs, _) = start(faulty).await;
    let job = scene.enqueue(job()).await;
    scene.until(job, JobState::Failed).await;
    let last = scene.history(job).await.pop().unwrap();
    assert_eq!(last.error_code.as_deref(), Some("unstorable"));
    assert_run_once_each(&runs, &[job]);
    worker.shutdown().await;
}

pub async fn a_run_that_ends_while_the_store_is_asked_is_not_run_again(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    let (worker, runs, gate) = start(faulty.clone()).await;
    let gated = scene.enqueue(job().max_attempts(2)).await;
    wait::until("the first job runs", || async { worker.stats().claimed == 1 }).await;
    faulty.hold_looks(true);
    faulty.claims_lost.store(1, SeqCst);
    let lost = scene.enqueue(job()).await;
    scene.until(lost, JobState::Running).await;
    wait::until("the worker queries its held jobs", || async { faulty.holds_a_look() }).await;

    gate.add_permits(1);
    wait::until("the first job's end is acknowledged", || async { worker.stats().acknowledged == 1 }).await;
    faulty.hold_looks(false);
    scene.assert_all_succeed(&[gated, lost]).await;
    worker.shutdown().await;
    assert_run_once_each(&runs, &[gated, lost]);
}

pub async fn a_claim_answered_late_beside_a_lost_one_is_run_once(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    let runs = Runs::default();
    let of_handler = runs.clone();
    let handler = move |context: milepost::Context| {
        *of_handler.lock().unwrap().entry(context.run().job).or_default() += 1;
        async { Ok(Outcome::Done) }
    };
    let jobs: Vec<NewJob> = (0..9).map(|_| job()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    let jobs: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    faulty.claims_late.store(1, SeqCst);
    faulty.claims_lost.store(1, SeqCst);
    let worker = runtime::builder(faulty)
        // A full claim indicates that there are more jobs, so two claims are in flight from then on.
        .options(|options| options.claim_batch = 1)
        .handle_kind(runtime::KIND, milepost::RetryPolicy::default(), handler)
        .start()
        .await
        .unwrap();
    scene.assert_all_succeed(&jobs).await;
    worker.shutdown().await;
    assert_run_once_each(&runs, &jobs);
}

pub async fn a_worker_that_leaves_hands_back_what_a_lost_answer_brought(scene: Scene) {
    let faulty = Faulty::before(scene.store.clone());
    faulty.claims_lost.store(1, SeqCst);
    faulty.looks_lost.store(usize::MAX, SeqCst);
    let (worker, _, _) = start(faulty.clone()).await;
    let job = scene.enqueue(job().max_attempts(2)).await;
    scene.until(job, JobState::Running).await;
    faulty.looks_lost.store(0, SeqCst);
    worker.shutdown().await;
    let row = scene.view(job).await.row;
    assert_eq!((row.state, row.attempt), (JobState::Pending, 0), "the job is released at shutdown");
    scene.assert_history_folds(job).await;
}

//! Recovery of jobs from dead workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::ident::WorkerId;
use milepost_core::job::NewJob;
use milepost_core::port::{Operated, Operation};
use milepost_core::retry::RetryPolicy;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{NewWorker, Rescued};

use milepost_testkit::scene::{KIND, LONG, Scene, register, retry};
use milepost_testkit::wait;

const SHORT: Duration = Duration::from_millis(300);

/// Returns no delay, so that rescued jobs can start again immediately.
pub fn no_delay(_kind: &str, _attempt: u32, _policy: Option<&RetryPolicy>) -> Duration {
    Duration::ZERO
}

/// Waits until the worker's lease has expired and its jobs have been taken back.
pub(super) async fn rescue(scene: &Scene, at_least: usize) -> Vec<Rescued> {
    let rescued = std::sync::Mutex::new(Vec::new());
    wait::until("the lease has expired", || async {
        let more = scene.store.rescue_expired(100, &no_delay).await.unwrap();
        let mut all = rescued.lock().unwrap();
        all.extend(more);
        all.len() >= at_least
    })
    .await;
    rescued.into_inner().unwrap()
}

/// Returns a worker with a short lease, and the jobs that it claimed. If the machine stalls longer than the lease before the claim, another worker is
/// registered.
pub(super) async fn mortal(
    scene: &Scene,
    jobs: Vec<NewJob>,
) -> (WorkerId, Vec<milepost_core::claim::ClaimedJob>) {
    mortal_for(scene, SHORT, jobs).await
}

/// Does the same with a lease of this length.
async fn mortal_for(
    scene: &Scene,
    lease: Duration,
    jobs: Vec<NewJob>,
) -> (WorkerId, Vec<milepost_core::claim::ClaimedJob>) {
    scene.store.enqueue_many(&jobs).await.unwrap();
    loop {
        let worker = register(&scene.store, lease).await;
        match scene.claim_for(worker, 100).await {
            Ok(claimed) => {
                assert_eq!(claimed.len(), jobs.len());
                return (worker, claimed);
            }
            Err(late) => assert!(matches!(late, StoreError::WorkerLost(_)), "{late:?}"),
        }
    }
}

pub async fn a_rescued_job_waits_as_its_own_worker_would_have_let_it(scene: Scene) {
    let job = scene.enqueue(Scene::job()).await;
    let patient = NewWorker {
        name: "patient".to_owned(),
        queues: vec!["default".to_owned()],
        kinds: vec![KIND.to_owned()],
        lease: LONG,
        backoffs: [(KIND.to_owned(), RetryPolicy::fixed(LONG))].into(),
        ..NewWorker::default()
    };
    let worker = scene.store.register_worker(&patient).await.unwrap();
    assert_eq!(scene.claim_for(worker, 1).await.unwrap().len(), 1);
    scene.store.retire_worker(worker).await.unwrap();
    // The rescuing worker has no settings for the kind.
    let delay = |_: &str, attempt, policy: Option<&RetryPolicy>| policy.unwrap().delay(attempt, 0.5);
    wait::until("the job is rescued", || async {
        scene.store.rescue_expired(100, &delay).await.unwrap();
        scene.state(job).await == JobState::RetryWait
    })
    .await;
    let row = scene.view(job).await.row;
    assert!(row.ready_at.unwrap().duration_since(row.created_at).unsigned_abs() >= LONG, "{row:?}");
}

pub async fn a_dead_workers_jobs_are_taken_back(scene: Scene) {
    let (worker, claimed) = mortal(&scene, vec![Scene::job(), Scene::job().group("g")]).await;
    let rescued = rescue(&scene, 2).await;
    assert!(rescued.iter().all(|lost| lost.worker == worker && lost.verb == Verb::Retry));
    for job in &claimed {
        assert_eq!(scene.state(job.run.job).await, JobState::RetryWait);
        let last = scene.history(job.run.job).await.pop().unwrap();
        assert_eq!(last.error_code.as_deref(), Some("lease_lost"));
        assert_eq!(last.worker, Some(worker));
        // A retry is fenced, too, although the rescue recorded a retry of the same run.
        for end in [End::Succeed { result: None }, retry(Duration::ZERO)] {
            assert_eq!(scene.finish(job, end).await, Finished::Fenced, "the run of a dead worker is fenced");
        }
    }
    let again = scene.claim(10).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|job| job.attempt == 2), "the crash used an attempt");
    assert!(scene.store.workers().await.unwrap().iter().any(|view| view.id == worker && view.died));
}

pub async fn a_crash_spends_an_attempt_until_none_is_left(scene: Scene) {
    let (_, claimed) = mortal(&scene, vec![Scene::job().max_attempts(1)]).await;
    let rescued = rescue(&scene, 1).await;
    assert_eq!(rescued[0].verb, Verb::Fail);
    assert_eq!(scene.state(claimed[0].run.job).await, JobState::Failed);
    scene.assert_history_folds(claimed[0].run.job).await;
}

pub async fn a_lost_worker_is_told_so(scene: Scene) {
    let (worker, _) = mortal(&scene, vec![Scene::job()]).await;
    rescue(&scene, 1).await;
    let heartbeat = scene.store.heartbeat(worker).await;
    assert!(matches!(heartbeat, Err(StoreError::WorkerLost(lost)) if lost == worker), "{heartbeat:?}");
    let claim = scene.claim_for(worker, 1).await;
    assert!(matches!(claim, Err(StoreError::WorkerLost(_))), "{claim:?}");
    assert_eq!(scene.claim(1).await.len(), 1, "another worker can claim the job");
}

pub async fn a_living_worker_is_left_alone(scene: Scene) {
    // If the machine stalls for as long as the lease, the worker is rightly considered dead; then repeat with a longer lease.
    for doubled in 0..9 {
        let lease = SHORT * 2_u32.pow(doubled);
        let (worker, claimed) = mortal_for(&scene, lease, vec![Scene::job()]).await;
        if outlives_its_lease(&scene, worker, lease).await {
            let end = End::Succeed { result: None };
            let finish = Finish { run: claimed[0].run, end, grouped: false, task: false };
            assert_eq!(scene.tell(worker, finish).await, Finished::Accepted);
            return;
        }
        scene.operate(claimed[0].run.job, Operation::new(Verb::Cancel)).await.unwrap();
    }
    panic!("the machine stalled for more than a minute in every round");
}

/// Renews a lease in time for longer than its duration and asserts that the worker's jobs are not rescued. Returns false if a renewal was late.
async fn outlives_its_lease(scene: &Scene, worker: WorkerId, lease: Duration) -> bool {
    let began = Instant::now();
    let mut renewed_at = began;
    while began.elapsed() < lease * 3 / 2 {
        let renewed = scene.store.heartbeat(worker).await;
        let rescued = scene.store.rescue_expired(100, &no_delay).await.unwrap();
        if renewed_at.elapsed() > lease / 2 {
            return false;
        }
        renewed_at = Instant::now();
        renewed.unwrap();
        // Workers of earlier rounds may have expired by now.
        assert!(rescued.iter().all(|lost| lost.worker != worker), "{rescued:?}");
        tokio::time::sleep(lease / 10).await;
    }
    true
}

pub async fn a_dead_workers_stop_requests_are_fulfilled(scene: Scene) {
    let (worker, claimed) = mortal(&scene, vec![Scene::job(), Scene::job()]).await;
    for (job, verb) in claimed.iter().zip([Verb::Cancel, Verb::Abort]) {
        let operation = Operation::new(verb).grace(LONG);
        assert_eq!(scene.operate(job.run.job, operation).await.unwrap(), Operated::StopRequested);
    }
    match scene.store.heartbeat(worker).await {
        Ok(beat) => assert_eq!(beat.stops.len(), 2, "the heartbeat returns both stop requests"),
        Err(late) => assert!(matches!(late, StoreError::WorkerLost(_)), "{late:?}"),
    }
    rescue(&scene, 2).await;
    assert_eq!(scene.state(claimed[0].run.job).await, JobState::Canceled);
    assert_eq!(scene.state(claimed[1].run.job).await, JobState::Aborted);
    for (job, end) in claimed.iter().zip([End::Cancel, End::Abort]) {
        let history = scene.history(job.run.job).await;
        let code =
            history.iter().find(|entry| entry.verb == end.verb()).and_then(|entry| entry.error_code.clone());
        assert_eq!(code.as_deref(), Some("lease_lost"), "the attempt counts: {history:?}");
        let late = Finish { run: job.run, end, grouped: false, task: false };
        let ended = scene.store.finish_many(worker, &[late]).await.unwrap();
        assert_eq!(ended, [Finished::Fenced], "its worker did not report this end");
    }
}

pub async fn what_a_worker_left_behind_when_it_retired_is_taken_back(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    scene.store.retire_worker(scene.worker).await.unwrap();
    let rescued = rescue(&scene, 1).await;
    assert_eq!(rescued[0].run, job.run);
    assert_eq!(scene.state(job.run.job).await, JobState::RetryWait);
}

pub async fn many_rescuers_take_each_job_back_once(scene: Scene) {
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers
            .push(mortal(&scene, vec![Scene::job(); 10].into_iter().map(|_| Scene::job()).collect()).await);
    }
    let rescued = Arc::new(AtomicUsize::new(0));
    let rescuers = (0..6).map(|_| {
        let (scene, rescued) = (scene.clone(), rescued.clone());
        tokio::spawn(async move {
            wait::until("all jobs are rescued", || async {
                let more = scene.store.rescue_expired(100, &no_delay).await.unwrap().len();
                rescued.fetch_add(more, Ordering::SeqCst) + more >= 40
            })
            .await;
        })
    });
    join_all(rescuers).await.into_iter().for_each(Result::unwrap);
    assert_eq!(rescued.load(Ordering::SeqCst), 40);
    for (_, claimed) in &workers {
        for job in claimed {
            assert_eq!(scene.history(job.run.job).await.len(), 3, "created, claimed, rescued");
        }
    }
}

pub async fn what_a_worker_left_behind_that_signed_off_is_taken_back(scene: Scene) {
    let (worker, claimed) = mortal(&scene, vec![Scene::job()]).await;
    scene.store.retire_worker(worker).await.unwrap();
    assert_eq!(rescue(&scene, 1).await[0].run, claimed[0].run);
    assert_eq!(scene.claim(1).await.len(), 1);
}

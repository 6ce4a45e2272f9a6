//! Operations of operators on jobs, and job lists.

use std::num::NonZeroU32;
use std::time::Duration;

use milepost_core::duration::WAIT_MAX;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, StartAt};
use milepost_core::listing::Waiting;
use milepost_core::port::{Operated, Operation};
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{NewWorker, Report, WorkerView};
use serde_json::json;

use milepost_testkit::scene::{KIND, LONG, Scene, failure, register, retry};
use milepost_testkit::wait;

pub async fn jobs_are_listed_newest_first_in_pages(scene: Scene) {
    let mut ids = Vec::new();
    for at in 0..25 {
        let job = scene.enqueue(Scene::job()).await;
        ids.push(job);
        if at % 3 == 0 {
            let claimed = scene.claim(1).await;
            scene.finish(&claimed[0], End::Succeed { result: None }).await;
        }
    }
    ids.reverse();
    let mut listed: Vec<JobId> = Vec::new();
    loop {
        let filter = JobFilter { before: listed.last().copied(), limit: 10, ..JobFilter::default() };
        let page = scene.store.jobs(&filter).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page.iter().map(|job| job.id));
    }
    assert_eq!(listed, ids, "live and ended jobs in one list");
}

pub async fn jobs_are_filtered_by_state_kind_queue_and_key(scene: Scene) {
    let plain = scene.enqueue(Scene::job()).await;
    let other = scene.enqueue(NewJob::new("other", &()).unwrap().queue("q2").key("k")).await;
    let canceled = scene.enqueue(Scene::job()).await;
    scene.operate(canceled, Operation::new(Verb::Cancel)).await.unwrap();
    let list = async |filter: JobFilter| -> Vec<JobId> {
        scene.store.jobs(&filter).await.unwrap().iter().map(|job| job.id).collect()
    };
    let filter = JobFilter::default;
    assert_eq!(list(JobFilter { state: Some(JobState::Canceled), ..filter() }).await, [canceled]);
    assert_eq!(list(JobFilter { state: Some(JobState::Pending), ..filter() }).await, [other, plain]);
    assert_eq!(list(JobFilter { kind: Some("other".into()), ..filter() }).await, [other]);
    assert_eq!(list(JobFilter { queue: Some("q2".into()), ..filter() }).await, [other]);
    assert_eq!(list(JobFilter { key: Some("k".into()), ..filter() }).await, [other]);
    assert_eq!(list(JobFilter { kind: Some("none".into()), ..filter() }).await, []);
    let counts = scene.store.count_by_state().await.unwrap();
    assert!(
        counts.contains(&(JobState::Pending, 2)) && counts.contains(&(JobState::Canceled, 1)),
        "{counts:?}"
    );
}

pub async fn a_job_says_why_it_waits(scene: Scene) {
    let waits = async |job: JobId| scene.view(job).await.waiting_for;
    let ready = scene.enqueue(Scene::job()).await;
    assert_eq!(waits(ready).await, Some(Waiting::Turn));

    let later = scene.enqueue(Scene::job().start(StartAt::After(LONG))).await;
    assert!(matches!(waits(later).await, Some(Waiting::Time { .. })));

    let unknown = scene.enqueue(NewJob::new("unknown", &()).unwrap()).await;
    let expected = Waiting::NoWorker { kind: "unknown".into(), queue: "default".into() };
    assert_eq!(waits(unknown).await, Some(expected));

    let holder = scene.enqueue(Scene::job().group("g")).await;
    let blocked = scene.enqueue(Scene::job().group("g")).await;
    let expected = Waiting::Group { group: "g".into(), holder: Some(holder), taken: 1 };
    assert_eq!(waits(blocked).await, Some(expected));

    scene.store.pause_queue("default", true).await.unwrap();
    assert_eq!(waits(ready).await, Some(Waiting::PausedQueue { queue: "default".into() }));
    scene.store.pause_queue("default", false).await.unwrap();
    scene.claim(1).await;
    assert_eq!(waits(ready).await, None, "a running job does not wait");
}

pub async fn queues_are_counted_exactly(scene: Scene) {
    for _ in 0..3 {
        scene.enqueue(Scene::job()).await;
    }
    scene.enqueue(Scene::job().queue("q2")).await;
    scene.claim(1).await;
    scene.store.pause_queue("q3", true).await.unwrap();
    let queues = scene.store.queues().await.unwrap();
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["default", "q2", "q3"]);
    assert_eq!(queues[0].counts.len(), 2);
    assert!(queues[0].counts.contains(&(JobState::Pending, 2)));
    assert!(queues[0].counts.contains(&(JobState::Running, 1)));
    assert!(queues[2].paused_at.is_some() && queues[2].counts.is_empty());
    let workers: Vec<i64> = queues.iter().map(|queue| queue.workers).collect();
    assert_eq!(workers, [1, 0, 0]);
}

pub async fn only_living_workers_serve_a_queue(scene: Scene) {
    let served = async || {
        let queues = scene.store.queues().await.unwrap();
        queues.iter().find(|queue| queue.name == "default").map_or(0, |queue| queue.workers)
    };
    let second = register(&scene.store, LONG).await;
    register(&scene.store, Duration::from_millis(1)).await;
    wait::until("the lease expires", async || served().await == 2).await;
    scene.store.retire_worker(second).await.unwrap();
    assert_eq!(served().await, 1);
}

pub async fn kinds_are_counted_exactly_and_the_rarest_as_one(scene: Scene) {
    scene.enqueue_many(4, KIND, json!({})).await;
    scene.enqueue_many(2, "rare", json!({})).await;
    scene.enqueue(NewJob::new("rarer", &()).unwrap()).await;
    scene.enqueue(NewJob::new("rare", &()).unwrap().queue("q2")).await;
    scene.claim(1).await;
    scene.store.pause_queue("q3", true).await.unwrap();
    let told = async |kinds_max| {
        let queues = scene.store.queues_by_kind(kinds_max).await.unwrap();
        let told = queues.into_iter().map(|queue| {
            let mut counts: Vec<_> = queue
                .counts
                .into_iter()
                .map(|count| (count.kind, count.state.as_str(), count.jobs))
                .collect();
            counts.sort();
            (queue.name, queue.paused_at.is_some(), counts)
        });
        told.collect::<Vec<_>>()
    };
    let of = |kind: &str, state, jobs| (Some(kind.to_owned()), state, jobs);
    let test = [of(KIND, "pending", 3), of(KIND, "running", 1)];
    let others = |jobs| (None, "pending", jobs);
    let queue = |name: &str, paused, counts: &[_]| (name.to_owned(), paused, counts.to_vec());
    let [pending, running] = test;
    let all = [of("rare", "pending", 2), of("rarer", "pending", 1), pending.clone(), running.clone()];
    let expected = [
        queue("default", false, &all),
        queue("q2", false, &[of("rare", "pending", 1)]),
        queue("q3", true, &[]),
    ];
    assert_eq!(told(3).await, expected);
    let expected = [
        queue("default", false, &[others(3), pending, running]),
        queue("q2", false, &[others(1)]),
        queue("q3", true, &[]),
    ];
    assert_eq!(told(1).await, expected);
}

pub async fn jobs_whose_time_has_come_are_counted_apart(scene: Scene) {
    let due = async || {
        let queues = scene.store.queues_by_kind(9).await.unwrap();
        let counts = queues.into_iter().flat_map(|queue| queue.counts);
        let mut told: Vec<_> = counts.map(|count| (count.state.as_str(), count.jobs, count.due)).collect();
        told.sort_unstable();
        told
    };
    let failing = scene.running(Scene::job().max_attempts(2)).await;
    scene.finish(&failing, retry(LONG)).await;
    scene.running(Scene::job()).await;
    scene.enqueue(Scene::job().start(StartAt::After(LONG))).await;
    scene.enqueue(Scene::job()).await;
    assert_eq!(due().await, [("pending", 2, 1), ("retry_wait", 1, 0), ("running", 1, 0)]);
    scene.operate(failing.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    assert_eq!(due().await, [("pending", 3, 2), ("running", 1, 0)]);
    scene.store.pause_queue("default", true).await.unwrap();
    assert_eq!(due().await, [("pending", 3, 2), ("running", 1, 0)], "a pause does not change these counts");
}

pub async fn a_queue_tells_since_when_its_oldest_due_job_has_been_due(scene: Scene) {
    let oldest = async || {
        let by_kind = scene.store.queues_by_kind(9).await.unwrap();
        let told: Vec<_> = by_kind.iter().map(|queue| queue.oldest_due_at()).collect();
        let queues = scene.store.queues().await.unwrap();
        assert_eq!(queues.iter().map(|queue| queue.oldest_due_at).collect::<Vec<_>>(), told);
        told
    };
    scene.enqueue(Scene::job().start(StartAt::After(LONG))).await;
    assert_eq!(oldest().await, [None], "a job whose time has not come is not due");
    let first = scene.enqueue(Scene::job()).await;
    scene.enqueue(Scene::job()).await;
    let first_due_at = scene.view(first).await.row.ready_at;
    assert!(first_due_at.is_some());
    assert_eq!(oldest().await, [first_due_at]);
    scene.claim(2).await;
    assert_eq!(oldest().await, [None], "running jobs are not due");
}

pub async fn workers_are_listed_with_what_they_hold(scene: Scene) {
    scene.enqueue(Scene::job()).await;
    scene.claim(1).await;
    let workers = scene.store.workers().await.unwrap();
    assert_eq!(workers.len(), 1);
    assert_eq!((workers[0].id, workers[0].running), (scene.worker, 1));
    assert!(workers[0].ended_at.is_none() && workers[0].kinds.contains(&KIND.to_owned()));
    scene.store.retire_worker(scene.worker).await.unwrap();
    let workers = scene.store.workers().await.unwrap();
    assert!(workers[0].ended_at.is_some() && !workers[0].died);
    let telling = NewWorker { slots: NonZeroU32::new(8), ..like(&workers[0]) };
    scene.store.register_worker(&telling).await.unwrap();
    let loads: Vec<String> = scene.store.workers().await.unwrap().iter().map(WorkerView::load).collect();
    assert_eq!(loads, ["1", "0 of 8"]);
}

/// Returns a worker like this one.
fn like(view: &WorkerView) -> NewWorker {
    NewWorker {
        name: view.name.clone(),
        queues: view.queues.clone(),
        kinds: view.kinds.clone(),
        lease: Duration::from_secs(60),
        ..NewWorker::default()
    }
}

pub async fn a_retried_dead_letter_gets_its_attempts_again(scene: Scene) {
    let job = scene.running(Scene::job().max_attempts(2)).await;
    scene.finish(&job, End::Fail { failure: failure() }).await;
    scene.operate(job.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    let again = scene.claim(1).await.remove(0);
    assert_eq!((again.attempt, again.max_attempts), (2, 3), "one attempt was used, and two more are granted");
}

pub async fn a_rerun_goes_on_from_the_last_token(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    scene.finish(&job, End::Succeed { result: None }).await;
    let done = scene.operate(job.run.job, Operation::new(Verb::Rerun).note("again")).await.unwrap();
    assert_eq!(done, Operated::Done(JobState::Pending));
    let again = scene.claim(1).await.remove(0);
    assert_eq!(again.run.token.0, job.run.token.0 + 1);
    assert_eq!(scene.finish(&job, End::Fail { failure: failure() }).await, Finished::Fenced);
    scene.finish(&again, End::Succeed { result: None }).await;
    scene.assert_history_folds(job.run.job).await;
}

pub async fn a_rerun_forgets_how_far_the_job_was(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    let report = Report { run: job.run, progress: None, checkpoint: Some("\"the last row\"".to_owned()) };
    assert_eq!(scene.store.report_many(&[report]).await.unwrap(), [true]);
    scene.finish(&job, End::Succeed { result: None }).await;
    scene.operate(job.run.job, Operation::new(Verb::Rerun)).await.unwrap();
    assert_eq!(scene.store.checkpoint(job.run.job).await.unwrap(), None);
}

pub async fn a_job_resumed_after_its_last_attempt_gets_one_more(scene: Scene) {
    let job = scene.running(Scene::job().max_attempts(1)).await;
    scene.operate(job.run.job, Operation::new(Verb::Abort).grace(LONG)).await.unwrap();
    scene.finish(&job, retry(LONG)).await;
    scene.operate(job.run.job, Operation::new(Verb::Resume)).await.unwrap();
    let again = scene.claim(1).await.remove(0);
    assert_eq!((again.attempt, again.max_attempts), (2, 2));
}

pub async fn a_stop_asked_for_again_comes_no_later(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    let cancel = |grace| Operation::new(Verb::Cancel).grace(grace);
    scene.operate(job.run.job, cancel(Duration::from_millis(50))).await.unwrap();
    scene.operate(job.run.job, cancel(LONG)).await.unwrap();
    wait::until("the first grace period has passed", || async {
        scene.store.stop_overdue(10).await.unwrap() == [job.run.job]
    })
    .await;
}

pub async fn times_out_of_reach_are_refused(scene: Scene) {
    let far = "9000-01-01T00:00:00Z".parse().unwrap();
    let error = scene.try_enqueue(Scene::job().start(StartAt::At(far))).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid { index: 0, .. }), "{error:?}");
    let error = scene.try_enqueue(Scene::job().start(StartAt::After(Duration::MAX))).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid { index: 0, .. }), "{error:?}");
    let last = scene.enqueue(Scene::job().start(StartAt::After(WAIT_MAX))).await;
    for operation in [
        Operation::new(Verb::Snooze).delay(Duration::MAX),
        Operation::new(Verb::Cancel).grace(Duration::MAX),
        Operation::new(Verb::Cancel).note("x".repeat(1001)),
    ] {
        let error = scene.operate(last, operation).await.unwrap_err();
        assert!(matches!(error, StoreError::Invalid { index: 0, .. }), "{error:?}");
    }
    scene.operate(last, Operation::new(Verb::Snooze).delay(WAIT_MAX)).await.unwrap();
    assert!(scene.claim(1).await.is_empty(), "a job with the longest delay is not claimed");
    assert_eq!(scene.store.jobs(&JobFilter::default()).await.unwrap().len(), 1, "and it can be listed");
}

pub async fn a_run_that_is_aborted_spends_no_attempt(scene: Scene) {
    let abort = |grace| Operation::new(Verb::Abort).grace(grace);
    let mut job = scene.running(Scene::job().max_attempts(2)).await;
    for pauses in 1..=4 {
        if pauses % 2 == 0 {
            scene.operate(job.run.job, abort(LONG)).await.unwrap();
            scene.finish(&job, End::Abort).await;
        } else {
            scene.operate(job.run.job, abort(Duration::ZERO)).await.unwrap();
        }
        assert_eq!(scene.state(job.run.job).await, JobState::Aborted);
        scene.operate(job.run.job, Operation::new(Verb::Resume)).await.unwrap();
        job = scene.claim(1).await.remove(0);
        assert_eq!((job.attempt, job.max_attempts), (1, 2), "after {pauses} pauses");
    }
    // An attempt that fails while its stop is requested counts.
    scene.operate(job.run.job, abort(LONG)).await.unwrap();
    scene.finish(&job, retry(LONG)).await;
    assert_eq!(scene.state(job.run.job).await, JobState::Aborted);
    scene.operate(job.run.job, Operation::new(Verb::Resume)).await.unwrap();
    assert_eq!(scene.claim(1).await[0].attempt, 2);
    scene.assert_history_folds(job.run.job).await;
}

pub async fn a_snoozed_job_is_not_claimed_before_its_time(scene: Scene) {
    let job = scene.enqueue(Scene::job()).await;
    scene.operate(job, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
    assert!(scene.claim(1).await.is_empty());
    assert_eq!(scene.state(job).await, JobState::Pending);
    scene.operate(job, Operation::new(Verb::Snooze)).await.unwrap();
    assert_eq!(scene.claim(1).await.len(), 1);
}

pub async fn a_running_job_is_asked_to_stop_and_fenced_off_after_its_grace(scene: Scene) {
    let job = scene.running(Scene::job()).await;
    let cancel = || Operation::new(Verb::Cancel).grace(Duration::from_millis(100));
    assert_eq!(scene.operate(job.run.job, cancel()).await.unwrap(), Operated::StopRequested);
    assert_eq!(scene.state(job.run.job).await, JobState::Running);
    assert!(scene.view(job.run.job).await.stop_requested);
    assert_eq!(scene.store.heartbeat(scene.worker).await.unwrap().stops, [(job.run, Verb::Cancel)]);
    wait::until("the grace period has passed", || async {
        !scene.store.stop_overdue(10).await.unwrap().is_empty()
    })
    .await;
    assert_eq!(scene.state(job.run.job).await, JobState::Canceled);
    assert_eq!(scene.finish(&job, End::Succeed { result: None }).await, Finished::Fenced);

    let job = scene.running(Scene::job()).await;
    scene.operate(job.run.job, cancel().grace(LONG)).await.unwrap();
    let done = scene.finish(&job, End::Succeed { result: None }).await;
    assert_eq!(
        done,
        Finished::Accepted,
        "the end of a handler that finished within the grace period is accepted"
    );
}

pub async fn operations_on_a_job_that_does_not_exist_say_so(scene: Scene) {
    let nobody = JobId::new();
    let error = scene.operate(nobody, Operation::new(Verb::Cancel)).await.unwrap_err();
    assert!(matches!(error, StoreError::NoSuchJob(job) if job == nobody), "{error:?}");
    assert!(scene.store.job(nobody).await.unwrap().is_none());
}

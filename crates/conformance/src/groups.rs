//! Groups that run one job at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use milepost::{Outcome, RetryPolicy};
use milepost_core::finish::{End, Finished};
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, Priority, StartAt};
use milepost_core::limit::{Limit, Rate, Source};
use milepost_core::listing::Waiting;
use milepost_core::port::{Operated, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::runtime;
use milepost_testkit::pulse::{Pulse, STALL};
use milepost_testkit::scene::{LONG, Scene, failure, register, retry};
use milepost_testkit::wait;

fn grouped() -> NewJob {
    Scene::job().group("g")
}

pub async fn a_group_runs_one_job_at_a_time(scene: Scene) {
    let first = scene.enqueue(grouped()).await;
    let second = scene.enqueue(grouped()).await;
    assert_eq!(scene.state(first).await, JobState::Pending);
    assert_eq!(scene.state(second).await, JobState::Blocked);
    let claimed = scene.claim(10).await;
    assert_eq!(claimed.len(), 1);
    assert!(scene.claim(10).await.is_empty());
    scene.finish(&claimed[0], End::Succeed { result: None }).await;
    assert_eq!(scene.claim(10).await[0].run.job, second);
    scene.assert_history_folds(second).await;
}

pub async fn a_slot_is_held_through_retries_and_yields(scene: Scene) {
    let job = scene.running(grouped()).await;
    let waiting = scene.enqueue(grouped()).await;
    scene.finish(&job, retry(LONG)).await;
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(waiting).await, JobState::Blocked, "a job in retry_wait keeps the slot");
    scene.operate(job.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    let job = scene.claim(1).await.remove(0);
    scene.finish(&job, End::Yield { delay: LONG, note: String::new() }).await;
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(waiting).await, JobState::Blocked, "a job that yielded keeps the slot");
}

pub async fn a_slot_is_handed_on_by_priority_then_due_time(scene: Scene) {
    let holder = scene.running(grouped()).await;
    let soon = StartAt::After(Duration::from_secs(60));
    let last = scene.enqueue(grouped()).await;
    let late = scene.enqueue(grouped().priority(Priority::try_from(1).unwrap()).start(soon)).await;
    let first = scene.enqueue(grouped().priority(Priority::try_from(1).unwrap())).await;
    scene.finish(&holder, End::Succeed { result: None }).await;
    for expected in [first, last] {
        assert_eq!(scene.state(expected).await, JobState::Pending, "{:?}", scene.view(expected).await);
        scene.operate(expected, Operation::new(Verb::Cancel)).await.unwrap();
    }
    assert_eq!(scene.state(late).await, JobState::Blocked, "the job is not due yet");
}

pub async fn a_job_whose_time_has_not_come_takes_no_slot(scene: Scene) {
    let urgent = || grouped().priority(Priority::try_from(1).unwrap());
    let later = scene.enqueue(urgent().start(StartAt::After(LONG))).await;
    assert_eq!(scene.state(later).await, JobState::Blocked);
    let waiting = scene.view(later).await.waiting_for;
    assert!(matches!(waiting, Some(Waiting::Time { .. })), "{waiting:?}");
    let failed = scene.running(grouped()).await;
    scene.finish(&failed, End::Fail { failure: failure() }).await;
    let not_yet = Operation { delay: LONG, ..Operation::new(Verb::RetryNow) };
    scene.operate(failed.run.job, not_yet).await.unwrap();
    assert_eq!(scene.state(failed.run.job).await, JobState::Blocked);
    let now = scene.running(grouped()).await;
    scene.finish(&now, End::Succeed { result: None }).await;
    scene.store.fill_groups().await.unwrap();
    assert!(scene.claim(1).await.is_empty());
    scene.running(grouped()).await;
    for job in [later, failed.run.job, now.run.job] {
        scene.assert_history_folds(job).await;
    }
}

pub async fn a_snooze_moves_the_time_at_which_a_job_takes_its_slot(scene: Scene) {
    let snoozed = |delay| Operation { delay, ..Operation::new(Verb::Snooze) };
    let holder = scene.running(grouped()).await;
    let first = scene.enqueue(grouped()).await;
    let second = scene.enqueue(grouped()).await;
    scene.operate(first, snoozed(LONG)).await.unwrap();
    scene.finish(&holder, End::Succeed { result: None }).await;
    assert_eq!(scene.claim(10).await[0].run.job, second);
    scene.operate(second, Operation::new(Verb::Cancel)).await.unwrap();
    assert_eq!(scene.state(first).await, JobState::Blocked);
    let operated = scene.operate(first, snoozed(Duration::ZERO)).await.unwrap();
    assert_eq!(operated, Operated::Done(JobState::Pending), "the slot is free");
    assert_eq!(scene.claim(10).await[0].run.job, first);
    scene.assert_history_folds(first).await;
}

pub async fn jobs_of_groups_start_when_their_time_comes(scene: Scene) {
    const JOBS: u64 = 12;
    let limit = Limit::group("even").slots(5).rate(Rate::new(100.0, 10));
    scene.store.put_limit(&limit, Source::Operator).await.unwrap();
    let worker = runtime::builder(scene.store.clone())
        .options(|options| options.poll_interval = LONG)
        .handle_kind(runtime::KIND, RetryPolicy::default(), |_| async { Ok(Outcome::Done) })
        .start()
        .await
        .unwrap();
    let jobs = (1..=JOBS).map(|number| {
        let group = if number % 2 == 0 { "even" } else { "odd" };
        runtime::job().group(group).start(StartAt::After(Duration::from_millis(270 * number)))
    });
    let jobs: Vec<NewJob> = jobs.collect();
    let pulse = Pulse::of_commits(scene.store.clone(), scene.worker);
    let jobs: Vec<JobId> =
        scene.store.enqueue_many(&jobs).await.unwrap().iter().map(|enqueued| enqueued.job).collect();
    scene.assert_all_succeed(&jobs).await;
    let stall = pulse.slowest();
    let mut late = 0;
    for job in jobs {
        let history = scene.history(job).await;
        let due_at = history[0].ready_at.expect("the job has no due time");
        let started =
            history.iter().find(|entry| entry.verb == Verb::Claim).expect("the job was not claimed").at;
        assert!(started >= due_at);
        late += u64::from(started.duration_since(due_at).as_millis() > 300);
    }
    // If groups were only maintained once a second, three of ten jobs would start in time. If the machine stalls, the result is not conclusive.
    assert!(
        late <= JOBS / 4 || stall > STALL,
        "{late} of {JOBS} jobs started late; the longest query or commit took {stall:?}"
    );
    worker.shutdown().await;
}

pub async fn every_end_hands_the_slot_on(scene: Scene) {
    let ends = [End::Succeed { result: None }, End::Fail { failure: failure() }, End::Cancel, End::Abort];
    for end in ends {
        let holder = scene.running(grouped()).await;
        let next = scene.enqueue(grouped()).await;
        scene.finish(&holder, end.clone()).await;
        assert_eq!(scene.state(next).await, JobState::Pending, "after {end:?}");
        scene.operate(next, Operation::new(Verb::Cancel)).await.unwrap();
    }
    for verb in [Verb::Cancel, Verb::Skip, Verb::Mark, Verb::Abort] {
        let holder = scene.enqueue(grouped()).await;
        let next = scene.enqueue(grouped()).await;
        scene.operate(holder, Operation::new(verb)).await.unwrap();
        assert_eq!(scene.state(next).await, JobState::Pending, "after {verb}");
        scene.operate(next, Operation::new(Verb::Cancel)).await.unwrap();
    }
}

pub async fn a_full_group_does_not_spoil_a_batch_of_claims(scene: Scene) {
    let mut jobs: Vec<NewJob> = (0..20).map(|_| grouped()).collect();
    jobs.extend((0..20).map(|_| Scene::job()));
    scene.store.enqueue_many(&jobs).await.unwrap();
    let claimed = scene.claim(40).await;
    assert_eq!(claimed.len(), 21);
    assert_eq!(claimed.iter().filter(|job| job.group.is_some()).count(), 1);
}

pub async fn a_retried_job_waits_for_its_group(scene: Scene) {
    let failed = scene.running(grouped()).await;
    scene.finish(&failed, End::Fail { failure: failure() }).await;
    let holder = scene.running(grouped()).await;
    scene.operate(failed.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    assert_eq!(scene.state(failed.run.job).await, JobState::Blocked);
    scene.finish(&holder, End::Succeed { result: None }).await;
    assert_eq!(scene.claim(1).await[0].run.job, failed.run.job);
    scene.assert_history_folds(failed.run.job).await;
}

pub async fn a_waiter_that_is_canceled_leaves_the_slot_to_its_holder(scene: Scene) {
    let holder = scene.running(grouped()).await;
    let waiter = scene.enqueue(grouped()).await;
    let next = scene.enqueue(grouped()).await;
    scene.operate(waiter, Operation::new(Verb::Cancel)).await.unwrap();
    scene.store.fill_groups().await.unwrap();
    assert_eq!(scene.state(next).await, JobState::Blocked);
    scene.finish(&holder, End::Succeed { result: None }).await;
    assert_eq!(scene.state(next).await, JobState::Pending);
}

pub async fn eight_workers_never_exceed_the_limit(scene: Scene) {
    const JOBS: usize = 60;
    let enqueuers = (0..4).map(|_| {
        let scene = scene.clone();
        tokio::spawn(async move {
            for _ in 0..JOBS / 4 {
                scene.enqueue(grouped()).await;
            }
        })
    });
    let running = Arc::new(AtomicUsize::new(0));
    let done = Arc::new(AtomicUsize::new(0));
    let workers = (0..8).map(|_| {
        let (scene, running, done) = (scene.clone(), running.clone(), done.clone());
        tokio::spawn(async move {
            let worker = register(&scene.store, LONG).await;
            while done.load(Ordering::SeqCst) < JOBS {
                let claimed = scene.claim_for(worker, 5).await.unwrap();
                let all = running.fetch_add(claimed.len(), Ordering::SeqCst) + claimed.len();
                assert!(all <= 1, "{all} jobs of the group run at the same time");
                for job in claimed {
                    // Gives another worker time to claim a job, if that were possible.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    // Before the end is reported: after it is stored, the next job may run.
                    running.fetch_sub(1, Ordering::SeqCst);
                    let end = End::Succeed { result: None };
                    assert_eq!(scene.finish_by(worker, &job, end).await, Finished::Accepted);
                    done.fetch_add(1, Ordering::SeqCst);
                }
                scene.store.fill_groups().await.unwrap();
            }
        })
    });
    let all = async {
        join_all(enqueuers).await.into_iter().for_each(Result::unwrap);
        join_all(workers).await.into_iter().for_each(Result::unwrap);
    };
    tokio::time::timeout(wait::LIMIT, all).await.expect("timed out: the group stalled");
}

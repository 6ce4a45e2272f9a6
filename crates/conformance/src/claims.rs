//! Claims of jobs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use futures::future::join_all;
use milepost_core::claim::Claim;
use milepost_core::finish::{End, Finished};
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, Priority, StartAt};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use milepost_testkit::scene::{LONG, Scene, claim, register, retry};
use milepost_testkit::wait;

fn priority(number: u8) -> Priority {
    Priority::try_from(number).unwrap()
}

pub async fn higher_priorities_go_first(scene: Scene) {
    let mut ids = Vec::new();
    for number in [4, 2, 1, 3] {
        ids.push((number, scene.enqueue(Scene::job().priority(priority(number))).await));
    }
    ids.sort_by_key(|(number, _)| *number);
    for (number, id) in ids {
        assert_eq!(scene.claim(1).await[0].run.job, id, "priority {number} is next");
    }
}

pub async fn kinds_of_one_priority_take_turns(scene: Scene) {
    let jobs: Vec<NewJob> = (0..20).map(|_| Scene::job()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    scene.enqueue(NewJob::new("other", &()).unwrap()).await;
    let mut kinds = HashSet::new();
    for claim_id in 1..=8 {
        let claim = Claim { claim_id, ..claim(scene.worker, 2) };
        kinds.extend(scene.store.claim(&claim).await.unwrap().into_iter().map(|job| job.kind));
    }
    assert!(kinds.contains("other"), "a backlog of one kind does not starve the other");
}

pub async fn jobs_of_a_kind_go_by_due_time(scene: Scene) {
    let later = Scene::job().start(StartAt::After(Duration::from_millis(80)));
    let enqueued = scene.store.enqueue_many(&[later, Scene::job()]).await.unwrap();
    let [second, first] = [enqueued[0].job, enqueued[1].job];
    wait::until("both are due", || async {
        let view = scene.view(second).await;
        !matches!(view.waiting_for, Some(milepost_core::listing::Waiting::Time { .. }))
    })
    .await;
    let order: Vec<JobId> = scene.claim(2).await.iter().map(|job| job.run.job).collect();
    assert_eq!(order, [first, second]);
}

pub async fn kinds_and_queues_that_the_worker_lacks_are_left_alone(scene: Scene) {
    let unknown = scene.enqueue(NewJob::new("unknown", &()).unwrap()).await;
    let elsewhere = scene.enqueue(Scene::job().queue("elsewhere")).await;
    assert!(scene.claim(10).await.is_empty());
    assert_eq!(scene.state(unknown).await, JobState::Pending);
    assert_eq!(scene.state(elsewhere).await, JobState::Pending);
}

pub async fn jobs_are_not_claimed_before_their_time(scene: Scene) {
    let job = scene.enqueue(Scene::job().start(StartAt::After(Duration::from_millis(200)))).await;
    // The time of the claim is checked, because on a busy machine this loop may be late.
    wait::until("the job is due", || async { !scene.claim(1).await.is_empty() }).await;
    let claimed = &scene.history(job).await[1];
    let due = scene.history(job).await[0].ready_at.expect("the creation has no due time");
    assert!(claimed.at >= due, "claimed at {} and due at {due}", claimed.at);
}

pub async fn a_claimed_job_says_for_how_long_it_could_have_been(scene: Scene) {
    const WAIT: Duration = Duration::from_millis(300);
    let begun = Instant::now();
    let waits = scene.enqueue(Scene::job()).await;
    // The job became due at some time during that call, however long the call took.
    let enqueued = Instant::now();
    wait::until("the job has waited long enough", async || enqueued.elapsed() > WAIT).await;
    let later = Scene::job().start(StartAt::After(LONG));
    scene.enqueue(later).await;
    let claimed = scene.claim(2).await;
    assert_eq!(claimed.iter().map(|job| job.run.job).collect::<Vec<_>>(), [waits]);
    let waited = claimed[0].waited.unwrap();
    // Stores round times to milliseconds.
    assert!(waited + Duration::from_millis(50) > WAIT && waited <= begun.elapsed() + WAIT / 10, "{waited:?}");
    let held = scene.store.held(scene.worker).await.unwrap();
    assert_eq!(held[0].waited, None, "the waiting time is no longer known");
}

pub async fn a_paused_queue_gives_nothing_until_it_is_resumed(scene: Scene) {
    scene.enqueue(Scene::job()).await;
    assert!(scene.store.pause_queue("default", true).await.unwrap());
    assert!(!scene.store.pause_queue("default", true).await.unwrap(), "already paused");
    assert!(scene.claim(1).await.is_empty());
    assert!(scene.store.pause_queue("default", false).await.unwrap());
    assert_eq!(scene.claim(1).await.len(), 1);
}

pub async fn many_claimers_never_share_a_job(scene: Scene) {
    let jobs: Vec<NewJob> = (0..500).map(|_| Scene::job()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    let claimers = (0..8).map(|_| {
        let scene = scene.clone();
        tokio::spawn(async move {
            let worker = register(&scene.store, LONG).await;
            let mut mine = Vec::new();
            let mut empty = 0;
            while empty < 3 {
                let jobs = scene.claim_for(worker, 7).await.unwrap();
                empty = if jobs.is_empty() { empty + 1 } else { 0 };
                mine.extend(jobs.into_iter().map(|job| job.run.job));
            }
            mine
        })
    });
    let all: Vec<JobId> = join_all(claimers).await.into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(all.len(), 500);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 500);
}

pub async fn the_token_rises_with_every_claim(scene: Scene) {
    let id = scene.enqueue(Scene::job()).await;
    for attempt in 1..=4u32 {
        let job = scene.claim(1).await.remove(0);
        assert_eq!((job.run.job, job.attempt), (id, attempt));
        assert_eq!(job.run.token.0.unsigned_abs(), attempt);
        assert_eq!(scene.finish(&job, retry(Duration::ZERO)).await, Finished::Accepted);
    }
    scene.assert_history_folds(id).await;
}

pub async fn a_yield_does_not_spend_the_attempt(scene: Scene) {
    let id = scene.enqueue(Scene::job().max_attempts(1)).await;
    for token in 1..=3 {
        let job = scene.claim(1).await.remove(0);
        assert_eq!((job.attempt, job.run.token.0), (1, token));
        let end = End::Yield { delay: Duration::ZERO, note: "not now".to_owned() };
        assert_eq!(scene.finish(&job, end).await, Finished::Accepted);
        assert_eq!(scene.state(id).await, JobState::Pending);
    }
    let yields: Vec<_> =
        scene.history(id).await.into_iter().filter(|entry| entry.verb == Verb::Yield).collect();
    assert_eq!(yields.len(), 3);
    assert!(yields.iter().all(|entry| entry.attempt == 1 && entry.note.as_deref() == Some("not now")));
    scene.assert_history_folds(id).await;
}

//! Groups that run several jobs at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use milepost_core::claim::ClaimedJob;
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::limit::{Limit, LimitView, Rate, Source, Target};
use milepost_core::port::{Operated, Operation};
use milepost_core::precedence::{Put, Scope, Synced};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::rescue::no_delay;
use milepost_testkit::scene::{LONG, Scene, failure, register};
use milepost_testkit::wait;

const SUCCESS: End = End::Succeed { result: None };

fn grouped() -> NewJob {
    Scene::job().group("t:1")
}

/// Limits the group of [`grouped`] through its class.
async fn limit(scene: &Scene, slots: u32) {
    put(scene, Limit::group("t:*").slots(slots)).await;
}

async fn put(scene: &Scene, limit: Limit) {
    scene.store.put_limit(&limit, Source::Operator).await.unwrap();
}

async fn the(scene: &Scene, name: &str) -> LimitView {
    let limits = scene.store.limits().await.unwrap();
    limits.into_iter().find(|view| view.limit.target.name() == name).expect("the limit does not exist")
}

async fn enqueue(scene: &Scene, jobs: usize) -> Vec<JobId> {
    let jobs: Vec<NewJob> = (0..jobs).map(|_| grouped()).collect();
    scene.store.enqueue_many(&jobs).await.unwrap().iter().map(|enqueued| enqueued.job).collect()
}

async fn pending(scene: &Scene) -> i64 {
    let counts = scene.store.count_by_state().await.unwrap();
    counts.iter().find(|(state, _)| *state == JobState::Pending).map_or(0, |(_, jobs)| *jobs)
}

pub async fn a_group_has_as_many_holders_as_its_limit(scene: Scene) {
    limit(&scene, 3).await;
    let jobs = enqueue(&scene, 5).await;
    assert_eq!(
        scene.enqueue(Scene::job().group("t")).await,
        scene.claim(10).await[3].run.job,
        "the group t does not match t:*"
    );
    let view = the(&scene, "t:*").await;
    assert_eq!((view.holders, view.waiting, view.tokens), (3, 2, None));
    for job in jobs {
        scene.assert_history_folds(job).await;
    }
}

/// State and results of the workers.
#[derive(Default)]
struct Work {
    running: AtomicUsize,
    most: AtomicUsize,
    done: AtomicUsize,
    /// The workers stop when this number of jobs has run.
    enough: AtomicUsize,
}

/// Runs jobs with eight workers until enough have run. If `refill` is set, each worker enqueues a new job for each one that it finishes. Returns the
/// maximum number of jobs that ran at the same time.
async fn run_with_eight_workers(scene: &Scene, work: Arc<Work>, refill: bool) -> usize {
    let workers = (0..8).map(|_| {
        let (scene, work) = (scene.clone(), work.clone());
        tokio::spawn(async move {
            let worker = register(&scene.store, LONG).await;
            while work.done.load(Ordering::SeqCst) < work.enough.load(Ordering::SeqCst) {
                let claimed = scene.claim_for(worker, 2).await.unwrap();
                let now = work.running.fetch_add(claimed.len(), Ordering::SeqCst) + claimed.len();
                work.most.fetch_max(now, Ordering::SeqCst);
                tokio::task::yield_now().await;
                for job in claimed {
                    work.running.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(scene.finish_by(worker, &job, SUCCESS).await, Finished::Accepted);
                    work.done.fetch_add(1, Ordering::SeqCst);
                    if refill {
                        enqueue(&scene, 1).await;
                    }
                }
                scene.store.fill_groups().await.unwrap();
            }
        })
    });
    let all = async { join_all(workers).await.into_iter().for_each(Result::unwrap) };
    tokio::time::timeout(wait::LIMIT, all).await.expect("timed out: the group stalled");
    work.most.load(Ordering::SeqCst)
}

pub async fn eight_workers_never_exceed_a_limit_of_three(scene: Scene) {
    limit(&scene, 3).await;
    let enqueuer = {
        let scene = scene.clone();
        tokio::spawn(async move {
            for _ in 0..30 {
                enqueue(&scene, 2).await;
            }
        })
    };
    let work = Arc::new(Work { enough: AtomicUsize::new(60), ..Work::default() });
    let most = run_with_eight_workers(&scene, work, false).await;
    enqueuer.await.unwrap();
    assert!((2..=3).contains(&most), "{most} jobs ran at the same time");
    assert_eq!(the(&scene, "t:*").await.holders, 0);
}

pub async fn a_raised_limit_fills_at_once_and_a_lowered_one_drains(scene: Scene) {
    limit(&scene, 2).await;
    enqueue(&scene, 12).await;
    let mut held = scene.claim(10).await;
    assert_eq!(held.len(), 2);
    limit(&scene, 5).await;
    held.extend(scene.claim(10).await);
    assert_eq!(held.len(), 5, "all slots are filled immediately");
    limit(&scene, 2).await;
    for left in [4, 3, 2] {
        scene.finish(&held.remove(0), SUCCESS).await;
        scene.store.fill_groups().await.unwrap();
        assert_eq!(the(&scene, "t:*").await.holders, left, "no slot above the limit is assigned");
    }
    scene.finish(&held.remove(0), SUCCESS).await;
    assert_eq!((the(&scene, "t:*").await.holders, scene.claim(10).await.len()), (2, 1));
}

/// Checks several times how many jobs hold a slot.
async fn assert_holders(scene: &Scene, limit: i64) {
    for _ in 0..5 {
        let holders = the(scene, "t:*").await.holders;
        assert!(holders <= limit, "{holders} jobs hold slots of a group with limit {limit}");
    }
}

pub async fn holders_never_exceed_a_limit_that_changes_under_eight_workers(scene: Scene) {
    limit(&scene, 6).await;
    enqueue(&scene, 40).await;
    let work = Arc::new(Work { enough: AtomicUsize::new(usize::MAX), ..Work::default() });
    let changer = {
        let (scene, work) = (scene.clone(), work.clone());
        tokio::spawn(async move {
            for _ in 0..3 {
                limit(&scene, 2).await;
                wait::until("the number of holders is within the limit", || async {
                    the(&scene, "t:*").await.holders <= 2
                })
                .await;
                assert_holders(&scene, 2).await;
                limit(&scene, 6).await;
                wait::until("the new slots are assigned", || async { the(&scene, "t:*").await.holders > 2 })
                    .await;
                assert_holders(&scene, 6).await;
            }
            work.enough.store(0, Ordering::SeqCst);
        })
    };
    let most = run_with_eight_workers(&scene, work, true).await;
    changer.await.unwrap();
    assert!((3..=6).contains(&most), "{most} jobs ran at the same time");
}

pub async fn every_end_frees_one_of_several_slots(scene: Scene) {
    limit(&scene, 3).await;
    enqueue(&scene, 20).await;
    let mut held: Vec<ClaimedJob> = scene.claim(3).await;
    for end in [SUCCESS, End::Fail { failure: failure() }, End::Cancel, End::Abort] {
        scene.finish(&held.remove(0), end.clone()).await;
        let next = scene.claim(10).await;
        assert_eq!(next.len(), 1, "after {end:?}");
        held.extend(next);
    }
    for verb in [Verb::Cancel, Verb::Abort] {
        let operation = Operation::new(verb);
        scene.operate(held.remove(0).run.job, operation).await.unwrap();
        let next = scene.claim(10).await;
        assert_eq!(next.len(), 1, "after {verb}");
        held.extend(next);
    }
    assert_eq!(the(&scene, "t:*").await.holders, 3);
}

pub async fn a_holder_that_dies_frees_its_slot(scene: Scene) {
    limit(&scene, 2).await;
    let jobs: Vec<NewJob> = (0..4).map(|_| grouped().max_attempts(1)).collect();
    scene.store.enqueue_many(&jobs).await.unwrap();
    let claimed = loop {
        let mortal = register(&scene.store, Duration::from_millis(200)).await;
        match scene.claim_for(mortal, 10).await {
            Ok(claimed) => break claimed,
            // The machine stalled for longer than the lease: try again with another worker.
            Err(late) => assert!(matches!(late, StoreError::WorkerLost(_)), "{late:?}"),
        }
    };
    assert_eq!(claimed.len(), 2);
    wait::until("the slots of the dead worker are assigned", || async {
        scene.store.rescue_expired(100, &no_delay).await.unwrap();
        pending(&scene).await == 2
    })
    .await;
    assert_eq!(the(&scene, "t:*").await.holders, 2);
}

pub async fn all_slots_are_filled_after_a_mass_ending(scene: Scene) {
    limit(&scene, 10).await;
    enqueue(&scene, 30).await;
    for left in [20, 10, 0] {
        let held = scene.claim(100).await;
        assert_eq!(held.len(), 10);
        let ends: Vec<Finish> = held
            .iter()
            .map(|job| Finish { run: job.run, end: SUCCESS, grouped: true, task: false })
            .collect();
        scene.store.finish_many(scene.worker, &ends).await.unwrap();
        let waiting = the(&scene, "t:*").await.waiting;
        assert_eq!(waiting, i64::max(left - 10, 0), "all slots are assigned in the same transaction");
    }
}

pub async fn a_limit_of_its_own_wins_over_the_class(scene: Scene) {
    limit(&scene, 3).await;
    put(&scene, Limit::group("t:1").slots(2)).await;
    enqueue(&scene, 6).await;
    assert_eq!(pending(&scene).await, 2);
    assert_eq!((the(&scene, "t:1").await.holders, the(&scene, "t:*").await.holders), (2, 0));
    assert!(scene.store.remove_limit(&Target::Group("t:1".into()), Source::Operator).await.unwrap());
    assert_eq!(pending(&scene).await, 3, "the limit of the class applies again");
    assert!(scene.store.remove_limit(&Target::Group("t:*".into()), Source::Operator).await.unwrap());
    assert!(!scene.store.remove_limit(&Target::Group("t:*".into()), Source::Operator).await.unwrap());
    for left in [2, 1, 1] {
        scene.finish(&scene.claim(1).await[0], SUCCESS).await;
        assert_eq!(pending(&scene).await, left, "without a limit the group goes down to one slot");
    }
}

pub async fn a_release_is_refused_when_no_slot_is_free(scene: Scene) {
    limit(&scene, 2).await;
    let jobs = enqueue(&scene, 3).await;
    let release = || Operation::new(Verb::Release);
    let refused = scene.operate(jobs[2], release()).await;
    assert!(matches!(refused, Err(StoreError::Illegal { .. })), "{refused:?}");
    assert_eq!(scene.state(jobs[2]).await, JobState::Blocked);
}

/// Returns every limit and its source, kinds first.
async fn owned(scene: &Scene) -> Vec<(Limit, Source)> {
    let limits = scene.store.limits().await.unwrap();
    limits.into_iter().map(|view| (view.limit, view.source)).collect()
}

pub async fn a_configuration_removes_only_what_it_named(scene: Scene) {
    let rate = Rate::new(10.0, 20);
    let by_hand = Limit::kind("by hand", rate);
    put(&scene, by_hand.clone()).await;
    let (mail, slow) = (Limit::kind("mail", rate), Limit::group("slow").slots(4));
    assert_eq!(scene.store.sync_limits(&[mail.clone(), slow], &Scope::All).await.unwrap(), Synced::default());
    let synced = scene.store.sync_limits(std::slice::from_ref(&mail), &Scope::All).await.unwrap();
    assert_eq!((synced.removed, synced.foreign), (vec!["group slow".to_owned()], vec![]));
    assert_eq!(owned(&scene).await, [(by_hand, Source::Operator), (mail, Source::Config)]);
}

pub async fn an_operators_limit_stays_whatever_a_configuration_says(scene: Scene) {
    let (kind, group) = (Limit::kind("k", Rate::new(10.0, 20)), Limit::group("g:*").slots(4));
    let configured = [kind.clone(), group.clone()];
    scene.store.sync_limits(&configured, &Scope::All).await.unwrap();
    let by_hand = [Limit::kind("k", Rate::new(1.0, 1)), Limit::group("g:*").slots(1)];
    for limit in &by_hand {
        put(&scene, limit.clone()).await;
    }
    let theirs = by_hand.clone().map(|limit| (limit, Source::Operator));
    let synced = scene.store.sync_limits(&configured, &Scope::All).await.unwrap();
    assert_eq!(synced.foreign, ["kind k", "group g:*"]);
    assert_eq!(owned(&scene).await, theirs);

    assert_eq!(scene.store.sync_limits(&[], &Scope::All).await.unwrap(), Synced::default());
    for limit in &by_hand {
        assert!(!scene.store.remove_limit(&limit.target, Source::Config).await.unwrap());
        assert_eq!(scene.store.put_limit(limit, Source::Config).await.unwrap(), Put::Foreign);
    }
    assert_eq!(owned(&scene).await, theirs);
    for limit in &by_hand {
        assert!(scene.store.remove_limit(&limit.target, Source::Operator).await.unwrap());
    }
    assert_eq!(scene.store.sync_limits(&configured, &Scope::All).await.unwrap(), Synced::default());
    assert_eq!(owned(&scene).await, configured.map(|limit| (limit, Source::Config)));
}

pub async fn limits_that_cannot_be_are_refused(scene: Scene) {
    for bad in [Limit::group("g"), Limit::group("g").slots(0), Limit::kind("k", Rate::new(0.0, 1))] {
        let refused = scene.store.put_limit(&bad, Source::Operator).await;
        assert!(matches!(refused, Err(StoreError::Limit(_))), "{bad:?}: {refused:?}");
        assert!(scene.store.sync_limits(&[bad], &Scope::All).await.is_err());
    }
    assert!(scene.store.limits().await.unwrap().is_empty());
    let done = scene.operate(enqueue(&scene, 1).await[0], Operation::new(Verb::Cancel)).await;
    assert_eq!(done.unwrap(), Operated::Done(JobState::Canceled));
}

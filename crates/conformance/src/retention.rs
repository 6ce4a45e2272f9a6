//! Retention: finished jobs are deleted after their retention period, and nothing else is.

use std::collections::HashMap;
use std::time::Duration;

use milepost::Worker;
use milepost_core::error::StoreError;
use milepost_core::finish::End;
use milepost_core::history::fold_rest;
use milepost_core::ident::JobId;
use milepost_core::job::{KeyHolder, NewJob};
use milepost_core::port::{Operation, Store};
use milepost_core::retention::{
    AUDIT_MIN, Keep, Pace, Prunable, Pruned, Retained, RetentionPeriod, RetentionPolicy,
};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use milepost_testkit::examine::examine;
use milepost_testkit::scene::{Scene, failure};
use milepost_testkit::wait;

/// Deletes all finished jobs immediately.
pub(super) const NOTHING_KEPT: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    failed: Keep::For(Duration::ZERO),
    history: Keep::Forever,
    keys: Keep::For(Duration::ZERO),
    workers: Keep::Forever,
    batches: Keep::Forever,
    inbox: Keep::Forever,
    events: Keep::Forever,
    audit: Keep::For(AUDIT_MIN),
};

pub(super) const fn by_hand(limit: u32) -> Pace {
    Pace { limit, rest: 0 }
}

/// Prunes until a call has deleted rows or none are left: on a busy machine, the time limit of a call may expire before it deletes anything.
pub(super) async fn prune_some(store: &dyn Store, policy: &RetentionPolicy, pace: Pace) -> Pruned {
    loop {
        let pruned = store.prune(policy, pace).await.unwrap();
        if pruned.rows > 0 || !pruned.more {
            return pruned;
        }
    }
}

/// Ensures that finished jobs can be deleted: what ended in the current millisecond is due in the next one, and a store may keep the last entry of the
/// history.
pub(super) async fn let_time_pass(scene: &Scene) {
    scene.enqueue(NewJob::new("bystander", &()).unwrap()).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
}

pub(super) async fn prune(scene: &Scene, policy: &RetentionPolicy) -> Pruned {
    let_time_pass(scene).await;
    let mut sum = Pruned::default();
    loop {
        sum += scene.store.prune(policy, by_hand(100)).await.unwrap();
        if !sum.more {
            return sum;
        }
    }
}

pub(super) async fn is_gone(scene: &Scene, job: JobId) -> bool {
    let gone = scene.store.job(job).await.unwrap().is_none();
    assert!(!gone || scene.history(job).await.is_empty(), "the history of a deleted job is deleted, too");
    gone
}

/// Returns a succeeded job with a key.
pub(super) async fn succeeded(scene: &Scene, key: &str) -> JobId {
    let job = scene.running(Scene::job().key(key)).await;
    scene.finish(&job, End::Succeed { result: None }).await;
    job.run.job
}

pub async fn each_period_counts_for_its_own_jobs(scene: Scene) {
    let forget = |change: fn(&mut RetentionPolicy)| {
        let mut policy = RetentionPolicy::FOREVER;
        change(&mut policy);
        policy
    };
    let periods = [
        (forget(|policy| policy.succeeded = Keep::For(Duration::ZERO)), vec![JobState::Succeeded]),
        (
            forget(|policy| policy.canceled = Keep::For(Duration::ZERO)),
            vec![JobState::Canceled, JobState::Skipped],
        ),
        (forget(|policy| policy.failed = Keep::For(Duration::ZERO)), vec![JobState::Failed]),
    ];
    let mut jobs = HashMap::new();
    for state in [JobState::Succeeded, JobState::Canceled, JobState::Skipped, JobState::Failed] {
        jobs.insert(state, scene.job_in(state).await.0);
    }
    assert_eq!(prune(&scene, &RetentionPolicy::default()).await, Pruned::default(), "no job is old enough");
    for (policy, states) in periods {
        let due = scene.store.prunable(&policy).await.unwrap();
        assert_eq!(due.jobs(), states.len() as u64, "{due:?}");
        assert_eq!(prune(&scene, &policy).await.what, due, "the counted jobs are deleted");
        for state in states {
            assert!(is_gone(&scene, jobs.remove(&state).unwrap()).await, "{state}");
        }
        for &job in jobs.values() {
            scene.assert_history_folds(job).await;
        }
    }
}

pub async fn a_period_that_an_operator_sets_replaces_that_of_every_configuration(scene: Scene) {
    let store = scene.store.clone();
    let (kept, deleted) = (scene.job_in(JobState::Failed).await.0, scene.job_in(JobState::Succeeded).await.0);
    let_time_pass(&scene).await;
    let set = async |of, keep| store.put_retention(RetentionPeriod { of, keep }).await;
    set(Retained::Succeeded, Keep::For(Duration::ZERO)).await.unwrap();
    set(Retained::Failed, Keep::days(1)).await.unwrap();
    set(Retained::Failed, Keep::Forever).await.unwrap();
    let short = set(Retained::Workers, Keep::For(Duration::ZERO)).await;
    assert!(matches!(short, Err(StoreError::Retention(_))), "{short:?}");
    assert_eq!(store.retention(&NOTHING_KEPT).await.unwrap().failed, Keep::Forever);

    let configured = RetentionPolicy { failed: Keep::For(Duration::ZERO), ..RetentionPolicy::FOREVER };
    let worker = Worker::builder(store.clone()).options(|options| options.retention = configured);
    let worker = worker.start().await.unwrap();
    wait::until("the worker has deleted the job", || is_gone(&scene, deleted)).await;
    worker.shutdown().await;
    assert!(!is_gone(&scene, kept).await);

    assert!(store.remove_retention(Retained::Failed).await.unwrap());
    assert!(!store.remove_retention(Retained::Failed).await.unwrap());
    assert_eq!(store.retention(&NOTHING_KEPT).await.unwrap().failed, Keep::For(Duration::ZERO));
    let left = [RetentionPeriod { of: Retained::Succeeded, keep: Keep::For(Duration::ZERO) }];
    assert_eq!(store.stored_retention().await.unwrap(), left);
}

pub async fn what_needs_attention_is_never_forgotten(scene: Scene) {
    let policy = RetentionPolicy { history: Keep::For(Duration::ZERO), ..NOTHING_KEPT };
    let attention = JobState::ALL.iter().filter(|state| state.is_live() && **state != JobState::Failed);
    for &state in attention {
        let (job, _) = scene.job_in(state).await;
        assert_eq!(prune(&scene, &policy).await.what, Prunable::default(), "{state}");
        assert_eq!(scene.state(job).await, state);
        scene.assert_history_folds(job).await;
        scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        assert_eq!(prune(&scene, &policy).await.what.canceled, 1, "the job was not deleted before");
    }
}

pub async fn a_dead_letter_that_was_retried_is_alive(scene: Scene) {
    let (job, _) = scene.job_in(JobState::Failed).await;
    scene.operate(job, Operation::new(Verb::RetryNow)).await.unwrap();
    assert_eq!(prune(&scene, &NOTHING_KEPT).await.what.jobs(), 0);
    let again = scene.claim(1).await.remove(0);
    scene.finish(&again, End::Fail { failure: failure() }).await;
    assert_eq!(prune(&scene, &NOTHING_KEPT).await.what.failed, 1, "it failed again");
    assert!(is_gone(&scene, job).await);
}

pub async fn a_key_goes_with_its_job_and_can_be_used_again(scene: Scene) {
    let first = succeeded(&scene, "k").await;
    assert_eq!(scene.try_enqueue(Scene::job().key("k")).await.unwrap().job, first);
    assert_eq!(prune(&scene, &NOTHING_KEPT).await.what.succeeded, 1);
    let second = scene.try_enqueue(Scene::job().key("k")).await.unwrap();
    assert!(!second.duplicate && second.job != first);
    assert_eq!(scene.claim(10).await.len(), 1);
}

pub async fn a_key_can_outlive_its_job(scene: Scene) {
    let first = succeeded(&scene, "k").await;
    let policy = RetentionPolicy { keys: Keep::days(1), ..NOTHING_KEPT };
    let pruned = prune(&scene, &policy).await;
    assert_eq!((pruned.what.succeeded, pruned.what.keys), (1, 0));
    assert!(is_gone(&scene, first).await);
    let again = scene.try_enqueue(Scene::job().key("k")).await.unwrap();
    assert!(again.duplicate && again.job == first, "the key of the deleted job is still taken");
    let holders = scene.store.key_holders(&[&Scene::job().key("k")]).await.unwrap();
    assert_eq!(
        holders,
        [Some(KeyHolder { job: first, is_same: None })],
        "the content of the deleted job is unknown"
    );
    assert_eq!(scene.claim(10).await.len(), 0);

    assert_eq!(scene.store.prunable(&NOTHING_KEPT).await.unwrap().keys, 1);
    assert_eq!(prune(&scene, &NOTHING_KEPT).await.what.keys, 1);
    assert!(!scene.try_enqueue(Scene::job().key("k")).await.unwrap().duplicate);
}

pub async fn a_key_is_not_forgotten_before_its_job(scene: Scene) {
    let first = succeeded(&scene, "k").await;
    let policy = RetentionPolicy { keys: Keep::For(Duration::ZERO), ..RetentionPolicy::FOREVER };
    assert_eq!(prune(&scene, &policy).await.what, Prunable::default());
    assert_eq!(scene.try_enqueue(Scene::job().key("k")).await.unwrap().job, first);
}

pub async fn history_can_go_before_its_job_but_for_the_last_entry(scene: Scene) {
    let (failed, _) = scene.job_in(JobState::Failed).await;
    let (canceled, _) = scene.job_in(JobState::Canceled).await;
    let job = succeeded(&scene, "k").await;
    let policy = RetentionPolicy { history: Keep::For(Duration::ZERO), ..RetentionPolicy::FOREVER };
    let_time_pass(&scene).await;
    assert_eq!(scene.store.prunable(&policy).await.unwrap().histories, 2);
    let pruned = prune(&scene, &policy).await;
    assert_eq!((pruned.what.histories, pruned.rows), (2, 3), "create and claim; create");
    for (job, state) in [(job, JobState::Succeeded), (canceled, JobState::Canceled)] {
        let rest = scene.history(job).await;
        assert_eq!((rest.len(), fold_rest(&rest)), (1, Ok(Some(state))));
        assert_eq!(scene.state(job).await, state);
    }
    scene.assert_history_folds(failed).await;
    assert_eq!(prune(&scene, &policy).await, Pruned::default(), "a second run deletes nothing");

    scene.operate(job, Operation::new(Verb::Rerun)).await.unwrap();
    let again = scene.claim(1).await.remove(0);
    scene.finish(&again, End::Succeed { result: None }).await;
    let rest = scene.history(job).await;
    assert_eq!((rest.len(), fold_rest(&rest)), (4, Ok(Some(JobState::Succeeded))));
    prune(&scene, &policy).await;
    assert_eq!(scene.history(job).await.len(), 1, "the history of a rerun is shortened, too");
}

pub async fn a_long_history_goes_in_portions(scene: Scene) {
    for policy in
        [NOTHING_KEPT, RetentionPolicy { history: Keep::For(Duration::ZERO), ..RetentionPolicy::FOREVER }]
    {
        let job = scene.enqueue(Scene::job()).await;
        for _ in 0..35 {
            scene.operate(job, Operation::new(Verb::Snooze)).await.unwrap();
        }
        scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        let_time_pass(&scene).await;
        let mut sum = 0;
        loop {
            let pruned = scene.store.prune(&policy, by_hand(10)).await.unwrap();
            sum += pruned.rows;
            if !is_gone(&scene, job).await {
                let rest = scene.history(job).await;
                assert_eq!(fold_rest(&rest), Ok(Some(JobState::Canceled)), "{rest:#?}");
            }
            if !pruned.more {
                break;
            }
        }
        if policy == NOTHING_KEPT {
            assert!(is_gone(&scene, job).await);
            assert_eq!(sum, 37 + 2, "its history entries, its request and its end");
        } else {
            assert_eq!((scene.history(job).await.len(), sum), (1, 36));
        }
    }
}

pub async fn a_policy_that_cannot_be_kept_is_refused(scene: Scene) {
    let policy = RetentionPolicy { workers: Keep::For(Duration::ZERO), ..NOTHING_KEPT };
    let refused = scene.store.prune(&policy, by_hand(1)).await;
    assert!(matches!(refused, Err(StoreError::Retention(_))), "{refused:?}");
}

pub async fn what_retention_leaves_is_no_damage(scene: Scene) {
    let mut policy = RetentionPolicy::FOREVER;
    (policy.history, policy.succeeded) = (Keep::For(Duration::ZERO), Keep::Forever);
    let shortened = succeeded(&scene, "shortened").await;
    prune(&scene, &policy).await;
    assert_eq!(scene.history(shortened).await.len(), 1, "only the last entry is left");
    assert_eq!(examine(&scene.store).await, []);

    (policy.succeeded, policy.keys) = (Keep::For(Duration::ZERO), Keep::Forever);
    prune(&scene, &policy).await;
    assert!(is_gone(&scene, shortened).await);
    assert_eq!(examine(&scene.store).await, [], "the key is kept");
    for &check in &scene.store.checks() {
        assert_eq!(scene.store.repair_rows(check, 100).await.unwrap(), 0, "{check:?}");
    }
    let again = scene.try_enqueue(Scene::job().key("shortened")).await.unwrap();
    assert_eq!((again.job, again.duplicate), (shortened, true), "and no repair released the key");
}

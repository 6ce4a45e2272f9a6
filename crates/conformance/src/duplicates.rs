//! Enqueues whose keys other jobs hold, with a rule for each.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use milepost_core::claim::ClaimedJob;
use milepost_core::error::StoreError;
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::job::duplicate::{EnqueueOutcome, OnDuplicate, REPLACED_NOTE, Unique};
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::{Value, json};

use crate::retention::{NOTHING_KEPT, prune};
use milepost_testkit::examine::examine;
use milepost_testkit::scene::{KIND, LONG, Scene, failure};
use milepost_testkit::wait;

use EnqueueOutcome::{Created, Dropped, Kept, Moved, Replaced};

/// A job with a key, a rule and a number in its payload.
fn ruled(rule: OnDuplicate, number: u32) -> NewJob {
    NewJob::new(KIND, &json!({ "number": number })).unwrap().key("k").on_duplicate(rule)
}

async fn outcome(scene: &Scene, job: NewJob) -> (JobId, EnqueueOutcome) {
    let Enqueued { job, duplicate, outcome } = scene.try_enqueue(job).await.unwrap();
    assert_eq!(duplicate, outcome != Created);
    (job, outcome)
}

async fn number(scene: &Scene, job: JobId) -> Value {
    let view = scene.view(job).await;
    serde_json::from_str::<Value>(view.payload.get()).unwrap()["number"].clone()
}

fn number_of(claimed: &ClaimedJob) -> u32 {
    let payload: Value = serde_json::from_str(&claimed.payload).unwrap();
    payload["number"].as_u64().unwrap().try_into().unwrap()
}

/// Returns after the store's clock has advanced by more than a millisecond.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub async fn a_job_that_has_not_started_is_replaced(scene: Scene) {
    let (first, made) = outcome(&scene, ruled(OnDuplicate::replace(), 1)).await;
    assert_eq!(made, Created);
    let other = ruled(OnDuplicate::replace(), 2)
        .priority(Priority::FIRST)
        .max_attempts(7)
        .timeout(Duration::from_secs(9))
        .start(StartAt::After(LONG));
    assert_eq!(outcome(&scene, other).await, (first, Replaced));
    let view = scene.view(first).await;
    assert_eq!((view.row.priority, view.row.max_attempts, view.row.state), (1, 7, JobState::Pending));
    assert!(
        view.row.ready_at.unwrap() > view.row.created_at + Duration::from_secs(3000),
        "it has the new start"
    );
    assert_eq!(scene.claim(10).await.len(), 0);

    assert_eq!(outcome(&scene, ruled(OnDuplicate::replace(), 3)).await, (first, Replaced));
    let claimed = scene.claim(10).await;
    assert_eq!((claimed.len(), claimed[0].run.job, number_of(&claimed[0])), (1, first, 3));
    assert_eq!(
        (claimed[0].max_attempts, claimed[0].timeout),
        (25, None),
        "all options are those of the last call"
    );
    let history = scene.history(first).await;
    let verbs: Vec<Verb> = history.iter().map(|entry| entry.verb).collect();
    assert_eq!(verbs, [Verb::Create, Verb::Edit, Verb::Edit, Verb::Claim]);
    assert_eq!(history[1].note.as_deref(), Some(REPLACED_NOTE));
    scene.assert_history_folds(first).await;
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn a_job_that_has_started_is_followed_by_a_next_one(scene: Scene) {
    let first = scene.running(ruled(OnDuplicate::replace(), 1)).await;
    let (next, made) = outcome(&scene, ruled(OnDuplicate::replace(), 2)).await;
    assert_eq!((made, next == first.run.job), (Created, false));
    assert_eq!(number(&scene, first.run.job).await, 1, "the running job is as it was");
    assert_eq!(outcome(&scene, ruled(OnDuplicate::replace(), 3)).await, (next, Replaced));
    assert_eq!(examine(&scene.store).await, [], "a key that was passed on is no damage");
    let held = scene.store.key_holders(&[&ruled(OnDuplicate::keep(), 3)]).await.unwrap();
    assert_eq!(held[0].unwrap().job, next);

    // A job that was started once, and waits again, has started.
    scene.finish(&first, End::Yield { delay: LONG, note: String::new() }).await;
    let second = scene.claim(1).await.remove(0);
    scene.finish(&second, End::Yield { delay: LONG, note: String::new() }).await;
    assert_eq!(outcome(&scene, ruled(OnDuplicate::replace(), 4)).await.1, Created);
    assert_eq!(outcome(&scene, ruled(OnDuplicate::replace().unique(Unique::Live), 5)).await.1, Replaced);
}

pub async fn a_started_job_is_kept_if_its_key_is_held_longer(scene: Scene) {
    let rule = OnDuplicate::replace().unique(Unique::Live);
    let first = scene.running(ruled(rule, 1)).await;
    assert_eq!(outcome(&scene, ruled(rule, 2)).await, (first.run.job, Kept));
    assert_eq!(number(&scene, first.run.job).await, 1);
    assert_eq!(scene.history(first.run.job).await.len(), 2, "nothing was written");
    scene.finish(&first, End::Succeed { result: None }).await;
    assert_eq!(outcome(&scene, ruled(rule, 3)).await.1, Created);
}

pub async fn a_debounced_job_moves_later_up_to_its_longest_delay(scene: Scene) {
    let (delay, longest) = (Duration::from_secs(600), Duration::from_secs(601));
    let rule = OnDuplicate::debounce(delay, longest);
    let (job, made) = outcome(&scene, ruled(rule, 1)).await;
    assert_eq!(made, Created);
    let start = async || {
        let row = scene.view(job).await.row;
        row.ready_at.unwrap().duration_since(row.created_at)
    };
    let first = start().await;
    assert!(first.as_millis().abs_diff(600_000) < 5, "it starts after the delay: {first:?}");
    a_moment().await;
    assert_eq!(outcome(&scene, ruled(rule, 2)).await, (job, Moved));
    let second = start().await;
    assert!(second > first && second.as_secs() <= 601, "{second:?}");
    let long = OnDuplicate::debounce(Duration::from_secs(900), Duration::from_secs(901));
    assert_eq!(outcome(&scene, ruled(long, 3)).await, (job, Moved));
    let short = OnDuplicate::debounce(Duration::from_millis(1), Duration::from_millis(1));
    assert!(start().await.as_secs() >= 900);
    assert_eq!(outcome(&scene, ruled(short, 4)).await, (job, Moved));
    let last = start().await;
    assert!(last.as_secs() < 600, "the last call decides, and the start is not before now: {last:?}");
    wait::until("the job is due", || async { scene.claim(1).await.len() == 1 }).await;
    assert_eq!(number(&scene, job).await, 4);
    assert_eq!(scene.count(job, Verb::Edit).await, 3);
    let (next, made) = outcome(&scene, ruled(rule, 5)).await;
    assert_eq!(
        (made, next == job),
        (Created, false),
        "no call is lost: the running job may have read its payload"
    );
}

pub async fn a_throttled_key_makes_one_job_in_a_period(scene: Scene) {
    let rule = OnDuplicate::throttle(LONG);
    let (first, _) = outcome(&scene, ruled(rule, 1)).await;
    assert_eq!(outcome(&scene, ruled(rule, 2)).await, (first, Dropped));
    let claimed = scene.claim(1).await.remove(0);
    assert_eq!(outcome(&scene, ruled(rule, 3)).await, (first, Dropped));
    scene.finish(&claimed, End::Succeed { result: None }).await;
    assert_eq!(outcome(&scene, ruled(rule, 4)).await, (first, Dropped), "the period counts, not the end");
    assert_eq!(scene.history(first).await.len(), 3, "dropped calls leave no entry");
    a_moment().await;
    let (next, made) = outcome(&scene, ruled(OnDuplicate::throttle(Duration::from_millis(1)), 5)).await;
    assert_eq!((made, next == first), (Created, false));
    assert_eq!(
        outcome(&scene, ruled(rule, 6)).await,
        (next, Dropped),
        "the next period began with the next job"
    );
}

pub async fn a_key_is_free_when_its_holder_ends_if_the_call_says_so(scene: Scene) {
    let live = OnDuplicate::keep().unique(Unique::Live);
    for end in [End::Succeed { result: None }, End::Fail { failure: failure() }, End::Cancel] {
        let key = format!("{end:?}");
        let job = |rule| ruled(rule, 1).key(&key);
        let first = scene.running(job(live)).await;
        assert_eq!(outcome(&scene, job(live)).await, (first.run.job, Kept));
        scene.finish(&first, end).await;
        assert_eq!(
            outcome(&scene, job(OnDuplicate::keep())).await,
            (first.run.job, Kept),
            "a key alone is held forever"
        );
        assert_eq!(outcome(&scene, job(OnDuplicate::keep().unique_for(LONG))).await, (first.run.job, Kept));
        a_moment().await;
        let after = OnDuplicate::keep().unique_for(Duration::from_millis(1));
        let (next, made) = outcome(&scene, job(after)).await;
        assert_eq!(made, Created);
        let plain = scene.try_enqueue(NewJob { on_duplicate: None, ..job(live) }).await.unwrap();
        assert_eq!((plain.job, plain.outcome), (next, Kept), "the next job holds the key");
        scene.operate(next, Operation::new(Verb::Cancel)).await.unwrap();
    }
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn a_job_of_a_group_is_replaced_in_its_place(scene: Scene) {
    let grouped = |number| ruled(OnDuplicate::replace(), number).group("g");
    let holder = scene.running(Scene::job().group("g")).await;
    let (waiting, _) = outcome(&scene, grouped(1)).await;
    assert_eq!(scene.state(waiting).await, JobState::Blocked);
    assert_eq!(outcome(&scene, grouped(2).start(StartAt::After(LONG))).await, (waiting, Replaced));
    scene.finish(&holder, End::Succeed { result: None }).await;
    assert_eq!(scene.state(waiting).await, JobState::Blocked, "its time has not come");
    assert_eq!(outcome(&scene, grouped(3)).await, (waiting, Replaced));
    wait::until("it has the slot", || async { scene.state(waiting).await == JobState::Pending }).await;
    assert_eq!(outcome(&scene, grouped(4)).await, (waiting, Replaced), "a job with a slot has not started");
    let claimed = scene.claim(1).await.remove(0);
    assert_eq!(number_of(&claimed), 4);
    let (next, made) = outcome(&scene, grouped(5)).await;
    assert_eq!(
        (made, scene.state(next).await),
        (Created, JobState::Blocked),
        "the next job waits for the slot"
    );
    scene.finish(&claimed, End::Succeed { result: None }).await;
    assert_eq!(scene.state(next).await, JobState::Pending);
    scene.assert_history_folds(waiting).await;
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn a_job_in_another_queue_or_group_is_not_replaced(scene: Scene) {
    let (first, _) = outcome(&scene, ruled(OnDuplicate::replace(), 1)).await;
    for other in
        [ruled(OnDuplicate::replace(), 2).queue("elsewhere"), ruled(OnDuplicate::replace(), 3).group("g")]
    {
        let error = scene.store.enqueue_many(&[Scene::job(), other]).await.unwrap_err();
        let StoreError::Invalid { index, invalid } = &error else { panic!("{error:?}") };
        assert!(
            invalid.to_string().contains("is in another queue or group, which on_duplicate cannot change"),
            "{invalid}"
        );
        assert_eq!(*index, 1);
    }
    assert_eq!(number(&scene, first).await, 1);
    assert_eq!(scene.claim(10).await.len(), 1, "the whole call was refused");
}

pub async fn calls_with_many_jobs_settle_each_key_in_order(scene: Scene) {
    let jobs = [
        Scene::job(),
        ruled(OnDuplicate::replace(), 1),
        Scene::job().key("plain"),
        ruled(OnDuplicate::replace(), 2),
        ruled(OnDuplicate::throttle(LONG), 3).key("t"),
        ruled(OnDuplicate::throttle(LONG), 4).key("t"),
        ruled(OnDuplicate::replace(), 5).key("mixed"),
        Scene::job().key("mixed"),
    ];
    let made = scene.store.enqueue_many(&jobs).await.unwrap();
    let outcomes: Vec<EnqueueOutcome> = made.iter().map(|made| made.outcome).collect();
    assert_eq!(outcomes, [Created, Created, Created, Replaced, Created, Dropped, Created, Kept]);
    assert_eq!((made[3].job, made[5].job), (made[1].job, made[4].job));
    assert_eq!(number(&scene, made[1].job).await, 2);
    assert_eq!(number(&scene, made[4].job).await, 3);
    assert_eq!(number(&scene, made[6].job).await, 5);
    assert_eq!(scene.claim(10).await.len(), 5);
}

pub async fn a_call_with_rules_repeated_after_a_lost_answer_changes_nothing(scene: Scene) {
    for (key, rule) in [
        ("a", OnDuplicate::replace()),
        ("b", OnDuplicate::debounce(LONG, LONG)),
        ("c", OnDuplicate::throttle(LONG)),
        ("d", OnDuplicate::keep().unique(Unique::Live)),
    ] {
        let job = ruled(rule, 1).key(key);
        assert_eq!(outcome(&scene, job.clone()).await, (job.id, Created));
        assert_eq!(outcome(&scene, job.clone()).await, (job.id, Kept));
        assert_eq!(scene.history(job.id).await.len(), 1, "{rule:?}");
        // Also after a later call has taken the key.
        scene.operate(job.id, Operation::new(Verb::Cancel)).await.unwrap();
        let (next, made) = outcome(&scene, ruled(OnDuplicate::replace(), 2).key(key)).await;
        assert_eq!(made, Created);
        assert_eq!(outcome(&scene, job.clone()).await, (job.id, Kept));
        assert_eq!(number(&scene, next).await, 2, "an old call does not replace a newer job");
        scene.operate(next, Operation::new(Verb::Cancel)).await.unwrap();
    }
}

pub async fn rules_that_do_not_fit_are_refused(scene: Scene) {
    let debounce = OnDuplicate::debounce(LONG, LONG);
    let rules = [
        NewJob { key: None, ..ruled(OnDuplicate::replace(), 1) },
        ruled(OnDuplicate { delay_ms: None, ..debounce }, 1),
        ruled(OnDuplicate { period_ms: Some(1), ..OnDuplicate::keep() }, 1),
        ruled(OnDuplicate::throttle(LONG).unique(Unique::Live), 1),
        ruled(debounce, 1).start(StartAt::After(LONG)),
    ];
    for job in rules {
        let error = scene.store.enqueue_many(&[Scene::job(), job]).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Invalid { index: 1, invalid: InvalidJob::OnDuplicate { .. } }),
            "{error:?}"
        );
    }
    outcome(&scene, ruled(OnDuplicate::replace(), 1)).await;
    let large = NewJob::new(KIND, &"x".repeat(PAYLOAD_BYTES_MAX))
        .unwrap()
        .key("k")
        .on_duplicate(OnDuplicate::replace());
    let error = scene.try_enqueue(large).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Invalid { invalid: InvalidJob::PayloadTooLarge { .. }, .. }),
        "{error:?}"
    );
}

pub async fn a_key_that_was_passed_on_goes_with_its_last_job(scene: Scene) {
    let live = OnDuplicate::keep().unique(Unique::Live);
    let first = scene.running(ruled(live, 1)).await;
    scene.finish(&first, End::Fail { failure: failure() }).await;
    let second = scene.running(ruled(live, 2)).await;
    let deleted = prune(&scene, &NOTHING_KEPT).await;
    assert_eq!(deleted.what.failed, 1, "the job that gave the key away is deleted");
    assert_eq!(outcome(&scene, ruled(live, 3)).await, (second.run.job, Kept), "and the key is still held");

    // The job that holds the key goes first; the other one stays, without the key.
    scene.finish(&second, End::Fail { failure: failure() }).await;
    let third = scene.running(ruled(live, 4)).await;
    scene.finish(&third, End::Succeed { result: None }).await;
    let only_succeeded = milepost_core::retention::RetentionPolicy {
        failed: milepost_core::retention::Keep::Forever,
        ..NOTHING_KEPT
    };
    assert_eq!(prune(&scene, &only_succeeded).await.what.succeeded, 1);
    assert_eq!(examine(&scene.store).await, [], "a job whose key went with a later one is no damage");
    assert_eq!(outcome(&scene, ruled(OnDuplicate::keep(), 5)).await.1, Created);
    assert_eq!(examine(&scene.store).await, []);
}

/// Many callers replace the job of one key while workers claim: each call has exactly one outcome, and no payload is lost.
pub async fn of_calls_and_claims_at_the_same_time_each_has_one_outcome(scene: Scene) {
    const CALLERS: u32 = 8;
    const CALLS: u32 = 25;
    let callers = (0..CALLERS).map(|caller| {
        let scene = scene.clone();
        tokio::spawn(async move {
            let mut answers = Vec::new();
            for call in 0..CALLS {
                let (job, made) = outcome(&scene, ruled(OnDuplicate::replace(), caller * CALLS + call)).await;
                answers.push((caller * CALLS + call, job, made));
            }
            answers
        })
    });
    let claims = {
        let scene = scene.clone();
        tokio::spawn(async move {
            let mut claimed = Vec::new();
            let mut idle = 0;
            while idle < 40 {
                let jobs = scene.claim(2).await;
                idle = if jobs.is_empty() { idle + 1 } else { 0 };
                for job in jobs {
                    claimed.push((job.run.job, number_of(&job)));
                    scene.finish(&job, End::Succeed { result: None }).await;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            claimed
        })
    };
    let answers: Vec<_> = join_all(callers).await.into_iter().flat_map(Result::unwrap).collect();
    let mut claimed = claims.await.unwrap();
    for job in scene.claim(2).await {
        claimed.push((job.run.job, number_of(&job)));
    }
    assert!(answers.iter().all(|(.., made)| matches!(made, Created | Replaced)), "{answers:?}");
    let created: HashSet<JobId> =
        answers.iter().filter(|(.., made)| *made == Created).map(|(_, job, _)| *job).collect();
    let ran: HashSet<JobId> = claimed.iter().map(|(job, _)| *job).collect();
    assert_eq!((ran.len(), &ran), (claimed.len(), &created), "each job that was created ran once");
    for (job, number) in claimed {
        let calls = answers.iter().filter(|(_, called, _)| *called == job).count();
        assert_eq!(scene.count(job, Verb::Edit).await, calls - 1, "each replacement is in the history");
        assert_eq!(self::number(&scene, job).await, number, "the payload that ran is the last one");
        assert!(answers.iter().any(|(call, called, _)| *call == number && *called == job));
        scene.assert_history_folds(job).await;
    }
    assert_eq!(examine(&scene.store).await, []);
}

//! A long history that retention takes in portions is sound at every moment.

use std::time::Duration;

use milepost_core::doctor::Check;
use milepost_core::finish::End;
use milepost_core::ident::JobId;
use milepost_core::port::Operation;
use milepost_core::retention::{Keep, Pace, RetentionPolicy};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::Scene;
use milepost_testkit::examine::{examine, look};
use milepost_testkit::home::Home;
use milepost_testkit::scene::{LONG, failure, retry};

use crate::{checks, homes};

const KEEP_NOTHING: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    failed: Keep::For(Duration::ZERO),
    ..RetentionPolicy::FOREVER
};

/// A job whose first run failed, that was snoozed more than 30,000 times and is over since its second run.
async fn over_after_long(home: &dyn Home, scene: &Scene, end: End) -> JobId {
    let first = scene.running(Scene::job()).await;
    let job = first.run.job;
    scene.finish(&first, retry(LONG)).await;
    scene.operate(job, Operation::new(Verb::Snooze)).await.unwrap();
    let columns = format!("job_id, {}, verb, from_state, to_state, attempt, token", home.time("at"));
    for _ in 0..15 {
        home.tamper(&format!(
            "insert into milepost.history ({columns}) select {columns} from milepost.history
             where verb = 'snooze' and job_id = {}",
            home.id(job)
        ))
        .await;
    }
    let second = scene.claim(1).await.remove(0);
    assert_eq!(second.run.job, job);
    scene.finish(&second, end).await;
    job
}

/// Prunes until the front of its history is gone, and not the rest.
async fn prune_half_way(scene: &Scene, job: JobId) {
    // A store may keep what happened last of all.
    scene.operate(scene.enqueue(Scene::job()).await, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    let pace = Pace { limit: 10, rest: 0 };
    while scene.history(job).await[0].verb == Verb::Create {
        assert!(scene.store.prune(&KEEP_NOTHING, pace).await.unwrap().more);
    }
    assert!(scene.history(job).await.len() > 2, "half way");
}

async fn is_sound(scene: &Scene) {
    assert_eq!(examine(&scene.store).await, []);
    for check in scene.store.checks() {
        assert_eq!(scene.store.repair(check, "ada@host", &look(), 100).await.unwrap(), 0, "{check}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_retention_took_half_of_is_no_finding() {
    let ends = [
        (End::Succeed { result: None }, JobState::Succeeded, Verb::Rerun),
        (End::Cancel, JobState::Canceled, Verb::Rerun),
        (End::Fail { failure: failure() }, JobState::Failed, Verb::RetryNow),
    ];
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        for (end, state, back) in ends.clone() {
            let job = over_after_long(home.as_ref(), &scene, end).await;
            prune_half_way(&scene, job).await;
            assert_eq!(scene.state(job).await, state);
            is_sound(&scene).await;

            scene.operate(job, Operation::new(back)).await.unwrap();
            is_sound(&scene).await;
            let again = scene.claim(1).await.remove(0);
            is_sound(&scene).await;
            scene.finish(&again, End::Succeed { result: None }).await;
            is_sound(&scene).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_retention_cannot_have_taken_is_a_finding() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let (job, _) = scene.job_in(JobState::RetryWait).await;
        home.tamper(&format!(
            "delete from milepost.history where verb = 'create' and job_id = {}",
            home.id(job)
        ))
        .await;
        let found = checks(&examine(&scene.store).await);
        assert_eq!(found, [Check::NotCreatedOnce, Check::HistoryGap], "it was never over");
    }
}

//! Detection and repair: every type of damage is found by its check and repaired where that is safe.

use std::time::Duration;

use milepost_conformance::audit::acting;
use milepost_core::doctor::{Check, Severity, Stores};
use milepost_core::finish::End;
use milepost_core::limit::Limit;
use milepost_core::port::Operation;
use milepost_core::schedule::Source;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::Scene;
use milepost_testkit::examine::{examine, examined, look};
use milepost_testkit::home::{Home, PostgresHome, SqliteHome};
use milepost_testkit::scene::{failure, retry};

use crate::doctor::damage::Patient;
use crate::doctor::{checks, homes};

async fn every_damage_is_found_and_mended_where_that_is_safe(fresh: impl AsyncFn() -> Box<dyn Home>) {
    let mut tried = 0;
    for &check in Check::ALL.iter().filter(|check| check.stores() == Stores::All) {
        let home = fresh().await;
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let Some(mut expected) = patient.damage(check).await else { continue };
        tried += 1;
        expected.push(check);
        expected.sort_unstable();
        let findings = examine(&patient.scene.store).await;
        assert_eq!(checks(&findings), expected, "{check}: {findings:#?}");
        for finding in &findings {
            assert!(!finding.examples.is_empty() && finding.count >= finding.examples.len() as u64);
        }
        is_mended_where_that_is_safe(check, &patient).await;
    }
    assert_eq!(tried, Check::ALL.iter().filter(|check| check.stores() == Stores::All).count() - 1);
}

async fn is_mended_where_that_is_safe(check: Check, patient: &Patient<'_>) {
    let Patient { home, scene } = patient;
    let mended = acting(&scene.store).repair(check, &look(), 100).await.unwrap();
    let left = examine(&scene.store).await;
    if check.repair().is_none() {
        assert_eq!(mended, 0, "{check}");
        assert!(checks(&left).contains(&check), "{check}");
        assert_eq!(home.count("select count(*) from milepost.audit").await, 0, "{check}");
        return;
    }
    assert!(mended > 0 || check == Check::WorkerUnburied, "{check}");
    assert!(!checks(&left).contains(&check), "{check}: {left:#?}");
    let audited = "select count(*) from milepost.audit where who = 'ada@host' and what = 'doctor.repair'";
    assert_eq!(home.count(audited).await, i64::from(mended > 0), "{check}");
    // The damaged data is consistent again.
    assert_eq!(left, [], "{check}");
    for job in scene.store.jobs(&milepost_core::search::JobFilter::default()).await.unwrap() {
        scene.assert_history_folds(job.id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_postgres_store_is_found_and_mended_where_that_is_safe() {
    every_damage_is_found_and_mended_where_that_is_safe(async || Box::new(PostgresHome::fresh().await) as _)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_a_sqlite_store_is_found_and_mended_where_that_is_safe() {
    every_damage_is_found_and_mended_where_that_is_safe(async || Box::new(SqliteHome::fresh().await) as _)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_put_back_in_its_place_stands_as_it_did() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        for &state in JobState::ALL {
            let job = scene.job_left_in(state).await;
            let before = scene.view(job).await.row;
            let id = home.id(job);
            home.tamper(&format!("delete from milepost.live where id = {id}")).await;
            home.tamper(&format!("delete from milepost.ended where id = {id}")).await;
            assert_eq!(scene.store.repair(Check::JobWithoutPlace, &look(), 9).await.unwrap(), 1);
            let after = scene.view(job).await.row;
            let stands = |row: &milepost_core::listing::JobRow| {
                (row.state, row.token, row.attempt, row.max_attempts, row.worker, row.ready_at.is_some())
            };
            assert_eq!(stands(&after), stands(&before), "{state}");
            assert_eq!(examine(&scene.store).await, [], "{state}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_history_is_not_whole_is_not_put_back() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let (job, _) = scene.job_in(JobState::RetryWait).await;
        home.tamper("delete from milepost.history where verb = 'claim'").await;
        home.tamper(&format!("delete from milepost.live where id = {}", home.id(job))).await;
        assert_eq!(scene.store.repair(Check::JobWithoutPlace, &look(), 9).await.unwrap(), 0);
        assert!(examined(&scene.store, Check::JobWithoutPlace).await.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_freed_goes_to_the_one_that_waits() {
    for home in homes().await {
        let patient = Patient { home: home.as_ref(), scene: Scene::on(home.store()).await };
        let scene = &patient.scene;
        let (holder, waiting) = patient.grouped().await;
        patient.of("live", "update milepost.live set group_key = null", holder).await;
        assert_eq!(scene.state(waiting).await, JobState::Blocked);
        scene.store.repair(Check::SlotWithoutHolder, &look(), 9).await.unwrap();
        assert_eq!(scene.state(waiting).await, JobState::Pending);
        scene.assert_history_folds(waiting).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_of_a_group_are_held_against_its_limit() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        scene.store.put_limit(&Limit::group("g:*").slots(2), Source::Operator).await.unwrap();
        let jobs: Vec<_> = (0..3).map(|_| Scene::job().group("g:1")).collect();
        scene.store.enqueue_many(&jobs).await.unwrap();
        assert_eq!(examine(&scene.store).await, [], "two of three jobs hold a slot");
        home.tamper("delete from milepost.group_slot").await;
        let mended = scene.store.repair(Check::HolderWithoutSlot, &look(), 9).await.unwrap();
        assert_eq!(mended, 2, "each job gets a slot");
        assert_eq!(examine(&scene.store).await, []);
        scene.store.put_limit(&Limit::group("g:*").slots(1), Source::Operator).await.unwrap();
        let findings = examine(&scene.store).await;
        assert_eq!(checks(&findings), [Check::GroupOverLimit]);
        assert_eq!(findings[0].severity, Severity::Warning, "a surplus of holders is only a warning");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_worker_is_fenced_and_spends_its_attempt() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let (again, last) = (Scene::job(), Scene::job().max_attempts(1));
        let (again, last) = (scene.running(again).await, scene.running(last).await);
        home.tamper("update milepost.live set worker_id = null").await;
        scene.store.repair(Check::RunningWithoutWorker, &look(), 9).await.unwrap();
        assert_eq!(scene.state(again.run.job).await, JobState::RetryWait);
        assert_eq!(scene.state(last.run.job).await, JobState::Failed);
        let late = scene.finish(&again, End::Succeed { result: None }).await;
        assert_eq!(late, milepost_core::finish::Finished::Fenced);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_runs_only_by_a_change_of_its_row_is_not_ended_again() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let run = scene.running(Scene::job().max_attempts(1)).await;
        scene.finish(&run, End::Fail { failure: failure() }).await;
        home.tamper("update milepost.live set state = 'running', worker_id = null, token = 7").await;
        let before = checks(&examine(&scene.store).await);
        assert_eq!(scene.store.repair(Check::RunningWithoutWorker, &look(), 9).await.unwrap(), 0);
        assert_eq!(checks(&examine(&scene.store).await), before, "the repair added no damage");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_behind_its_history_is_raised_but_not_while_the_job_runs() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let first = scene.running(Scene::job()).await;
        scene.finish(&first, retry(Duration::ZERO)).await;
        scene.operate(first.run.job, Operation::new(Verb::RetryNow)).await.unwrap();
        let run = scene.claim(1).await.remove(0).run;
        home.tamper("update milepost.live set token = 1").await;
        assert_eq!(scene.store.repair(Check::TokenDiffers, &look(), 9).await.unwrap(), 0);
        assert_eq!(scene.view(run.job).await.row.token.0, 1);
    }
}

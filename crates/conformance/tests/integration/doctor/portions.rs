//! Long histories and many failed targets, which retention deletes in portions: the store has no findings at any time.

use std::time::Duration;

use milepost::NewJob;
use milepost::bulk::Staging;
use milepost_core::bulk::settings::Settings;
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
use sqlx::{Connection, Executor, PgConnection};

use crate::doctor::{checks, homes};

const KEEP_NOTHING: RetentionPolicy = RetentionPolicy {
    succeeded: Keep::For(Duration::ZERO),
    canceled: Keep::For(Duration::ZERO),
    failed: Keep::For(Duration::ZERO),
    ..RetentionPolicy::FOREVER
};

/// Creates a job whose first run failed, that was snoozed more than 30,000 times, and that ended with its second run.
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

/// Prunes until the beginning of the job's history is deleted, but not the rest. Jobs in other states stay.
async fn prune_half_way(scene: &Scene, job: JobId, state: JobState) {
    let mut policy = RetentionPolicy::FOREVER;
    *match state {
        JobState::Succeeded => &mut policy.succeeded,
        JobState::Failed => &mut policy.failed,
        _ => &mut policy.canceled,
    } = Keep::For(Duration::ZERO);
    // A store may keep the last entry of the history.
    scene.operate(scene.enqueue(Scene::job()).await, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    let pace = Pace { limit: 10, rest: 0 };
    while scene.history(job).await[0].verb == Verb::Create {
        assert!(scene.store.prune(&policy, pace).await.unwrap().more);
    }
    assert!(scene.history(job).await.len() > 2, "half way");
}

async fn is_sound(scene: &Scene) {
    assert_eq!(examine(&scene.store).await, []);
    for check in scene.store.checks() {
        assert_eq!(scene.store.repair(check, &look(), 100).await.unwrap(), 0, "{check}");
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
            prune_half_way(&scene, job, state).await;
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
        assert_eq!(found, [Check::NotCreatedOnce, Check::HistoryGap], "the job never ended");
    }
}

/// Creates a bulk job with custom settings and this number of failed targets.
async fn bulk_with_failures(home: &dyn Home, scene: &Scene, failures: u32) -> JobId {
    let job = scene.store.start_bulk(&Scene::job()).await.unwrap().job;
    let settings = Settings { duty: Some(0.5), ..Settings::default() };
    scene.store.set_bulk(job, &settings.into()).await.unwrap();
    let (id, at, now) = (home.id(job), home.time("at"), home.ago(Duration::ZERO));
    home.tamper(&format!(
        "insert into milepost.bulk_failure (job_id, key, code, message, {at})
         with recursive n(i) as (select 1 union all select i + 1 from n where i < {failures})
         select {id}, '[1]', 'x', 'x', {now} from n;
         update milepost.bulk set failed = {failures} where job_id = {id}"
    ))
    .await;
    job
}

/// Prunes in batches of ten until nothing is left, with an examination after each. Returns the number of batches.
async fn prune_soundly(scene: &Scene) -> u32 {
    // A store may keep the last entry of the history.
    scene.operate(scene.enqueue(Scene::job()).await, Operation::new(Verb::Snooze).delay(LONG)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    let mut batches = 0;
    loop {
        let pruned = scene.store.prune(&KEEP_NOTHING, Pace { limit: 10, rest: 0 }).await.unwrap();
        is_sound(scene).await;
        if !pruned.more && pruned.rows == 0 {
            return batches;
        }
        // On a busy machine, the time limit of a call may expire before it deletes anything.
        batches += u32::from(pruned.rows > 0);
    }
}

async fn rows_about_bulks(home: &dyn Home) -> [i64; 3] {
    let count = async |table: &str| home.count(&format!("select count(*) from milepost.{table}")).await;
    [count("bulk").await, count("bulk_setting").await, count("bulk_failure").await]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_job_is_forgotten_with_its_settings_and_failures() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let job = bulk_with_failures(home.as_ref(), &scene, 95).await;
        is_sound(&scene).await;
        assert_eq!(prune_soundly(&scene).await, 0, "a run that needs attention is kept");
        scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        prune_soundly(&scene).await;
        assert!(scene.store.job(job).await.unwrap().is_none());
        assert_eq!(rows_about_bulks(home.as_ref()).await, [0, 0, 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_go_in_portions_and_what_is_left_of_them_is_sound() {
    let home = milepost_testkit::home::PostgresHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let job = bulk_with_failures(&home, &scene, 95).await;
    scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3)).await;
    for left in [85, 75, 65] {
        let pruned = scene.store.prune(&KEEP_NOTHING, Pace { limit: 10, rest: 0 }).await.unwrap();
        assert_eq!((pruned.rows, pruned.more), (10, true));
        assert_eq!(rows_about_bulks(&home).await, [1, 1, left]);
        is_sound(&scene).await;
    }
    scene.operate(job, Operation::new(Verb::Rerun)).await.unwrap();
    is_sound(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_that_a_run_tries_again_are_forgotten_with_that_run() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let job = bulk_with_failures(home.as_ref(), &scene, 45).await;
        scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        let again = scene.store.retry_bulk_failures(job).await.unwrap().job;
        is_sound(&scene).await;
        prune_soundly(&scene).await;
        assert!(scene.store.job(job).await.unwrap().is_none(), "the first run is deleted");
        assert_eq!(rows_about_bulks(home.as_ref()).await, [1, 0, 45], "the other run still uses the rows");
        scene.operate(again, Operation::new(Verb::Cancel)).await.unwrap();
        prune_soundly(&scene).await;
        assert_eq!(rows_about_bulks(home.as_ref()).await, [0, 0, 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_not_given_to_a_retry_by_a_run_that_retention_deletes() {
    let home = milepost_testkit::home::PostgresHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let job = bulk_with_failures(&home, &scene, 5).await;
    scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
    let mut retention = PgConnection::connect(&home.address()).await.unwrap();
    retention.execute("begin").await.unwrap();
    let lock = format!("select from milepost.ended where id = '{job}' for update");
    retention.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(lock))).await.unwrap();
    let store = scene.store.clone();
    let retry = tokio::spawn(async move { store.retry_bulk_failures(job).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    milepost_testkit::wait::until("the retry waits", || async { home.count(waits).await > 0 }).await;
    let delete = format!(
        "delete from milepost.ended where id = '{job}'; delete from milepost.job where id = '{job}';
         delete from milepost.history where job_id = '{job}'; delete from milepost.bulk where job_id = '{job}';
         delete from milepost.bulk_failure where job_id = '{job}';
         delete from milepost.bulk_setting where job_id = '{job}'; commit"
    );
    retention.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(delete))).await.unwrap();
    retry.await.unwrap().unwrap_err();
    assert_eq!(rows_about_bulks(&home).await, [0, 0, 0]);
    is_sound(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failures_of_a_run_that_ends_at_that_moment_are_retried() {
    let home = milepost_testkit::home::PostgresHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let job = bulk_with_failures(&home, &scene, 5).await;
    let mut end = PgConnection::connect(&home.address()).await.unwrap();
    let cancel = format!("begin; select milepost.cancel('{job}')");
    end.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(cancel))).await.unwrap();
    let store = scene.store.clone();
    let retry = tokio::spawn(async move { store.retry_bulk_failures(job).await });
    let waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    milepost_testkit::wait::until("the retry waits", || async { home.count(waits).await > 0 }).await;
    end.execute("commit").await.unwrap();
    let again = retry.await.unwrap().unwrap().job;
    assert_eq!(scene.state(again).await, JobState::Pending);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_of_a_file_go_in_portions_once_no_run_needs_them() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let letter = milepost_testkit::notes::letter_definition(10);
        let mut staging = Staging::begin(scene.store.as_ref(), &letter, "members.csv").await.unwrap();
        for id in 0..95 {
            staging.add(&serde_json::json!({ "id": id, "name": "" })).await.unwrap();
        }
        let job = NewJob::new("letter", &()).unwrap();
        let job = staging.start(job).await.unwrap().job;
        is_sound(&scene).await;
        assert_eq!(prune_soundly(&scene).await, 0, "a run that needs attention is kept");
        scene.operate(job, Operation::new(Verb::Cancel)).await.unwrap();
        let batches = prune_soundly(&scene).await;
        // SQLite deletes as many portions as the time limit of a call allows.
        assert!(batches >= if home.address().starts_with("sqlite:") { 1 } else { 10 }, "{batches}");
        assert!(scene.store.job(job).await.unwrap().is_none());
        let left =
            "select (select count(*) from milepost.bulk_file) + (select count(*) from milepost.bulk_target)";
        assert_eq!(home.count(left).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_outlives_the_one_that_tried_its_failures_again() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        let job = bulk_with_failures(home.as_ref(), &scene, 45).await;
        let run = scene.claim(1).await.remove(0);
        scene.finish(&run, End::Abort).await;
        let again = scene.store.retry_bulk_failures(job).await.unwrap().job;
        scene.operate(again, Operation::new(Verb::Cancel)).await.unwrap();
        prune_soundly(&scene).await;
        assert_eq!(scene.state(job).await, JobState::Aborted);
        assert_eq!(
            rows_about_bulks(home.as_ref()).await,
            [1, 1, 0],
            "the failures were deleted with the run that retried them"
        );
        scene.store.retry_bulk_failures(job).await.unwrap_err();
        is_sound(&scene).await;
    }
}

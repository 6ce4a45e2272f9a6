//! Rows that another program has written, and that cannot be read.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::finish::{End, Failure, Finish, Finished, UNREADABLE};
use milepost_core::limit::{Limit, Rate};
use milepost_core::port::LimitStore;
use milepost_core::schedule::Source;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_testkit::Scene;

use crate::store::fixture::Home;

#[tokio::test]
async fn a_job_whose_row_cannot_be_read_fails_and_others_are_claimed() {
    let home = Home::new().await;
    let scene = Scene::on(Arc::new(home.store.clone())).await;
    for damage in [
        "UPDATE milepost_live SET token = 1099511627776 WHERE id = ?1",
        "UPDATE milepost_live SET attempt = -1099511627776 WHERE id = ?1",
        "UPDATE milepost_live SET max_attempts = -5 WHERE id = ?1",
        "UPDATE milepost_job SET payload = CAST(x'fffe' AS TEXT) WHERE id = ?1",
        "UPDATE milepost_job SET created_at_ms = 9000000000000000000 WHERE id = ?1",
        "UPDATE milepost_job SET nominal_at_ms = -9000000000000000000 WHERE id = ?1",
    ] {
        let [bad, good] = [Scene::job(), Scene::job()];
        let (bad, good) = (scene.enqueue(bad).await, scene.enqueue(good).await);
        let conn = home.connection();
        conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
        conn.execute(damage, [bad.0.as_bytes()]).unwrap_or_else(|error| panic!("{damage}: {error}"));
        let claimed = scene.claim(2).await;
        assert_eq!(claimed.iter().map(|job| job.run.job).collect::<Vec<_>>(), [good], "{damage}");
        assert_eq!(scene.finish(&claimed[0], End::Succeed { result: None }).await, Finished::Accepted);
        let state = "SELECT state, (SELECT error_code FROM milepost_history WHERE job_id = ?1 ORDER BY pos DESC LIMIT 1)
                     FROM milepost_live WHERE id = ?1";
        let found: (String, String) =
            conn.query_row(state, [bad.0.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(found, (JobState::Failed.as_str().to_owned(), UNREADABLE.to_owned()), "{damage}");
    }
}

#[tokio::test]
async fn a_running_job_whose_row_cannot_be_read_fails_when_its_worker_looks_for_its_runs() {
    let home = Home::new().await;
    let scene = Scene::on(Arc::new(home.store.clone())).await;
    let [bad, good] = [scene.running(Scene::job()).await.run.job, scene.running(Scene::job()).await.run.job];
    let conn = home.connection();
    conn.pragma_update(None, "ignore_check_constraints", true).unwrap();
    conn.execute(
        "UPDATE milepost_job SET created_at_ms = 9000000000000000000 WHERE id = ?1",
        [bad.0.as_bytes()],
    )
    .unwrap();
    let held = scene.store.held(scene.worker).await.unwrap();
    assert_eq!(held.iter().map(|job| job.run.job).collect::<Vec<_>>(), [good]);
    let state = "SELECT state FROM milepost_live WHERE id = ?1";
    let state: String = conn.query_row(state, [bad.0.as_bytes()], |row| row.get(0)).unwrap();
    assert_eq!(state, JobState::Failed.as_str());
}

#[tokio::test]
async fn a_running_job_whose_row_is_damaged_prevents_no_end_and_no_rescue_of_others() {
    for damage in [
        "UPDATE milepost_live SET group_key = CAST(x'fffe' AS TEXT) WHERE id = ?1",
        "UPDATE milepost_live SET token = 1099511627776 WHERE id = ?1",
    ] {
        let home = Home::new().await;
        let scene = Scene::on(Arc::new(home.store.clone())).await;
        let [bad, good] = [scene.running(Scene::job()).await, scene.running(Scene::job()).await];
        let lost = scene.running(Scene::job()).await;
        let conn = home.connection();
        conn.execute(damage, [bad.run.job.0.as_bytes()]).unwrap_or_else(|error| panic!("{damage}: {error}"));
        let failure = Failure { code: "failed".to_owned(), message: "it failed".to_owned() };
        let ends = [&bad, &good].map(|job| {
            let end = End::Retry { delay: Duration::ZERO, failure: failure.clone() };
            Finish { run: job.run, end, grouped: true, task: false }
        });
        let ended = scene.store.finish_many(scene.worker, &ends).await.unwrap();
        assert_eq!(ended[1], Finished::Accepted, "{damage}");
        let claimed = scene.claim(2).await;
        assert_eq!(claimed.iter().map(|job| job.run.job).collect::<Vec<_>>(), [good.run.job], "{damage}");
        conn.execute("UPDATE milepost_worker SET lease_expires_at_ms = 0", ()).unwrap();
        let rescued = scene.store.rescue_expired(100, &|_, _, _| Duration::ZERO).await.unwrap();
        assert!(rescued.iter().any(|run| run.run.job == lost.run.job), "{damage}: {rescued:?}");
    }
}

#[tokio::test]
async fn a_damaged_row_hides_no_other_row_of_a_list() {
    let home = Home::new().await;
    let scene = Scene::on(Arc::new(home.store.clone())).await;
    let [bad, good] = [scene.enqueue(Scene::job()).await, scene.enqueue(Scene::job()).await];
    for damage in [
        "UPDATE milepost_job SET created_at_ms = 9223372036854775807 WHERE id = ?1",
        "UPDATE milepost_job SET priority = -5 WHERE id = ?1",
    ] {
        home.connection().execute(damage, [bad.0.as_bytes()]).unwrap();
        let found = scene.store.search_jobs(&JobFilter::default()).await.unwrap();
        assert_eq!(found.rows.iter().map(|job| job.id).collect::<Vec<_>>(), [good], "{damage}");
        let newest = JobFilter { limit: 1, before: Some(good), ..JobFilter::default() };
        let page = scene.store.search_jobs(&newest).await.unwrap();
        assert_eq!(
            (page.rows.len(), page.next),
            (0, Some(bad)),
            "the next page follows the row that cannot be read"
        );
    }
}

#[tokio::test]
async fn a_limit_that_cannot_be_read_stops_only_its_kind() {
    let home = Home::new().await;
    let scene = Scene::on(Arc::new(home.store.clone())).await;
    let limit = Limit::kind("limited", Rate::new(50.0, 50));
    home.store.put_limit(&limit, Source::Operator).await.unwrap();
    home.connection().execute("UPDATE milepost_kind_limit SET burst = -1", ()).unwrap();
    let job = scene.enqueue(Scene::job()).await;
    assert_eq!(scene.claim(1).await[0].run.job, job);
    assert!(home.store.limits().await.unwrap().is_empty());
}

//! Several processes on one SQLite file.

use std::time::Duration;

use futures::future::join_all;
use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::job::NewJob;
use milepost_testkit::home::{Home, SqliteHome, assert_once_each};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::{Scene, wait};
use serde_json::json;

const PROCESSES: usize = 3;
const EACH: usize = 8;

/// Enqueues jobs that wait for this place, if any.
async fn enqueue(scene: &Scene, jobs: usize, waits_for: Option<&str>) -> Vec<JobId> {
    let job = || NewJob::new("test.effect", &json!({ "first_waits_for": waits_for })).expect("JSON");
    let jobs: Vec<NewJob> = (0..jobs).map(|_| job()).collect();
    let made = scene.store.enqueue_many(&jobs).await.expect("enqueued");
    made.into_iter().map(|made| made.job).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_write_one_file_share_its_jobs_and_none_has_its_effect_twice() {
    let home = SqliteHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let settings = Settings::default().concurrency(EACH);
    let program = env!("CARGO_BIN_EXE_conformance-worker");
    let processes: Vec<Process> =
        (0..PROCESSES).map(|_| Process::start(program, &home.address(), settings)).collect();
    // As many jobs as all processes can run at the same time, so that each process has its share.
    let mut jobs = enqueue(&scene, PROCESSES * EACH, Some("all are full")).await;
    wait::until("every process is full", || async {
        let workers = scene.store.workers().await.expect("answered");
        workers.iter().filter(|worker| worker.running == EACH as i64).count() == PROCESSES
    })
    .await;
    let nobody = Run { job: JobId::new(), token: RunToken(0) };
    home.record(nobody, "all are full").await.expect("recorded");
    // Four additional writers in this process.
    let writers = (0..4).map(|_| {
        let scene = scene.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..25 {
                mine.extend(enqueue(&scene, 10, None).await);
            }
            mine
        })
    });
    jobs.extend(join_all(writers).await.into_iter().flat_map(|mine| mine.expect("a writer panicked")));
    assert_eq!(jobs.len(), 1024);
    let limit = Duration::from_secs(600);
    wait::until_within(limit, "every job has had its effect", || async {
        home.effects().await.len() > jobs.len()
    })
    .await;
    scene.assert_all_succeed(&jobs).await;
    assert_once_each(&home, &jobs).await;
    for process in &processes {
        assert!(process.words().stats.claimed >= EACH as u64, "{:?}", process.words());
    }
}

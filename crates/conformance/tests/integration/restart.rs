//! PostgreSQL server that crashes under load and restarts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_core::state::JobState;
use milepost_postgres::PostgresStore;
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::server::Server;
use milepost_testkit::{Scene, database, effect, wait};
use serde_json::json;

/// The answers that the enqueuers received.
#[derive(Default)]
struct Told {
    /// Accepted jobs with their keys.
    accepted: Vec<(String, JobId)>,
    /// Keys of calls that failed: for each there may be one job or none.
    unknown: Vec<String>,
}

/// Enqueues jobs with keys, each in a separate call, until stopped. Never repeats a call.
async fn enqueue_on(store: PostgresStore, name: usize, stop: Arc<AtomicBool>, told: Arc<Mutex<Told>>) {
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let key = format!("{name}-{number}");
        let kind = if number % 2 == 0 { "test.effect" } else { "test.sleep" };
        let job = NewJob::new(kind, &json!({ "ms": 2 })).unwrap().key(&key);
        let answer = store.enqueue_many(&[job]).await;
        match answer {
            Ok(made) => told.lock().unwrap().accepted.push((key, made[0].job)),
            Err(error) if error.is_transient() => told.lock().unwrap().unknown.push(key),
            Err(error) => panic!("unexpected error after a crash: {}", error.chain()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_crashes_under_load() {
    let server = Server::create().await;
    let store = database::open(&server.url()).await;
    effect::prepare(store.pool()).await;
    let settings = Settings::default().lease(Duration::from_secs(15));
    let program = env!("CARGO_BIN_EXE_conformance-worker");
    let mut workers = [0, 1].map(|_| Process::start(program, &server.url(), settings));
    let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Told::default())));
    let enqueuers: Vec<_> = (0..3)
        .map(|name| tokio::spawn(enqueue_on(store.clone(), name, stop.clone(), told.clone())))
        .collect();

    for _ in 0..2 {
        let before: Vec<u64> = workers.iter().map(|worker| worker.words().stats.claimed).collect();
        for (worker, before) in workers.iter_mut().zip(before) {
            worker.until("the worker claims jobs", |words| words.stats.claimed > before + 10).await;
        }
        server.crash().await;
        server.start().await;
    }
    let accepted = || told.lock().unwrap().accepted.len();
    let before = accepted();
    wait::until("jobs are accepted again", || async { accepted() > before + 10 }).await;
    stop.store(true, Ordering::SeqCst);
    for enqueuer in enqueuers {
        enqueuer.await.unwrap();
    }

    let told = std::mem::take(&mut *told.lock().unwrap());
    assert!(!told.unknown.is_empty(), "no call was interrupted by a crash");
    assert_all_is_well(&store, &told).await;
    for mut worker in workers {
        let before = worker.words().stats.claimed;
        let scene = Scene::on(Arc::new(store.clone())).await;
        wait::until("each worker runs jobs again", || async {
            scene.enqueue(NewJob::new("test.sleep", &json!({ "ms": 20 })).unwrap()).await;
            worker.words().stats.claimed > before
        })
        .await;
        worker.terminate();
        assert!(worker.exit().await.success());
    }
}

async fn assert_all_is_well(store: &PostgresStore, told: &Told) {
    let scene = Scene::on(Arc::new(store.clone())).await;
    let mut jobs: Vec<JobId> = told.accepted.iter().map(|(_, job)| *job).collect();
    for key in &told.unknown {
        let made = by_key(store, key).await;
        assert!(made.len() <= 1, "key {key} has {} jobs", made.len());
        jobs.extend(made);
    }
    for (key, job) in &told.accepted {
        assert_eq!(by_key(store, key).await, [*job], "key {key}");
    }
    let there: i64 =
        sqlx::query_scalar("select count(*) from milepost.job").fetch_one(store.pool()).await.unwrap();
    assert_eq!(there, jobs.len() as i64, "the number of jobs matches the accepted calls");
    scene.assert_all_succeed(&jobs).await;

    let counts = store.count_by_state().await.unwrap();
    assert!(counts.iter().all(|(state, jobs)| *state == JobState::Succeeded || *jobs == 0), "{counts:?}");
    let effects: Vec<uuid::Uuid> =
        sqlx::query_scalar("select id from milepost.job where kind = 'test.effect'")
            .fetch_all(store.pool())
            .await
            .unwrap();
    let effects: Vec<JobId> = effects.into_iter().map(JobId).collect();
    effect::assert_once_each(store.pool(), &effects).await;
}

async fn by_key(store: &PostgresStore, key: &str) -> Vec<JobId> {
    let made: Vec<uuid::Uuid> = sqlx::query_scalar("select id from milepost.job where key = $1")
        .bind(key)
        .fetch_all(store.pool())
        .await
        .unwrap();
    made.into_iter().map(JobId).collect()
}

//! Notification of idle workers on PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use milepost::{Outcome, Worker};
use milepost_conformance::runtime::{self, job};
use milepost_core::ident::JobId;
use milepost_core::port::{IntakeStore, WorkerStore};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::{self, Database};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::scene::LONG;
use milepost_testkit::wait;
use sqlx::{Connection, PgConnection};
use tokio::sync::mpsc;

/// Number of the advisory lock that the waker holds.
const WAKER: i32 = 2;
/// Number of the advisory lock that the waker holds exclusively while it sleeps.
const ASLEEP: i32 = 1;

/// Receives the id of each started job.
type Starts = mpsc::UnboundedReceiver<JobId>;

/// Opens a store whose waker does not poll during the test.
async fn sleeper(database: &Database) -> PostgresStore {
    let options = PostgresOptions { sleep_max: LONG, ..PostgresOptions::default() };
    PostgresStore::connect(&database.url(), options).await.unwrap()
}

/// Starts a worker that does not poll during the test.
async fn idle_worker(store: PostgresStore) -> (Worker, Starts) {
    let (sender, starts) = mpsc::unbounded_channel();
    let worker = runtime::builder(Arc::new(store))
        .options(|options| options.poll_interval = LONG)
        .handle_kind(runtime::KIND, milepost::RetryPolicy::default(), move |context| {
            let _ = sender.send(context.run().job);
            async { Ok(Outcome::Done) }
        })
        .start()
        .await
        .unwrap();
    (worker, starts)
}

/// Returns the sessions that hold an advisory lock of the store, with the lock mode.
async fn holders(store: &PostgresStore, lock: i32) -> Vec<(i32, String)> {
    sqlx::query_as(
        "select pid, mode from pg_locks where locktype = 'advisory' and classid = 19792 and objid = $1::int::oid \
         and granted and database = (select oid from pg_database where datname = current_database())",
    )
    .bind(lock)
    .fetch_all(store.pool())
    .await
    .unwrap()
}

async fn until_asleep(store: &PostgresStore) {
    wait::until("all idle workers sleep", || async {
        holders(store, ASLEEP).await.iter().any(|(_, mode)| mode == "ExclusiveLock")
    })
    .await;
}

async fn is_awaited(store: &PostgresStore) -> bool {
    sqlx::query_scalar(
        "select exists (select from pg_locks where locktype = 'advisory' and classid = 19792 and objid = $1::int::oid \
         and (not granted or mode = 'ShareLock') and database = (select oid from pg_database where datname = current_database()))",
    )
    .bind(ASLEEP)
    .fetch_one(store.pool())
    .await
    .unwrap()
}

async fn waker(store: &PostgresStore) -> Option<i32> {
    holders(store, WAKER).await.first().map(|(pid, _)| *pid)
}

/// Waits until the job has started. On the store of a [`sleeper`], only a notification can start it.
async fn until_started(starts: &mut Starts, job: JobId) {
    loop {
        let next = tokio::time::timeout(wait::LIMIT, starts.recv()).await;
        if next.expect("timed out before the job started").expect("no worker is running") == job {
            return;
        }
    }
}

/// Commits jobs one by one while the waker sleeps; each must start.
async fn assert_wakes(store: &PostgresStore, url: &str, starts: &mut Starts, rounds: u32) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    for round in 0..rounds {
        until_asleep(store).await;
        let mut tx = connection.begin().await.unwrap();
        let made = milepost_postgres::enqueue(&mut tx, &job()).await.unwrap();
        // Stays open for up to 1.2 s, longer than a waker waits before it scans from the bottom again.
        tokio::time::sleep(Duration::from_millis(300) * (round % 5)).await;
        tx.commit().await.unwrap();
        until_started(starts, made.job).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_committed_while_all_workers_sleep_is_reported() {
    let database = Database::migrated().await;
    let store = sleeper(&database).await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    assert_wakes(&store, &database.url(), &mut starts, 6).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_begun_while_awake_lets_nobody_sleep_before_its_commit() {
    let database = Database::migrated().await;
    let store = sleeper(&database).await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut neighbour = PgConnection::connect(&database.url()).await.unwrap();
    for _ in 0..5 {
        until_asleep(&store).await;
        // Waits for the sleep lock, which the waker releases when a job wakes it, and keeps it awake until the transaction has begun.
        let mut helper = neighbour.begin().await.unwrap();
        let kept_awake = sqlx::query("select pg_advisory_xact_lock_shared(19792, 1)").execute(&mut *helper);
        let woken = async {
            // The lock may already be granted if the waker woke up without a notification.
            wait::until("the sleep lock is requested", || is_awaited(&store)).await;
            store.enqueue(&job()).await.unwrap();
        };
        tokio::join!(kept_awake, woken).0.unwrap();
        let mut tx = connection.begin().await.unwrap();
        let made = milepost_postgres::enqueue(&mut tx, &job()).await.unwrap();
        helper.rollback().await.unwrap();
        // Longer than the interval in which claims scan only above their floors.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let modes = holders(&store, ASLEEP).await;
        assert!(modes.iter().all(|(_, mode)| mode == "ShareLock"), "a worker is asleep: {modes:?}");
        tx.commit().await.unwrap();
        until_started(&mut starts, made.job).await;
    }
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_session_wakes_all_when_the_wakers_was_ended() {
    let database = Database::migrated().await;
    let store = sleeper(&database).await;
    let (first, mut starts) = idle_worker(store.clone()).await;
    let (second, mut others) = idle_worker(sleeper(&database).await).await;
    until_asleep(&store).await;
    let ended = waker(&store).await.expect("no session is the waker");
    sqlx::query("select pg_terminate_backend($1)").bind(ended).execute(store.pool()).await.unwrap();
    wait::until("another session is the waker", || async {
        waker(&store).await.is_some_and(|pid| pid != ended)
    })
    .await;
    // Either worker may get a job.
    let (sender, mut both) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(start) =
            tokio::select! { start = starts.recv() => start, start = others.recv() => start }
        {
            let _ = sender.send(start);
        }
    });
    assert_wakes(&store, &database.url(), &mut both, 4).await;
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waker_that_hangs_is_unseated() {
    let database = Database::migrated().await;
    let store = sleeper(&database).await;
    let program = env!("CARGO_BIN_EXE_conformance-worker");
    let hanging = Process::start(program, &database.url(), Settings::default());
    wait::until("the process is the waker", || async { waker(&store).await.is_some() }).await;
    let unseated = waker(&store).await;
    hanging.pause().await;
    // This process expects a heartbeat from the waker every second.
    let impatient = database::open(&database.url()).await;
    let hints = impatient.wakes().await.unwrap();
    wait::until("another process is the waker", || async {
        let now = waker(&store).await;
        now.is_some() && now != unseated
    })
    .await;
    drop(hints);
    impatient.close().await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    assert_wakes(&store, &database.url(), &mut starts, 2).await;
    worker.shutdown().await;
}

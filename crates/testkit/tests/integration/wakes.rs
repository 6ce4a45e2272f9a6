//! Idle workers on PostgreSQL, which hear of new work without polling for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost::{Outcome, Worker};
use milepost_core::ident::JobId;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::{self, Database};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::pulse::{Pulse, STALL};
use milepost_testkit::suite::runtime::{self, job};
use milepost_testkit::wait;
use sqlx::{Connection, PgConnection};
use tokio::sync::mpsc;

/// Well below the second after which a sleeper looks by itself.
const SOON: Duration = Duration::from_millis(400);
/// Held by the one process that listens for all; the number of the lock in the store.
const WAKER: i32 = 2;
/// Held exclusively while that process sleeps.
const ASLEEP: i32 = 1;

/// Says when which job was started.
type Starts = mpsc::UnboundedReceiver<(JobId, Instant)>;

/// A worker that never polls while the test lasts.
async fn idle_worker(store: PostgresStore) -> (Worker, Starts) {
    let (sender, starts) = mpsc::unbounded_channel();
    let worker = runtime::builder(Arc::new(store))
        .options(|options| options.poll_interval = Duration::from_secs(600))
        .handle_kind(runtime::KIND, milepost::RetryPolicy::default(), move |context| {
            let _ = sender.send((context.run().job, Instant::now()));
            async { Ok(Outcome::Done) }
        })
        .start()
        .await
        .unwrap();
    (worker, starts)
}

/// Which sessions hold an advisory lock of the store, and how.
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

async fn waker(store: &PostgresStore) -> Option<i32> {
    holders(store, WAKER).await.first().map(|(pid, _)| *pid)
}

/// How long it took from the commit until the job was started.
async fn started_after(starts: &mut Starts, job: JobId, committed: Instant) -> Duration {
    loop {
        let next = tokio::time::timeout(wait::LIMIT, starts.recv()).await;
        let (started, at) = next.expect("a job is started").expect("a worker runs");
        if started == job {
            return at.saturating_duration_since(committed);
        }
    }
}

/// So many rounds are enough: a machine that stalls in most of them is too busy to tell how quick anything is.
const ROUNDS_MAX: u32 = 50;

/// Rounds of a measurement; those in which the machine itself stalled say nothing and are repeated.
struct Rounds {
    pulse: Pulse,
    left: u32,
    number: u32,
}

impl Rounds {
    async fn start(url: &str, left: u32) -> Self {
        Self { pulse: Pulse::start(url).await, left, number: 0 }
    }

    /// The next round's number, from 0.
    fn next(&mut self) -> Option<u32> {
        self.pulse.slowest();
        (self.left > 0 && self.number < ROUNDS_MAX).then_some(self.number)
    }

    fn judge(&mut self, took: Duration) {
        let stall = self.pulse.slowest();
        assert!(
            took < SOON || stall > STALL,
            "round {}: started {took:?} after its commit, while a commit took {stall:?}",
            self.number
        );
        self.left -= u32::from(took < SOON);
        self.number += 1;
    }
}

/// Commits jobs one by one while everybody sleeps; each must be started at once.
async fn assert_wakes(store: &PostgresStore, url: &str, starts: &mut Starts, rounds: u32) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let mut rounds = Rounds::start(url, rounds).await;
    while let Some(round) = rounds.next() {
        until_asleep(store).await;
        let mut tx = connection.begin().await.unwrap();
        let made = milepost_postgres::enqueue(&mut tx, &job()).await.unwrap();
        // Open for a while: now and then past the moment at which a sleeper looks by itself.
        tokio::time::sleep(Duration::from_millis(300) * (round % 5)).await;
        tx.commit().await.unwrap();
        rounds.judge(started_after(starts, made.job, Instant::now()).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_committed_while_all_sleep_starts_at_once() {
    let (database, store) = Database::with_store().await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    assert_wakes(&store, &database.url(), &mut starts, 6).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_begun_while_awake_lets_nobody_sleep_before_its_commit() {
    let (database, store) = Database::with_store().await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let mut neighbour = PgConnection::connect(&database.url()).await.unwrap();
    let mut rounds = Rounds::start(&database.url(), 5).await;
    while rounds.next().is_some() {
        until_asleep(&store).await;
        // Waits until the sleeper looks up, and keeps it awake until the transaction has begun.
        let mut helper = neighbour.begin().await.unwrap();
        sqlx::query("select pg_advisory_xact_lock_shared(19792, 1)").execute(&mut *helper).await.unwrap();
        let mut tx = connection.begin().await.unwrap();
        let made = milepost_postgres::enqueue(&mut tx, &job()).await.unwrap();
        helper.rollback().await.unwrap();
        // Longer than claims look back without looking at all there is.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let modes = holders(&store, ASLEEP).await;
        assert!(modes.iter().all(|(_, mode)| mode == "ShareLock"), "somebody sleeps: {modes:?}");
        tx.commit().await.unwrap();
        rounds.judge(started_after(&mut starts, made.job, Instant::now()).await);
    }
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_session_wakes_all_when_the_wakers_was_ended() {
    let (database, store) = Database::with_store().await;
    let (first, mut starts) = idle_worker(store.clone()).await;
    let (second, mut others) = idle_worker(database::open(&database.url()).await).await;
    until_asleep(&store).await;
    let ended = waker(&store).await.expect("somebody is the waker");
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
    let (database, store) = Database::with_store().await;
    let program = env!("CARGO_BIN_EXE_testkit-worker");
    let hanging = Process::start(program, &database.url(), Settings::default());
    wait::until("the process is the waker", || async { waker(&store).await.is_some() }).await;
    let unseated = waker(&store).await;
    hanging.pause().await;
    let (worker, mut starts) = idle_worker(store.clone()).await;
    wait::until("the other process is the waker", || async {
        let now = waker(&store).await;
        now.is_some() && now != unseated
    })
    .await;
    assert_wakes(&store, &database.url(), &mut starts, 2).await;
    worker.shutdown().await;
}

//! Use of Redis hints by workers: they only query the database sooner and wait briefly for an older run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use milepost::{Outcome, RetryPolicy, Worker};
use milepost_conformance::runtime;
use milepost_core::finish::Finished;
use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::port::{Coordination, CoordinationHealth, Operation, Store, WakeStream};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_redis::{Redis, RedisOptions};
use milepost_testkit::database::Database;
use milepost_testkit::home::{Home, SqliteHome};
use milepost_testkit::redis::RedisServer;
use milepost_testkit::scene::{KIND, LONG, retry};
use milepost_testkit::{Scene, wait};
use tokio::sync::mpsc;

/// A store without notifications, as behind a transaction pooler, and a Redis.
struct Stage {
    _database: Database,
    scene: Scene,
    server: RedisServer,
    /// Another client that publishes hints, such as the command line.
    teller: Redis,
}

impl Stage {
    async fn set() -> Self {
        let database = Database::create().await;
        let options = PostgresOptions { wake: WakeMode::Poll, ..PostgresOptions::default() };
        let store = PostgresStore::connect(&database.url(), options).await.unwrap();
        store.migrate().await.unwrap();
        let scene = Scene::on(Arc::new(store)).await;
        let server = RedisServer::running().await;
        let teller = redis(&server).await;
        Self { _database: database, scene, server, teller }
    }

    /// Starts a worker that does not poll or renew its lease during the test. Its handlers stop when a stop is requested.
    async fn worker(&self) -> Worker {
        self.worker_for(runtime::KIND, |context| async move {
            context.cancellation().cancelled().await;
            Ok(Outcome::Stopped)
        })
        .await
    }

    async fn worker_for<F, Fut>(&self, kind: &str, handler: F) -> Worker
    where
        F: Fn(milepost::Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, milepost::JobError>> + Send + 'static,
    {
        let redis = redis(&self.server).await;
        runtime::builder(self.scene.store.clone())
            .options(|options| {
                options.lease = LONG;
                options.poll_interval = LONG;
            })
            .coordination(Arc::new(redis))
            .handle_kind(kind, RetryPolicy::default(), handler)
            .start()
            .await
            .unwrap()
    }

    /// Enqueues a job and announces it, as the command line does.
    async fn enqueue(&self) -> JobId {
        let job = self.scene.enqueue(runtime::job()).await;
        self.announce().await;
        job
    }

    async fn cancel(&self, job: JobId) {
        self.scene.operate(job, Operation::new(Verb::Cancel).grace(LONG)).await.unwrap();
        self.flag(job, Verb::Cancel).await;
    }

    async fn announce(&self) {
        wait::until("Redis accepts the announcement", || self.teller.announce_ready()).await;
    }

    async fn flag(&self, job: JobId, verb: Verb) {
        wait::until("Redis accepts the flag", || self.teller.flag_stop(job, verb)).await;
    }
}

/// Returns a client that does not mistake a busy machine for an unavailable Redis.
async fn redis(server: &RedisServer) -> Redis {
    let options = RedisOptions { timeout: Duration::from_secs(30), ..RedisOptions::default() };
    let redis = Redis::start(&server.url(), options).unwrap();
    assert!(redis.is_up_within(wait::LIMIT).await);
    redis
}

/// Waits until the worker has queried the store, found nothing, and sleeps.
async fn until_idle(stage: &Stage, worker: &Worker) {
    let claimed = worker.stats().claimed;
    let job = stage.enqueue().await;
    stage.scene.until(job, JobState::Running).await;
    stage.cancel(job).await;
    stage.scene.until(job, JobState::Canceled).await;
    assert_eq!(worker.stats().claimed, claimed + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_poll_only_mode_jobs_start_and_stop_long_before_the_poll() {
    let stage = Stage::set().await;
    let worker = stage.worker().await;
    for _ in 0..5 {
        until_idle(&stage, &worker).await;
    }
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_work_again_after_redis_was_gone() {
    let stage = Stage::set().await;
    let worker = stage.worker().await;
    until_idle(&stage, &worker).await;
    stage.server.kill().await;
    wait::until("the worker has noticed that Redis is down", || async {
        worker.stats().coordination_up == Some(false)
    })
    .await;
    let missed = stage.scene.enqueue(runtime::job()).await;
    stage.server.start().await;
    // When Redis is available again, the worker looks for work that it missed.
    stage.scene.until(missed, JobState::Running).await;
    stage.cancel(missed).await;
    stage.scene.until(missed, JobState::Canceled).await;
    until_idle(&stage, &worker).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_job_of_a_group_starts_without_a_poll() {
    let stage = Stage::set().await;
    let worker = stage.worker_for(runtime::KIND, |_| async { Ok(Outcome::Done) }).await;
    let mut jobs = Vec::new();
    for _ in 0..10 {
        jobs.push(stage.scene.enqueue(runtime::job().group("g")).await);
    }
    stage.announce().await;
    stage.scene.assert_all_succeed(&jobs).await;
    worker.shutdown().await;
}

/// A helper whose hints arrive only when the test permits it.
struct HeardLate {
    redis: Redis,
    gate: Mutex<std::sync::mpsc::Receiver<()>>,
}

#[async_trait]
impl Coordination for HeardLate {
    async fn beat(&self, worker: WorkerId, ttl: Duration) {
        self.redis.beat(worker, ttl).await;
    }

    async fn leave(&self, worker: WorkerId) {
        self.redis.leave(worker).await;
    }

    async fn lock(&self, runs: &[Run], ttl: Duration) -> bool {
        self.redis.lock(runs, ttl).await
    }

    async fn unlock(&self, runs: &[Run]) {
        self.redis.unlock(runs).await;
    }

    async fn is_held_by_older(&self, run: Run) -> bool {
        self.redis.is_held_by_older(run).await
    }

    async fn flag_stop(&self, job: JobId, verb: Verb) -> bool {
        self.redis.flag_stop(job, verb).await
    }

    async fn announce_ready(&self) -> bool {
        self.redis.announce_ready().await
    }

    fn hints(&self) -> Box<dyn WakeStream> {
        tokio::task::block_in_place(|| self.gate.lock().unwrap().recv()).unwrap();
        self.redis.hints()
    }

    fn health(&self) -> CoordinationHealth {
        self.redis.health()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_before_a_worker_listens_is_looked_for_when_it_does() {
    let stage = Stage::set().await;
    let (open, gate) = std::sync::mpsc::channel();
    let helper = HeardLate { redis: redis(&stage.server).await, gate: Mutex::new(gate) };
    let first = stage.scene.enqueue(runtime::job()).await;
    let worker = runtime::builder(stage.scene.store.clone())
        .options(|options| options.poll_interval = LONG)
        .coordination(Arc::new(helper))
        .handle_kind(runtime::KIND, RetryPolicy::default(), |_| async { Ok(Outcome::Done) })
        .start()
        .await
        .unwrap();
    stage.scene.assert_all_succeed(&[first]).await;
    // Gives the worker time to query again and to sleep. Without this the test covers less but does not fail.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let missed = stage.enqueue().await;
    open.send(()).unwrap();
    stage.scene.assert_all_succeed(&[missed]).await;
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_the_database_knows_nothing_of_stops_nobody() {
    let stage = Stage::set().await;
    let worker = stage.worker().await;
    let (spared, canceled) = (stage.enqueue().await, stage.enqueue().await);
    for job in [spared, canceled] {
        // Hints may be lost, because the worker may not have subscribed yet.
        wait::until("the job is running", || async {
            stage.announce().await;
            stage.scene.state(job).await == JobState::Running
        })
        .await;
    }
    stage.flag(spared, Verb::Cancel).await;
    stage.flag(JobId::new(), Verb::Abort).await;
    stage.cancel(canceled).await;
    stage.scene.until(canceled, JobState::Canceled).await;
    assert_eq!(stage.scene.state(spared).await, JobState::Running);
    assert_eq!(worker.stats().stopped, 1, "only the job with a stop request in the database is stopped");
    stage.cancel(spared).await;
    stage.scene.until(spared, JobState::Canceled).await;
    worker.shutdown().await;
}

/// Starts a job's second run while the lock of its first run still exists. The channel receives the time at which the second handler started.
async fn second_run(
    scene: &Scene,
    server: &RedisServer,
    zombie: &Redis,
) -> (Worker, JobId, mpsc::UnboundedReceiver<Timestamp>) {
    let job = scene.running(Scene::job()).await;
    zombie.lock(&[job.run], LONG).await;
    assert_eq!(scene.finish(&job, retry(Duration::ZERO)).await, Finished::Accepted);
    let (sender, began) = mpsc::unbounded_channel();
    let worker = runtime::builder(scene.store.clone())
        .coordination(Arc::new(redis(server).await))
        .handle_kind(KIND, RetryPolicy::default(), move |_| {
            let _ = sender.send(Timestamp::now());
            async { Ok(Outcome::Done) }
        })
        .start()
        .await
        .unwrap();
    wait::until("the job is running again", || async { scene.count(job.run.job, Verb::Claim).await == 2 })
        .await;
    (worker, job.run.job, began)
}

/// Returns how long the second run waited before its handler started.
async fn waited(scene: &Scene, job: JobId, began: Timestamp) -> SignedDuration {
    let mut claims = scene.history(job).await.into_iter().filter(|entry| entry.verb == Verb::Claim);
    began.duration_since(claims.next_back().expect("the job was not claimed").at)
}

/// One second, with a tolerance for clocks with millisecond resolution.
const A_SECOND: SignedDuration = SignedDuration::from_millis(950);

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_an_older_one_to_stop_but_not_for_long() {
    let home = SqliteHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let server = RedisServer::running().await;
    let zombie = redis(&server).await;
    let (worker, job, mut began) = second_run(&scene, &server, &zombie).await;
    let began = began.recv().await.unwrap();
    scene.until(job, JobState::Succeeded).await;
    let waited = waited(&scene, job, began).await;
    assert!(waited >= A_SECOND, "the job waited {waited:?}");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_begins_when_the_older_one_lets_go_of_the_lock() {
    let home = SqliteHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let server = RedisServer::running().await;
    let zombie = redis(&server).await;
    let (worker, job, mut began) = second_run(&scene, &server, &zombie).await;
    let run = scene.store.held(scene.worker).await.unwrap();
    assert!(run.is_empty(), "in the database, the first run has ended");
    let first = milepost_core::ident::Run { job, token: milepost_core::ident::RunToken(1) };
    let let_go = Timestamp::now();
    zombie.unlock(&[first]).await;
    let began = began.recv().await.unwrap();
    scene.until(job, JobState::Succeeded).await;
    // On a busy machine, the second may pass before the lock is released.
    let waited = waited(&scene, job, began).await;
    assert!(began >= let_go || waited >= A_SECOND, "the job waited {waited:?}");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_its_own_wakes_needs_no_hints_and_minds_none() {
    let home = SqliteHome::fresh().await;
    let scene = Scene::on(home.store()).await;
    let server = RedisServer::running().await;
    let teller = redis(&server).await;
    let store: Arc<dyn Store> = scene.store.clone();
    let worker = runtime::builder(store)
        .coordination(Arc::new(redis(&server).await))
        .handle_kind(runtime::KIND, RetryPolicy::default(), |_| async { Ok(Outcome::Done) })
        .start()
        .await
        .unwrap();
    let mut jobs = Vec::new();
    for _ in 0..50 {
        let job = scene.enqueue(runtime::job()).await;
        for _ in 0..20 {
            teller.announce_ready().await;
            teller.flag_stop(job, Verb::Abort).await;
        }
        jobs.push(job);
    }
    scene.assert_all_succeed(&jobs).await;
    worker.shutdown().await;
}

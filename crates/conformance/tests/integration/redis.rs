//! Redis as a helper: failures under load (kill, freeze, flush) cause no harm, and Redis is used while it is available.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::ident::JobId;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::home::{Home, assert_once_each};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::redis::RedisServer;
use milepost_testkit::{Scene, on_each_home, wait};
use serde_json::json;

/// Longer than a busy machine stalls, but short enough for locks and heartbeats to expire during the test.
const LEASE: Duration = Duration::from_secs(15);

struct Stage {
    home: Arc<dyn Home>,
    scene: Scene,
    redis: RedisServer,
}

impl Stage {
    async fn set(home: impl Home + 'static) -> Self {
        let scene = Scene::on(home.store()).await;
        Self { home: Arc::new(home), scene, redis: RedisServer::absent() }
    }

    fn worker(&self) -> Process {
        self.worker_with(LEASE)
    }

    fn worker_with(&self, lease: Duration) -> Process {
        let program = env!("CARGO_BIN_EXE_conformance-worker");
        let settings = Settings::default().lease(lease);
        Process::start_with(program, &self.home.address(), Some(&self.redis.url()), settings)
    }

    /// Enqueues jobs of which some commit their effect and their success together, and some start with an effect: that would be duplicated if a second
    /// run started.
    async fn load(&self) -> Vec<JobId> {
        let exactly = self.scene.enqueue_many(60, "test.effect", json!({ "ms": 20 })).await;
        let plain = self.scene.enqueue_many(60, "test.plain", json!({ "ms": 20 })).await;
        [exactly, plain].concat()
    }

    async fn heartbeats(&self) -> usize {
        self.redis.keys("milepost:hb:worker:*").await.len()
    }
}

/// Three workers with a running Redis, each with a job that lasts as long as the test.
struct Fleet {
    workers: Vec<Process>,
    held: Vec<JobId>,
    ended: Vec<JobId>,
}

impl Fleet {
    async fn at_work(stage: &Stage) -> Self {
        let held = stage.scene.enqueue_many(3, "test.sleep", json!({ "ms": 600_000, "heed": true })).await;
        let mut workers: Vec<Process> = (0..3).map(|_| stage.worker()).collect();
        until_up(&mut workers).await;
        for &job in &held {
            stage.scene.until(job, JobState::Running).await;
        }
        wait::until("the heartbeats of all workers and the locks exist", || async {
            let locks = stage.redis.keys("milepost:lock:job:*").await;
            stage.heartbeats().await == 3
                && held.iter().all(|job| locks.iter().any(|key| key.ends_with(&job.to_string())))
        })
        .await;
        Self { workers, held, ended: Vec::new() }
    }

    /// Runs a load until all its jobs have succeeded.
    async fn run(&mut self, stage: &Stage) {
        let load = stage.load().await;
        stage.scene.assert_all_succeed(&load).await;
        self.ended.extend(load);
    }

    /// Starts a load. Returns when its first job has succeeded.
    async fn begin(&mut self, stage: &Stage) {
        let load = stage.load().await;
        stage.scene.until(load[0], JobState::Succeeded).await;
        self.ended.extend(load);
    }

    /// Asserts that no job is lost, duplicated or stuck, and that no worker was considered dead.
    async fn assert_unharmed(&mut self, stage: &Stage) {
        stage.scene.assert_all_succeed(&self.ended).await;
        assert_once_each(stage.home.as_ref(), &self.ended).await;
        for &job in &self.held {
            let row = stage.scene.view(job).await.row;
            assert_eq!((row.state, row.attempt), (JobState::Running, 1), "the first run is still active");
            assert_eq!(stage.scene.count(job, Verb::Claim).await, 1);
        }
        for worker in &self.workers {
            let stats = worker.words().stats;
            assert_eq!((stats.rescued, stats.leases_lost, stats.fenced), (0, 0, 0), "{stats:?}");
        }
        let workers = stage.scene.store.workers().await.unwrap();
        assert!(
            workers.iter().all(|worker| worker.ended_at.is_none()),
            "a worker was declared dead: {workers:#?}"
        );
    }

    /// Waits until heartbeats and locks are stored in Redis again.
    async fn assert_helped_again(&mut self, stage: &Stage) {
        until_up(&mut self.workers).await;
        wait::until("heartbeats and locks exist again", || async {
            let locks = stage.redis.keys("milepost:lock:job:*").await;
            stage.heartbeats().await == 3 && locks.len() >= 3
        })
        .await;
    }
}

async fn until_up(workers: &mut [Process]) {
    for worker in workers {
        worker
            .until("the worker is connected to Redis", |words| words.stats.coordination_up == Some(true))
            .await;
    }
}

async fn until_down(workers: &mut [Process]) {
    for worker in workers {
        worker
            .until("the worker reports that Redis is unavailable", |words| {
                words.stats.coordination_up == Some(false)
            })
            .await;
    }
}

on_each_home! { crate::redis::Stage::set =>
    a_killed_redis_harms_nothing_and_helps_again_when_it_is_back,
    a_frozen_redis_harms_nothing_and_helps_again_when_it_goes_on,
    a_flushed_redis_rescues_nobody,
    workers_start_without_redis_and_find_it_when_it_comes,
}

async fn a_killed_redis_harms_nothing_and_helps_again_when_it_is_back(stage: Stage) {
    stage.redis.start().await;
    let mut fleet = Fleet::at_work(&stage).await;
    for _ in 0..2 {
        fleet.begin(&stage).await;
        stage.redis.kill().await;
        until_down(&mut fleet.workers).await;
        fleet.run(&stage).await;
        stage.redis.start().await;
        fleet.assert_helped_again(&stage).await;
    }
    fleet.run(&stage).await;
    fleet.assert_unharmed(&stage).await;
}

async fn a_frozen_redis_harms_nothing_and_helps_again_when_it_goes_on(stage: Stage) {
    stage.redis.start().await;
    let mut fleet = Fleet::at_work(&stage).await;
    fleet.begin(&stage).await;
    stage.redis.pause();
    until_down(&mut fleet.workers).await;
    fleet.run(&stage).await;
    // Longer than a lease: a worker that depended on Redis would be considered dead.
    tokio::time::sleep(LEASE + LEASE / 2).await;
    fleet.run(&stage).await;
    for worker in &fleet.workers {
        assert!(worker.words().stats.coordination_failures > 0, "the failures are counted");
    }
    stage.redis.revive();
    fleet.assert_helped_again(&stage).await;
    fleet.run(&stage).await;
    fleet.assert_unharmed(&stage).await;
}

async fn a_flushed_redis_rescues_nobody(stage: Stage) {
    stage.redis.start().await;
    let mut fleet = Fleet::at_work(&stage).await;
    fleet.begin(&stage).await;
    let until = tokio::time::Instant::now() + LEASE + LEASE / 2;
    while tokio::time::Instant::now() < until {
        stage.redis.flush().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fleet.run(&stage).await;
    fleet.assert_helped_again(&stage).await;
    fleet.assert_unharmed(&stage).await;
}

async fn workers_start_without_redis_and_find_it_when_it_comes(stage: Stage) {
    // Redis entries of the workers would expire only after this time.
    let lease = Duration::from_secs(120);
    let mut workers: Vec<Process> = (0..2).map(|_| stage.worker_with(lease)).collect();
    let load = stage.load().await;
    stage.scene.assert_all_succeed(&load).await;
    until_down(&mut workers).await;
    stage.redis.start().await;
    until_up(&mut workers).await;
    wait::until("both workers send heartbeats", || async { stage.heartbeats().await == 2 }).await;
    assert_once_each(stage.home.as_ref(), &load).await;
    for mut worker in workers {
        worker.terminate();
        assert!(worker.exit().await.success());
    }
    assert_eq!(
        stage.redis.keys("*").await,
        Vec::<String>::new(),
        "a worker that shuts down deletes its heartbeat"
    );
}

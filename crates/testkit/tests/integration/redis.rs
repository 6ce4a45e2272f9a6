//! Redis beside the store: killed, frozen and flushed under load, it harms nothing; while it is there, it is heeded.

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

/// Long beside what a busy machine holds its breath, short enough for locks and heartbeats to run out meanwhile.
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
        let program = env!("CARGO_BIN_EXE_testkit-worker");
        let settings = Settings::default().lease(lease);
        Process::start_with(program, &self.home.address(), Some(&self.redis.url()), settings)
    }

    /// Jobs of which some have their effect and their success in one commit, and some only begin with an effect: that
    /// is doubled when a second run begins.
    async fn load(&self) -> Vec<JobId> {
        let exactly = self.scene.enqueue_many(60, "test.effect", json!({ "ms": 20 })).await;
        let plain = self.scene.enqueue_many(60, "test.plain", json!({ "ms": 20 })).await;
        [exactly, plain].concat()
    }

    async fn heartbeats(&self) -> usize {
        self.redis.keys("milepost:hb:worker:*").await.len()
    }
}

/// Three workers with a running Redis, each holding a job that lasts as long as the test.
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
        wait::until("all workers' heartbeats and the locks are there", || async {
            let locks = stage.redis.keys("milepost:lock:job:*").await;
            stage.heartbeats().await == 3
                && held.iter().all(|job| locks.iter().any(|key| key.ends_with(&job.to_string())))
        })
        .await;
        Self { workers, held, ended: Vec::new() }
    }

    /// Runs a load to its end.
    async fn run(&mut self, stage: &Stage) {
        let load = stage.load().await;
        stage.scene.assert_all_succeed(&load).await;
        self.ended.extend(load);
    }

    /// Begins a load, and answers when it is under way.
    async fn begin(&mut self, stage: &Stage) {
        let load = stage.load().await;
        stage.scene.until(load[0], JobState::Succeeded).await;
        self.ended.extend(load);
    }

    /// Nothing is lost, doubled or stuck, and nobody was taken for dead.
    async fn assert_unharmed(&mut self, stage: &Stage) {
        stage.scene.assert_all_succeed(&self.ended).await;
        assert_once_each(stage.home.as_ref(), &self.ended).await;
        for &job in &self.held {
            let row = stage.scene.view(job).await.row;
            assert_eq!((row.state, row.attempt), (JobState::Running, 1), "still the first run");
            assert_eq!(stage.scene.count(job, Verb::Claim).await, 1);
        }
        for worker in &self.workers {
            let stats = worker.words().stats;
            assert_eq!((stats.rescued, stats.leases_lost, stats.fenced), (0, 0, 0), "{stats:?}");
        }
        let workers = stage.scene.store.workers().await.unwrap();
        assert!(
            workers.iter().all(|worker| worker.ended_at.is_none()),
            "somebody was declared dead: {workers:#?}"
        );
    }

    /// Everything that Redis carries is there again.
    async fn assert_helped_again(&mut self, stage: &Stage) {
        until_up(&mut self.workers).await;
        wait::until("heartbeats and locks are back", || async {
            let locks = stage.redis.keys("milepost:lock:job:*").await;
            stage.heartbeats().await == 3 && locks.len() >= 3
        })
        .await;
    }
}

async fn until_up(workers: &mut [Process]) {
    for worker in workers {
        worker.until("it has found Redis", |words| words.stats.coordination_up == Some(true)).await;
    }
}

async fn until_down(workers: &mut [Process]) {
    for worker in workers {
        worker.until("it says that Redis is gone", |words| words.stats.coordination_up == Some(false)).await;
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
    // Longer than a lease: whoever needed Redis to live would be dead.
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
    // What they tell Redis would stand for so long.
    let lease = Duration::from_secs(120);
    let mut workers: Vec<Process> = (0..2).map(|_| stage.worker_with(lease)).collect();
    let load = stage.load().await;
    stage.scene.assert_all_succeed(&load).await;
    until_down(&mut workers).await;
    stage.redis.start().await;
    until_up(&mut workers).await;
    wait::until("both workers tell that they live", || async { stage.heartbeats().await == 2 }).await;
    assert_once_each(stage.home.as_ref(), &load).await;
    for mut worker in workers {
        worker.terminate();
        assert!(worker.exit().await.success());
    }
    assert_eq!(
        stage.redis.keys("*").await,
        Vec::<String>::new(),
        "a worker that leaves takes its words with it"
    );
}

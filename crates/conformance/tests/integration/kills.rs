//! Worker processes that are killed, paused and asked to shut down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use milepost_conformance::rescue::no_delay;
use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_testkit::home::{Home, assert_once_each, tokens};
use milepost_testkit::process::{Process, Settings, Words};
use milepost_testkit::scene::{LONG, register};
use milepost_testkit::{Scene, on_each_home, wait};
use serde_json::json;

/// A lease that expires while a worker is frozen; longer than a machine stalls.
const SHORT: Duration = Duration::from_secs(10);

/// Well below the 30 s after which a worker compares its jobs with the store.
const COMPARED_AFTER: Duration = Duration::from_secs(20);

struct Stage {
    home: Arc<dyn Home>,
    scene: Scene,
}

impl Stage {
    async fn set(home: impl Home + 'static) -> Self {
        let scene = Scene::on(home.store()).await;
        Self { home: Arc::new(home), scene }
    }

    fn worker(&self, settings: Settings) -> Process {
        Process::start(env!("CARGO_BIN_EXE_conformance-worker"), &self.home.address(), settings)
    }

    async fn expire_leases(&self) {
        self.home.expire_leases(self.scene.worker).await;
    }

    /// Lets jobs continue that wait for this place.
    async fn say(&self, place: &str) {
        let nobody = Run { job: JobId::new(), token: RunToken(0) };
        self.home.record(nobody, place).await.unwrap();
    }

    /// Freezes a worker, but not during a write: on a SQLite file that would block all other writers.
    async fn pause(&self, worker: &Process) {
        loop {
            worker.pause().await;
            if self.home.is_writable().await {
                return;
            }
            worker.revive();
        }
    }
}

on_each_home! { crate::kills::Stage::set =>
    what_a_killed_worker_held_is_run_by_another_exactly_once,
    jobs_survive_a_worker_killed_again_and_again,
    ends_of_a_worker_revived_after_its_lease_are_fenced,
    transactions_of_a_worker_revived_after_its_lease_are_fenced,
    a_worker_paused_past_its_lease_lets_go_and_registers_anew,
    a_worker_asked_to_leave_ends_short_jobs_and_hands_long_ones_back,
    a_lease_that_was_renewed_while_the_clock_was_ahead_ends_by_the_clock_of_now,
}

async fn a_lease_that_was_renewed_while_the_clock_was_ahead_ends_by_the_clock_of_now(stage: Stage) {
    let Stage { home, scene } = stage;
    let dead = register(&scene.store, Duration::from_secs(1)).await;
    let (column, year) = (home.time("lease_expires_at"), home.ahead(Duration::from_secs(366 * 24 * 3600)));
    home.tamper(&format!("update milepost.worker set {column} = {year} where id = {}", dead.0)).await;
    let job = scene.enqueue(Scene::job()).await;
    assert_eq!(scene.claim_for(dead, 1).await.unwrap().len(), 1);
    wait::until("the lease has expired", || async {
        let rescued = scene.store.rescue_expired(10, &no_delay).await.unwrap();
        rescued.iter().any(|lost| lost.run.job == job && lost.worker == dead)
    })
    .await;
    let workers = scene.store.workers().await.unwrap();
    assert!(
        workers.iter().any(|view| view.id == scene.worker && !view.died),
        "the other workers are still alive"
    );
}

async fn what_a_killed_worker_held_is_run_by_another_exactly_once(stage: Stage) {
    let hanging = stage.scene.enqueue_many(4, "test.effect", json!({ "hang_first": true })).await;
    let mut first = stage.worker(Settings::default().concurrency(8));
    first.until("the worker holds the hanging jobs", |words| words.stats.claimed == 4).await;
    let flowing = stage.scene.enqueue_many(60, "test.effect", json!({ "ms": 15 })).await;
    first.until("some jobs have ended", |words| words.stats.succeeded >= 10).await;
    first.kill().await;
    stage.expire_leases().await;

    let mut second = stage.worker(Settings::default());
    let jobs = [hanging.clone(), flowing].concat();
    stage.scene.assert_all_succeed(&jobs).await;
    assert_once_each(stage.home.as_ref(), &jobs).await;
    second.until("the second worker has rescued the jobs", |words| words.stats.rescued >= 4).await;
    for job in hanging {
        let lost =
            stage.scene.history(job).await.into_iter().find(|entry| entry.verb == Verb::Retry).unwrap();
        assert_eq!(lost.error_code.as_deref(), Some("lease_lost"));
        assert_eq!(stage.scene.view(job).await.row.attempt, 2, "the crash used an attempt");
    }
}

async fn jobs_survive_a_worker_killed_again_and_again(stage: Stage) {
    let mut exactly = stage.scene.enqueue_many(100, "test.effect", json!({ "ms": 10 })).await;
    let mut at_least = stage.scene.enqueue_many(100, "test.plain", json!({ "ms": 10 })).await;
    let mut steady = stage.worker(Settings::default().concurrency(2));
    steady.until("the worker claims jobs", |words| words.stats.claimed > 0).await;
    let workers = stage.scene.store.workers().await.unwrap();
    let survivor = workers.iter().find(|view| view.id != stage.scene.worker).unwrap().id;
    for _ in 0..4 {
        let victim = stage.worker(Settings::default().concurrency(4));
        let began = Instant::now();
        while victim.words().stats.claimed < 8 {
            assert!(began.elapsed() < wait::LIMIT, "the worker holds too few jobs: {:?}", victim.words());
            // Some jobs must be left for the worker, however long its start takes.
            if stage.scene.state(at_least[at_least.len() - 1]).await != JobState::Pending {
                exactly.extend(stage.scene.enqueue_many(10, "test.effect", json!({ "ms": 10 })).await);
                at_least.extend(stage.scene.enqueue_many(10, "test.plain", json!({ "ms": 10 })).await);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        victim.kill().await;
        stage.home.expire_leases(survivor).await;
    }
    stage.scene.assert_all_succeed(&exactly).await;
    stage.scene.assert_all_succeed(&at_least).await;
    assert_once_each(stage.home.as_ref(), &exactly).await;
    for job in at_least {
        let tokens = tokens(stage.home.as_ref(), job).await;
        let distinct: std::collections::HashSet<_> = tokens.iter().collect();
        assert!(
            !tokens.is_empty() && distinct.len() == tokens.len(),
            "at most one effect per claim: {tokens:?}"
        );
        assert!(tokens.len() <= stage.scene.count(job, Verb::Claim).await, "more effects than claims");
    }
}

async fn ends_of_a_worker_revived_after_its_lease_are_fenced(stage: Stage) {
    let revived = revive_while_run_elsewhere(&stage, "test.sleep", |words| words.stats.fenced >= 1).await;
    assert_works_anew(&stage, revived).await;
}

async fn transactions_of_a_worker_revived_after_its_lease_are_fenced(stage: Stage) {
    let revived = revive_while_run_elsewhere(&stage, "test.effect", |words| words.handlers_fenced >= 1).await;
    assert_works_anew(&stage, revived).await;
}

/// Pauses a worker that runs jobs, and resumes it while another one runs them.
async fn revive_while_run_elsewhere(
    stage: &Stage,
    kind: &str,
    is_fenced: impl Fn(&Words) -> bool,
) -> Process {
    let task = json!({ "first_waits_for": "the other worker", "wait_for": "the end of the test" });
    let jobs = stage.scene.enqueue_many(4, kind, task).await;
    // The worker has no free slot, its next heartbeat is far away, and it receives no notifications. It therefore does not detect the loss before its
    // runs end, unless so much time passes that it compares its jobs with the store. In that case its handlers are dropped before they can be fenced.
    // A busy machine may need that long after the worker was resumed, too.
    let began = Instant::now();
    let mut paused = stage.worker(Settings::default().lease(LONG).concurrency(4).polls_only());
    paused.until("the worker holds all jobs", |words| words.stats.claimed == 4).await;
    stage.pause(&paused).await;
    stage.expire_leases().await;
    let mut other = stage.worker(Settings::default());
    other.until("another worker runs them", |words| words.stats.claimed == 4).await;

    stage.say("the other worker").await;
    paused.revive();
    let has_compared = |words: &Words| words.stats.leases_lost == 1 && began.elapsed() >= COMPARED_AFTER;
    let ended = |words: &Words| is_fenced(words) || has_compared(words);
    let words = paused.until("the paused worker was fenced", ended).await;
    assert_eq!(
        (words.stats.succeeded, words.stats.repeated),
        (0, 0),
        "no end of the paused worker was accepted"
    );
    paused.until("the worker has lost its lease", |words| words.stats.leases_lost == 1).await;
    for &job in &jobs {
        let row = stage.scene.view(job).await.row;
        assert_eq!((row.state, row.attempt), (JobState::Running, 2), "the other worker's run is untouched");
    }
    stage.say("the end of the test").await;
    stage.scene.assert_all_succeed(&jobs).await;
    for job in jobs {
        assert_eq!(stage.scene.count(job, Verb::Claim).await, 2, "one claim by each worker");
        let effects = usize::from(kind == "test.effect");
        assert_eq!(tokens(stage.home.as_ref(), job).await.len(), effects, "one effect per job");
    }
    other.kill().await;
    paused
}

async fn assert_works_anew(stage: &Stage, mut revived: Process) {
    let jobs = stage.scene.enqueue_many(3, "test.effect", json!({})).await;
    stage.scene.assert_all_succeed(&jobs).await;
    assert_once_each(stage.home.as_ref(), &jobs).await;
    revived.until("the worker has registered again and runs jobs", |words| words.stats.succeeded == 3).await;
}

async fn a_worker_paused_past_its_lease_lets_go_and_registers_anew(stage: Stage) {
    let jobs = stage.scene.enqueue_many(3, "test.effect", json!({ "hang_first": true })).await;
    let mut paused = stage.worker(Settings::default().lease(SHORT));
    paused.until("the worker holds all jobs", |words| words.stats.claimed == 3).await;
    stage.pause(&paused).await;
    let other = stage.worker(Settings::default());
    stage.scene.assert_all_succeed(&jobs).await;
    other.kill().await;

    paused.revive();
    paused.until("the worker has lost its lease", |words| words.stats.leases_lost >= 1).await;
    let after = stage.scene.enqueue_many(3, "test.effect", json!({})).await;
    stage.scene.assert_all_succeed(&after).await;
    assert_once_each(stage.home.as_ref(), &[jobs, after].concat()).await;
    paused.until("the worker runs jobs again", |words| words.stats.succeeded == 3).await;
}

async fn a_worker_asked_to_leave_ends_short_jobs_and_hands_long_ones_back(stage: Stage) {
    let short =
        stage.scene.enqueue_many(3, "test.effect", json!({ "first_waits_for": "the farewell" })).await;
    let deaf = stage.scene.enqueue_many(2, "test.sleep", json!({ "ms": 600_000 })).await;
    let heeding = stage.scene.enqueue_many(2, "test.sleep", json!({ "ms": 600_000, "heed": true })).await;
    // The long jobs use the whole drain time; the short ones need only a moment.
    let mut worker = stage.worker(Settings::default().drain(Duration::from_secs(20)));
    worker.until("the worker holds all jobs", |words| words.stats.claimed == 7).await;
    worker.terminate();
    stage.say("the farewell").await;
    let status = worker.exit().await;

    assert!(status.success(), "{status}");
    stage.scene.assert_all_succeed(&short).await;
    assert_once_each(stage.home.as_ref(), &short).await;
    for &job in deaf.iter().chain(&heeding) {
        let row = stage.scene.view(job).await.row;
        assert_eq!(
            (row.state, row.attempt),
            (JobState::Pending, 0),
            "released, and the attempt is not counted"
        );
        stage.scene.assert_history_folds(job).await;
        assert_eq!(stage.scene.count(job, Verb::Yield).await, 1);
    }
    let workers = stage.scene.store.workers().await.unwrap();
    let left = workers.iter().find(|view| view.id != stage.scene.worker).unwrap();
    assert!(left.ended_at.is_some() && !left.died && left.running == 0, "the worker signed off: {left:?}");

    let next = stage.worker(Settings::default());
    wait::until("another worker has the released jobs", || async {
        let states = [stage.scene.state(deaf[0]).await, stage.scene.state(heeding[0]).await];
        states == [JobState::Running; 2]
    })
    .await;
    next.kill().await;
}

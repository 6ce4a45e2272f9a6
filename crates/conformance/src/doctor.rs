//! Doctor examinations of a busy store without damage, which must have no findings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::future::join_all;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::TaskState;
use milepost_core::finish::End;
use milepost_core::ident::BatchId;
use milepost_core::job::NewJob;
use milepost_core::port::Operation;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::json;

use crate::audit::log;
use crate::batches::{graph, job};
use milepost_testkit::examine::{examine, examined};
use milepost_testkit::scene::{KIND, LONG, Scene, failure, register, retry};
use milepost_testkit::wait;

pub async fn a_store_with_jobs_in_every_state_has_no_findings(scene: Scene) {
    assert_eq!(examine(&scene.store).await, []);
    for &state in JobState::ALL {
        scene.job_left_in(state).await;
    }
    scene.enqueue(Scene::job().key("k")).await;
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn a_check_that_the_store_does_not_have_finds_nothing(scene: Scene) {
    use milepost_core::doctor::Check;
    let known = scene.store.checks();
    for &check in Check::ALL.iter().filter(|check| !known.contains(check)) {
        assert_eq!(examined(&scene.store, check).await, None);
    }
}

/// Returns a DAG with tasks of all types. Tasks after a failure still run.
fn busy_dag() -> Definition {
    let each = Task::each(KIND, "input.items");
    graph("busy", &[("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"])])
        .task("never", job().when("input.no").after(["a"]))
        .task("list", each.after(["b"]).rule(Rule::AllDone))
        .task("last", job().after(["d", "list", "never"]).rule(Rule::Always))
}

/// Starts batches and operates on earlier ones.
async fn bustle_batches(scene: &Scene, last: &mut Option<BatchId>) {
    let input = json!({ "no": false, "items": [1, 2, 3] });
    let started = scene.store.start_batch(&NewBatch::new("busy", &input).unwrap()).await.unwrap();
    if let Some(batch) = last.replace(started.batch) {
        let tasks = vec![fastrand::u32(0..7), fastrand::u32(0..7)];
        let what = match fastrand::u8(0..6) {
            0 => BatchVerb::Abort,
            1 => BatchVerb::Cancel { tasks },
            2 => BatchVerb::Rerun { tasks },
            3 => BatchVerb::Mark { task: tasks[0], state: TaskState::Succeeded },
            _ => BatchVerb::Resume,
        };
        let operation = BatchOperation { batch, generation: None, grace: Duration::ZERO, note: None, what };
        drop(scene.store.operate_batch(&operation).await);
    }
    scene.store.advance_batches().await.unwrap();
}

/// Enqueues, claims, ends jobs in every way, and operates on them until `stop` is set.
async fn bustle(scene: Scene, number: u32, stop: Arc<AtomicBool>, ended: Arc<AtomicU32>) {
    let worker = register(&scene.store, LONG).await;
    let mut last = None;
    while !stop.load(Ordering::SeqCst) {
        bustle_batches(&scene, &mut last).await;
        let job = |n: u32| match n % 4 {
            0 => Scene::job().group(format!("g{}", fastrand::u32(0..3))),
            1 => Scene::job().key(format!("{number}-{}", fastrand::u32(..))),
            _ => Scene::job(),
        };
        let jobs: Vec<NewJob> = (0..12).map(job).collect();
        let made = scene.store.enqueue_many(&jobs).await.unwrap();
        drop(scene.store.operate(made[3].job, &Operation::new(Verb::Cancel)).await);
        for job in scene.claim_for(worker, 10).await.unwrap() {
            let end = match fastrand::u8(0..8) {
                0 => retry(Duration::ZERO),
                1 => End::Fail { failure: failure() },
                2 => End::Yield { delay: Duration::ZERO, note: String::new() },
                3 => End::Abort,
                _ => End::Succeed { result: None },
            };
            let finish = milepost_core::finish::Finish {
                run: job.run,
                end,
                grouped: job.group.is_some(),
                task: job.batch.is_some(),
            };
            scene.tell(worker, finish).await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
        drop(scene.store.operate(made[2].job, &Operation::new(Verb::Rerun)).await);
        scene.store.fill_groups().await.unwrap();
    }
}

pub async fn a_busy_store_has_no_findings(scene: Scene) {
    scene.store.define_dag(&Dag::check(busy_dag()).unwrap()).await.unwrap();
    let (stop, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let bustle = |n| tokio::spawn(bustle(scene.clone(), n, Arc::clone(&stop), Arc::clone(&ended)));
    let workers: Vec<_> = (0..4).map(bustle).collect();
    for _ in 0..8 {
        let before = ended.load(Ordering::SeqCst);
        let mut found = examine(&scene.store).await;
        // The examinations read from the WAL of a SQLite file, which on a slow machine prevents the WAL from restarting.
        found.retain(|finding| finding.check != milepost_core::doctor::Check::LogHeldBack);
        assert_eq!(found, []);
        wait::until("more jobs have ended", || async { ended.load(Ordering::SeqCst) > before + 10 }).await;
    }
    stop.store(true, Ordering::SeqCst);
    join_all(workers).await.into_iter().for_each(Result::unwrap);
    assert_eq!(examine(&scene.store).await, []);
}

pub async fn a_repair_of_a_sound_store_changes_nothing(scene: Scene) {
    let job = scene.running(Scene::job().group("g")).await.run.job;
    let before = scene.history(job).await.len();
    for check in scene.store.checks() {
        let mended = scene.store.repair(check, &milepost_testkit::examine::look(), 100).await.unwrap();
        assert_eq!(mended, 0, "{check}");
    }
    assert_eq!(log(&scene.store).await, [], "and no audit row was written");
    assert_eq!(scene.history(job).await.len(), before);
}

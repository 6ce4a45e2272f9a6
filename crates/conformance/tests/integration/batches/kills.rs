//! Batches on worker processes that are killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::batches::Batches;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::BatchState;
use milepost_core::transition::Verb;
use milepost_testkit::home::{Home, assert_once_each};
use milepost_testkit::process::{Process, Settings};
use milepost_testkit::wait;
use serde_json::json;

const KILLS: u64 = 6;
/// Compressed lines `from<TAB>to`: `to` may start when `from` has succeeded.
const EDGES: &[u8] = include_bytes!("../../../data/debian-gnome-dag.tsv.gz");

pub(crate) struct Stage {
    pub(crate) home: Arc<dyn Home>,
    pub(crate) batches: Batches,
}

impl Stage {
    pub(crate) async fn set(home: impl Home + 'static) -> Self {
        let batches = Batches::on(home.store()).await;
        Self { home: Arc::new(home), batches }
    }

    fn worker(&self) -> Process {
        let settings = Settings::default().concurrency(16);
        Process::start(env!("CARGO_BIN_EXE_conformance-worker"), &self.home.address(), settings)
    }
}

fn definition() -> Definition {
    let mut after: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let edges = std::io::read_to_string(flate2::read::GzDecoder::new(EDGES)).expect("the file is not gzip");
    for (before, task) in edges.lines().filter_map(|line| line.split_once('\t')) {
        after.entry(before).or_default();
        after.entry(task).or_default().push(before);
    }
    assert!(after.len() > 1000, "the graph is too small");
    after.into_iter().fold(Definition::new("gnome"), |dag, (key, after)| {
        let task = Task { max_attempts: 100, ..Task::job("test.effect") };
        dag.task(key, task.payload(json!({ "ms": 3 })).after(after))
    })
}

pub(crate) async fn the_graph_of_a_distribution_runs_in_order_although_workers_are_killed(stage: Stage) {
    let dag = stage.batches.define(definition()).await;
    let batch = stage.batches.start("gnome", json!({})).await;
    let tasks = dag.graph().len() as u64;
    let mut steady = stage.worker();
    steady.until("the worker claims jobs", |words| words.stats.claimed > 0).await;
    let workers = stage.batches.store.workers().await.unwrap();
    let survivor = workers.iter().find(|view| view.id != stage.batches.scene.worker).unwrap().id;
    for kill in 1..=KILLS {
        let victim = stage.worker();
        // The kills are spread over the whole run: one worker is killed after each of these parts.
        wait::until_within(Duration::from_secs(600), "the next part of the tasks is done", || async {
            stage.batches.view(batch).await.counts.succeeded >= tasks * kill / (KILLS + 1)
        })
        .await;
        victim.kill().await;
        stage.home.expire_leases(survivor).await;
    }
    wait::until_within(Duration::from_secs(600), "the batch is done", || async {
        stage.batches.state(batch).await == BatchState::Done
    })
    .await;
    stage.batches.assert_sound(batch).await;

    let views = stage.batches.tasks(batch).await;
    let jobs: Vec<_> = views.iter().map(|task| task.job.expect("the task has no job")).collect();
    assert_once_each(stage.home.as_ref(), &jobs).await;
    let mut ends = Vec::new();
    for &job in &jobs {
        let history = stage.batches.scene.history(job).await;
        let pos = |verb: Verb| {
            history.iter().filter(|entry| entry.verb == verb).map(|entry| entry.pos).collect::<Vec<_>>()
        };
        let (made, ended) = (pos(Verb::Create), pos(Verb::Succeed));
        assert_eq!((made.len(), ended.len()), (1, 1), "each task was released once and ended once");
        ends.push((made[0], ended[0]));
    }
    for task in 0..u32::try_from(jobs.len()).unwrap() {
        for &before in dag.graph().predecessors(task) {
            assert!(
                ends[before as usize].1 < ends[task as usize].0,
                "{} was released before {} had ended",
                dag.graph().key(task),
                dag.graph().key(before)
            );
        }
    }
}

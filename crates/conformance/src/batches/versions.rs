//! Reruns of tasks in another version of the DAG, to which the batch is moved.

use std::time::Duration;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::TaskView;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::doctor::Check;
use milepost_core::ident::BatchId;
use milepost_core::port::{Operation, StoreResult};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde_json::{Value, json};

use super::data::wait_a_moment;
use super::{Batches, done, fails, gives, graph, invalid, job};
use milepost_testkit::examine::examined;
use milepost_testkit::scene::Scene;

impl Batches {
    /// Starts a batch and creates the jobs of all tasks that can run, however long that takes.
    pub(super) async fn begin(&self, definition: Definition, input: Value) -> BatchId {
        let batch = self.run(definition, input).await;
        self.advance().await;
        batch
    }

    /// Reruns tasks in this version; fails if that is rejected.
    async fn try_renew(&self, batch: BatchId, dag: &Dag, keys: &[&str]) -> StoreResult<BatchOperated> {
        let tasks = keys.iter().map(|key| dag.graph().task(key).expect("a task of the version")).collect();
        self.try_operate(batch, BatchVerb::RerunIn { version: dag.version(), tasks, inside: None }).await
    }

    /// Stores a definition, reruns tasks in it, and asserts that the store is consistent afterwards.
    pub(super) async fn renew(&self, batch: BatchId, definition: Definition, keys: &[&str]) {
        let dag = self.define(definition).await;
        self.try_renew(batch, &dag, keys).await.expect("rerun");
        self.assert_nothing_found().await;
        self.advance().await;
        self.assert_sound(batch).await;
        self.assert_nothing_found().await;
        assert_eq!(self.view(batch).await.version, dag.version());
    }

    /// Asserts that no doctor check for batches has a finding.
    pub(super) async fn assert_nothing_found(&self) {
        let of_batches = Check::ALL.iter().skip_while(|check| **check != Check::TaskStateDiffers);
        for &check in of_batches.take_while(|check| **check != Check::TaskLeftDue) {
            assert_eq!(examined(&self.scene.store, check).await, None);
        }
    }

    /// Returns all listed data of a batch.
    async fn listed(&self, batch: BatchId) -> Value {
        let detail = self.store.batch(batch).await.expect("answered");
        json!([detail, self.tasks(batch).await, self.history(batch).await])
    }
}

/// Returns the history by task key: who, what, previous state.
async fn told(batches: &Batches, batch: BatchId) -> Vec<String> {
    let history = batches.history(batch).await;
    let entries = history.iter().map(|entry| {
        let who = entry.key.as_deref().unwrap_or("the batch");
        format!("{who}: {} {}", entry.verb, entry.to)
    });
    entries.collect()
}

pub async fn a_mended_definition_brings_a_failed_batch_to_its_end(batches: Batches) {
    let dag = |when: &str| graph("d", &[("a", &[]), ("c", &["b"])]).task("b", job().when(when).after(["a"]));
    let batch = batches.begin(dag("tasks.a.output.rows > 0"), json!({})).await;
    batches.step(batch, &["a"], gives(&json!({ "lines": 3 }))).await;
    batches.assert_states(batch, "a succeeded, b failed, c waiting").await;
    batches.renew(batch, dag("tasks.a.output.lines > 0"), &["b"]).await;
    batches.assert_states(batch, "a succeeded, b active, c waiting").await;
    let view = batches.view(batch).await;
    assert_eq!((view.number, view.generation, view.state), (2, 2, BatchState::Running));
    assert_eq!(
        (batches.task(batch, "b").await.generation, batches.task(batch, "a").await.generation),
        (2, 1)
    );
    batches.step(batch, &["b"], done()).await;
    batches.step(batch, &["c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    let history = batches.history(batch).await;
    let notes: Vec<&str> = history.iter().filter_map(|entry| entry.note.as_deref()).collect();
    assert!(notes.contains(&"continues with version 2 of its DAG instead of version 1"), "{notes:?}");
}

pub async fn tasks_keep_what_they_have_although_all_numbers_change(batches: Batches) {
    let dag = |more: &[(&str, &[&str])]| {
        [("m", &[][..]), ("s", &["m"])]
            .iter()
            .chain(more)
            .fold(Definition::new("d"), |dag, (key, after)| {
                dag.task(*key, job().after(after.iter().copied()))
            })
            .task("n", job().payload(json!({ "read": "${ tasks.m.output }" })).after(["m"]))
            .task("o", job().after(["n"]))
            .task("p", job().when("input.no").after(["m"]))
            .task("q", job().after(["o", "s"]))
    };
    let batch = batches.begin(dag(&[]), json!({ "no": false })).await;
    batches.step(batch, &["m"], gives(&json!(7))).await;
    batches.step(batch, &["n", "s"], done()).await;
    batches.step(batch, &["o"], fails()).await;
    let left = batches.task(batch, "o").await.job.unwrap();
    let tasks = batches.numbers(batch, &["o"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    batches.step(batch, &["o"], fails()).await;

    let (before, history) = (batches.tasks(batch).await, told(&batches, batch).await);
    batches.renew(batch, dag(&[("a", &[]), ("nn", &["a", "n"])]), &[]).await;
    batches
        .assert_states(
            batch,
            "a active, m succeeded, n succeeded, nn waiting, o failed, p skipped, q waiting, s succeeded",
        )
        .await;
    let after = batches.tasks(batch).await;
    assert!(after.windows(2).all(|pair| pair[0].task + 1 == pair[1].task));
    let what = |task: &TaskView| (task.key.clone(), task.state, task.job, task.generation, task.ended_at);
    let kept: Vec<_> =
        after.iter().filter(|task| !["a", "nn"].contains(&task.key.as_str())).map(what).collect();
    assert_eq!(kept, before.iter().map(what).collect::<Vec<_>>());
    assert_eq!(told(&batches, batch).await[..history.len()], history);
    // The same applies to the job that the task had before.
    let refused = invalid(batches.scene.operate(left, Operation::new(Verb::Rerun)).await);
    assert_eq!(refused, InvalidBatch::JobOfBatch { job: left, batch, task: "o".to_owned() });

    let tasks = batches.numbers(batch, &["n", "o"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    let claimed = batches.claim(batch).await;
    assert_eq!(claimed.keys().collect::<Vec<_>>(), ["a", "n"]);
    let payload: Value = serde_json::from_str(&claimed["n"].payload).unwrap();
    assert_eq!(payload, json!({ "read": 7 }), "the output of the task is unchanged");
    for job in claimed.values() {
        batches.finish(job, done()).await;
    }
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_task_that_is_added_runs(batches: Batches) {
    let batch = batches.begin(graph("d", &[("b", &[]), ("c", &["b"])]), json!({})).await;
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    let more = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"]), ("e", &["d"])]);
    let more = more.task("f", job().rule(Rule::OneFailed).after(["b", "c"]));
    batches.renew(batch, more, &[]).await;
    batches.assert_states(batch, "a active, b succeeded, c succeeded, d active, e waiting, f skipped").await;
    assert_eq!(batches.view(batch).await.ended_at, None);
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_task_that_is_gone_is_given_up(batches: Batches) {
    let all = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["a"]), ("e", &["b"])]);
    let batch = batches.begin(all.clone(), json!({})).await;
    batches.step(batch, &["a"], done()).await;
    let held = batches.claim(batch).await;
    batches.finish(&held["b"], fails()).await;
    batches.finish(&held["d"], done()).await;
    batches.advance().await;
    let (b, d) = (held["b"].run.job, held["d"].run.job);
    batches.renew(batch, graph("d", &[("a", &[]), ("c", &["a"])]), &[]).await;
    batches.assert_states(batch, "a succeeded, c active").await;
    assert_eq!(
        batches.scene.state(b).await,
        JobState::Canceled,
        "the old job is canceled, so that it cannot be retried"
    );
    assert_eq!(batches.scene.state(d).await, JobState::Succeeded);
    let history = batches.history(batch).await;
    let gone: Vec<_> = history.iter().filter(|entry| entry.task.is_none() && entry.key.is_some()).collect();
    let told: Vec<_> =
        gone.iter().map(|e| (e.key.as_deref().unwrap(), e.verb, e.to.as_str(), e.job)).collect();
    assert_eq!(
        told,
        [
            ("b", Verb::Cancel, "canceled", Some(b)),
            ("d", Verb::Rerun, "succeeded", Some(d)),
            ("e", Verb::Cancel, "canceled", None),
        ]
    );
    assert_eq!(gone[0].note.as_deref(), Some("version 2 does not have this task"));
    // It is now an independent job: its state has no effect on the batch.
    batches.scene.operate(d, Operation::new(Verb::Rerun)).await.unwrap();
    let again = batches.scene.claim(10).await;
    let again = again.iter().find(|job| job.run.job == d).expect("the job did not run again");
    assert_eq!(again.batch, None, "the job no longer belongs to a batch");
    batches.finish(again, fails()).await;
    batches.assert_states(batch, "a succeeded, c active").await;
    batches.assert_nothing_found().await;
}

pub async fn a_task_that_comes_back_has_its_history(batches: Batches) {
    let all = graph("d", &[("a", &[]), ("b", &[])]);
    let batch = batches.begin(all.clone(), json!({})).await;
    batches.step(batch, &["a", "b"], fails()).await;
    batches.renew(batch, graph("d", &[("b", &[])]), &[]).await;
    batches.assert_states(batch, "b failed").await;
    batches.renew(batch, all, &["b"]).await;
    batches.assert_states(batch, "a active, b active").await;
    let history = batches.history(batch).await;
    let of = |key: &str| {
        history.iter().filter(|e| e.key.as_deref() == Some(key)).map(|e| e.task).collect::<Vec<_>>()
    };
    assert_eq!((of("a"), of("b")), (vec![Some(0)], vec![Some(1)]));
    assert_eq!(batches.view(batch).await.generation, 3);
}

pub async fn an_input_that_does_not_fit_another_version_changes_nothing(batches: Batches) {
    let batch = batches.begin(graph("d", &[("b", &[])]), json!({ "day": 3 })).await;
    batches.step(batch, &["b"], fails()).await;
    let schema = json!({ "type": "object", "properties": { "day": { "type": "string" } } });
    let strict = Definition { input_schema: Some(schema), ..graph("d", &[("a", &[]), ("b", &["a"])]) };
    let strict = batches.define(strict).await;
    let before = batches.listed(batch).await;
    let refused = invalid(batches.try_renew(batch, &strict, &["b"]).await);
    assert!(matches!(&refused, InvalidBatch::Input { why } if why.contains("/day")), "{refused}");
    assert_eq!(batches.listed(batch).await, before);
    let unknown = Dag::check(graph("d", &[("z", &[])])).unwrap();
    let refused = invalid(batches.try_renew(batch, &unknown, &["z"]).await);
    assert!(matches!(refused, InvalidBatch::NoSuchVersion { .. }), "{refused}");
    assert_eq!(batches.listed(batch).await, before);
}

pub async fn a_batch_of_which_something_runs_stays_in_its_version(batches: Batches) {
    let old = graph("d", &[("b", &[]), ("c", &[])]).task("d", job().when("true").after(["b"]));
    let batch = batches.begin(old, json!({})).await;
    let held = batches.claim(batch).await;
    batches.finish(&held["c"], fails()).await;
    let new = graph("d", &[("a", &[]), ("b", &[]), ("c", &[])]);
    let new = new.task("d", job().when("true").after(["a", "b"]));
    let new = batches.define(new).await;
    let before = batches.listed(batch).await;
    match invalid(batches.try_renew(batch, &new, &["c"]).await) {
        InvalidBatch::Task { task, state, what, .. } => {
            assert_eq!((task.as_str(), state), ("b", TaskState::Active));
            assert!(what.contains("another version"), "{what}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(batches.listed(batch).await, before);
    let what = BatchVerb::Abort;
    let abort = BatchOperation { batch, generation: None, grace: Duration::from_secs(60), note: None, what };
    batches.store.operate_batch(&abort).await.unwrap();
    batches.finish(&held["b"], done()).await;
    batches.advance().await;
    batches.assert_states(batch, "b succeeded, c failed, d due").await;
    // Due tasks of a stopped batch are not decided yet.
    batches.renew(batch, new.definition().clone(), &["c"]).await;
    batches.assert_states(batch, "a due, b succeeded, c due, d waiting").await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn the_version_that_a_batch_has_is_no_other(batches: Batches) {
    let dag = batches.define(graph("d", &[("a", &[]), ("b", &["a"])])).await;
    let batch = batches.start("d", json!({})).await;
    batches.advance().await;
    let refused = invalid(batches.try_renew(batch, &dag, &["a"]).await);
    let is_it = |key: &str, state| key == "a" && state == TaskState::Active;
    assert!(matches!(&refused, InvalidBatch::Task { task, state, .. } if is_it(task, *state)), "{refused}");
    batches.step(batch, &["a"], fails()).await;
    assert_eq!(invalid(batches.try_renew(batch, &dag, &["b"]).await), InvalidBatch::NothingToRerun(batch));
    batches.try_renew(batch, &dag, &["a"]).await.unwrap();
    batches.advance().await;
    batches.assert_states(batch, "a active, b waiting").await;
    assert_eq!(batches.view(batch).await.number, 1);
    let notes = batches.history(batch).await.into_iter().filter_map(|entry| entry.note);
    assert!(notes.into_iter().all(|note| !note.contains("version")));
}

/// More successors than one page includes.
const HUB: u32 = 3000;

pub async fn ends_that_stand_in_line_are_counted_in_the_other_version(batches: Batches) {
    let hub = Definition::new("hub").task("h", job());
    let hub = (0..HUB).fold(hub, |dag, n| dag.task(format!("s{n:05}"), job().after(["h"])));
    let batch = batches.begin(hub.clone(), json!({})).await;
    let held = batches.claim(batch).await;
    batches.finish(&held["h"], fails()).await;
    let more = hub.task("z", job()).task("r", job().rule(Rule::OneFailed).after(["h"]));
    batches.renew(batch, more, &["h"]).await;
    assert_eq!(batches.advance().await, 0, "nothing is left to advance");
    batches.step(batch, &["h", "z"], done()).await;
    let counts = batches.view(batch).await.counts;
    assert_eq!((counts.active, counts.skipped, counts.succeeded), (u64::from(HUB), 1, 2));
}

pub async fn jobs_of_tasks_that_are_gone_are_kept_as_long_as_the_batch(batches: Batches) {
    let batch = batches.begin(graph("d", &[("a", &[]), ("b", &[])]), json!({})).await;
    batches.work(|_| done()).await;
    let a = batches.task(batch, "a").await.job.unwrap();
    batches.renew(batch, graph("d", &[("b", &[])]), &[]).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    // Pruning always keeps one entry of the history, so add another one.
    batches.scene.enqueue(Scene::job()).await;
    wait_a_moment().await;
    assert_eq!(batches.prune_jobs().await, 0, "the batch still uses the jobs");
    assert_eq!(batches.scene.state(a).await, JobState::Succeeded);
    while batches.store.prune_batches(Duration::ZERO).await.unwrap() > 0 {}
    batches.prune_jobs().await;
    assert!(batches.scene.store.job(a).await.unwrap().is_none(), "no batch uses the job any more");
    batches.assert_nothing_found().await;
}

pub async fn a_task_is_decided_once_when_reruns_and_skips_meet(batches: Batches) {
    let batch = batches.begin(graph("m", &[("c", &[]), ("p", &[]), ("x", &["p"])]), json!({})).await;
    let tasks = batches.numbers(batch, &["c"]).await;
    batches.operate(batch, BatchVerb::Cancel { tasks }).await;
    batches.work(|_| done()).await;
    batches.assert_states(batch, "c canceled, p succeeded, x succeeded").await;
    // The new task is skipped because of `c`. That is decided as soon as the end of `p` is undone; then `x` can run.
    let new = Definition::new("m")
        .task("c", job())
        .task("p", job())
        .task("skipped", job().after(["c", "p"]))
        .task("x", job().rule(Rule::AllDone).after(["skipped"]));
    batches.renew(batch, new, &["p", "x"]).await;
    batches.assert_states(batch, "c canceled, p active, skipped skipped, x active").await;
    let claimed = batches.scene.claim(100).await;
    assert_eq!(claimed.len(), 2, "one job for each running task");
}

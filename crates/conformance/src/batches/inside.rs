//! Reruns of failed tasks in lists and inner batches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::batch::rerun::{Chosen, Rerun};
use milepost_core::batch::subject::Subject;
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::port::StoreResult;
use serde_json::{Value, json};

use super::inner::{child, over_a_list};
use super::{Batches, done, fails, gives, invalid, job};
use milepost_testkit::scene::KIND;

impl Batches {
    /// Returns the plan for a rerun of all failed tasks, as a preview shows it.
    async fn failed(&self, batch: BatchId) -> Result<Rerun, InvalidBatch> {
        let row = self.view(batch).await;
        let (_, definition) =
            self.store.dag(&row.dag, Some(row.version)).await.expect("the version does not exist");
        let is_list = row.parent.as_ref().is_some_and(|parent| parent.items);
        let dag = if is_list { None } else { Some(Dag::check(definition).expect("a DAG")) };
        let subject = Subject { row, dag };
        let filter = Chosen::Failed.filter(&subject).expect("the filter needs no names");
        let again = self.store.batch_tasks(batch, &filter).await.expect("answered");
        let inside = Chosen::Failed.inside(&subject, None, self.store.as_ref()).await.expect("answered");
        Rerun::pinned(&Chosen::Failed, &subject, again, inside)
    }

    /// Reruns all failed tasks, if possible.
    pub async fn try_rerun_failed(&self, batch: BatchId) -> StoreResult<BatchOperated> {
        let plan = self.failed(batch).await?;
        self.try_operate(batch, plan.verb()).await
    }

    /// Reruns all failed tasks and asserts that the preview lists these keys and that the store is consistent afterwards.
    async fn rerun_failed(&self, batch: BatchId, keys: &[&str]) {
        let plan = self.failed(batch).await.expect("something failed");
        let mut told = plan.keys();
        told.sort();
        assert_eq!(told, keys, "keys in the preview");
        let operated = self.try_operate(batch, plan.verb()).await.expect("rerun");
        assert_eq!(
            operated.changed,
            keys.len() as u64,
            "the operation changes as many tasks as in the preview"
        );
        self.assert_nothing_found().await;
        self.advance().await;
        self.assert_nothing_found().await;
    }

    /// Ends all ready jobs. A job fails if `what_fails` returns true for its payload.
    async fn work_but(&self, what_fails: impl Fn(&Value) -> bool) {
        let end = |job: &ClaimedJob| {
            let payload: Value = serde_json::from_str(&job.payload).expect("JSON");
            if what_fails(&payload) { fails() } else { gives(&payload) }
        };
        self.work(end).await;
    }

    /// Returns the jobs of all tasks that have succeeded.
    async fn succeeded(&self) -> BTreeMap<(BatchId, u32), JobId> {
        let mut jobs = BTreeMap::new();
        for view in self.all().await {
            let tasks = self.tasks(view.id).await;
            let succeeded = tasks.into_iter().filter(|task| task.state == TaskState::Succeeded);
            jobs.extend(succeeded.filter_map(|task| Some(((view.id, task.task), task.job?))));
        }
        jobs
    }
}

/// Returns a batch whose list has the items 0, 1 and 2, of which 1 has failed, and the batch of the list.
async fn with_a_failed_item(batches: &Batches, dag: Definition) -> (BatchId, BatchId) {
    let batch = batches.run(dag, json!({})).await;
    batches.step(batch, &["a"], gives(&json!([0, 1, 2]))).await;
    let list = child(batches, batch, "list").await;
    batches.work_but(|payload| payload["item"] == 1).await;
    batches.assert_states(list, "0 succeeded, 1 failed, 2 succeeded").await;
    (batch, list)
}

pub async fn only_items_that_failed_run_again(batches: Batches) {
    let (batch, list) = with_a_failed_item(&batches, over_a_list()).await;
    batches.assert_states(batch, "a succeeded, list failed, z waiting").await;
    let before = batches.succeeded().await;
    batches.rerun_failed(batch, &["list/1"]).await;
    assert_eq!(child(&batches, batch, "list").await, list, "the batch of the list is the same");
    batches.assert_states(batch, "a succeeded, list active, z waiting").await;
    batches.assert_states(list, "0 succeeded, 1 active, 2 succeeded").await;
    assert_eq!((batches.view(batch).await.generation, batches.view(list).await.generation), (2, 2));
    assert_eq!(batches.state(batch).await, BatchState::Running);
    let told = batches.history(batch).await;
    let rerun = told.iter().find(|entry| entry.verb.as_str() == "rerun" && entry.key.is_none());
    assert_eq!(rerun.and_then(|entry| entry.note.as_deref()), Some("by a test"), "{told:?}");
    assert_eq!(batches.succeeded().await, before);
    batches.step(list, &["1"], gives(&json!("again"))).await;
    let joined = &batches.claim(batch).await["z"];
    let item = |n: u32| json!({ "item": n, "n": n });
    assert_eq!(serde_json::from_str::<Value>(&joined.payload).unwrap(), json!([item(0), "again", item(2)]));
    batches.finish(joined, done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.assert_nothing_found().await;
}

/// Starts a batch of `outer`, which has a job and a batch of `middle`; that has a job, a list, and a batch of `leaf`.
async fn deep(batches: &Batches) -> BatchId {
    let payload = |key: &str| job().payload(json!({ "key": key }));
    batches
        .define(Definition::new("leaf").task("x", payload("x")).task("y", payload("y").after(["x"])))
        .await;
    let each = Task::each(KIND, "[1, 2, 3]").payload(json!({ "key": "${ item }" }));
    let middle = Definition::new("middle")
        .task("each", each)
        .task("leaf", Task::batch("leaf"))
        .task("own", payload("own"))
        .task("then", payload("then").after(["each", "leaf", "own"]));
    batches.define(middle).await;
    let outer = Definition::new("outer")
        .task("middle", Task::batch("middle"))
        .task("own", payload("outermost"))
        .task("z", payload("z").after(["middle", "own"]));
    batches.run(outer, json!({})).await
}

pub async fn what_failed_runs_again_at_any_depth(batches: Batches) {
    let outer = deep(&batches).await;
    let failing = [json!(2), json!("x"), json!("outermost")];
    batches.work_but(|payload| failing.contains(&payload["key"])).await;
    batches.assert_states(outer, "middle failed, own failed, z waiting").await;
    let middle = child(&batches, outer, "middle").await;
    batches.assert_states(middle, "each failed, leaf failed, own succeeded, then waiting").await;
    let before = batches.succeeded().await;
    assert_eq!(before.len(), 3, "two items and one task have succeeded");
    batches.rerun_failed(outer, &["middle/each/1", "middle/leaf/x", "own"]).await;
    batches.assert_states(outer, "middle active, own active, z waiting").await;
    batches.assert_states(middle, "each active, leaf active, own succeeded, then waiting").await;
    assert_eq!(batches.succeeded().await, before);
    let claimed = batches.scene.claim(100).await;
    assert_eq!(claimed.len(), 3, "no other job runs");
    for job in &claimed {
        batches.finish(job, done()).await;
    }
    batches.advance().await;
    batches.work_but(|_| false).await;
    assert_eq!(batches.state(outer).await, BatchState::Done);
    assert!(batches.all().await.iter().all(|batch| batch.state == BatchState::Done));
    batches.assert_nothing_found().await;
}

pub async fn what_failed_runs_again_while_other_items_run(batches: Batches) {
    let batch = batches.run(over_a_list(), json!({})).await;
    batches.step(batch, &["a"], gives(&json!([0, 1, 2]))).await;
    let list = child(&batches, batch, "list").await;
    let claimed = batches.claim(list).await;
    batches.finish(&claimed["1"], fails()).await;
    batches.assert_states(batch, "a succeeded, list active, z waiting").await;
    batches.rerun_failed(batch, &["list/1"]).await;
    batches.assert_states(list, "0 active, 1 active, 2 active").await;
    for key in ["0", "2"] {
        batches.finish(&claimed[key], done()).await;
    }
    batches.assert_states(batch, "a succeeded, list active, z waiting").await;
    batches.step(list, &["1"], done()).await;
    batches.assert_states(batch, "a succeeded, list succeeded, z active").await;
}

pub async fn an_inner_batch_that_was_stopped_goes_on(batches: Batches) {
    let outer = deep(&batches).await;
    let middle = child(&batches, outer, "middle").await;
    let leaf = child(&batches, middle, "leaf").await;
    batches.operate(middle, BatchVerb::Abort).await;
    batches.assert_states(outer, "middle aborted, own active, z waiting").await;
    let plan = batches.failed(outer).await.unwrap();
    assert_eq!(plan.resumed().collect::<Vec<_>>(), ["middle", "middle/each", "middle/leaf"]);
    let each = ["middle/each/0", "middle/each/1", "middle/each/2"];
    batches.rerun_failed(outer, &[&each[..], &["middle/leaf/x", "middle/own"]].concat()).await;
    batches.assert_states(outer, "middle active, own active, z waiting").await;
    batches.assert_states(leaf, "x active, y waiting").await;
    assert!(!batches.view(middle).await.stopped);
    // If the running job of a stopped batch succeeds, the batch has no aborted task.
    let claimed = batches.scene.claim(100).await;
    let (what, grace) = (BatchVerb::Abort, Duration::from_secs(600));
    let patient = BatchOperation { batch: leaf, generation: None, grace, note: None, what };
    batches.store.operate_batch(&patient).await.unwrap();
    for job in &claimed {
        batches.finish(job, done()).await;
    }
    batches.advance().await;
    batches.assert_states(leaf, "x succeeded, y due").await;
    let plan = batches.failed(outer).await.unwrap();
    assert_eq!((plan.keys(), plan.resumed().collect::<Vec<_>>()), (vec![], vec!["middle/leaf"]));
    assert_eq!(batches.try_operate(outer, plan.verb()).await.unwrap().changed, 0);
    batches.assert_nothing_found().await;
    batches.advance().await;
    batches.assert_states(leaf, "x succeeded, y active").await;
    batches.work_but(|_| false).await;
    assert_eq!(batches.state(outer).await, BatchState::Done);
    batches.assert_nothing_found().await;
}

pub async fn a_rerun_within_a_stopped_batch_waits_for_its_resume(batches: Batches) {
    let (batch, list) = with_a_failed_item(&batches, over_a_list()).await;
    batches.operate(batch, BatchVerb::Abort).await;
    batches.rerun_failed(batch, &["list/1"]).await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.assert_nothing_found().await;
    batches.step(list, &["1"], done()).await;
    batches.assert_states(batch, "a succeeded, list succeeded, z active").await;
}

pub async fn an_inner_batch_that_was_rerun_meanwhile_is_told(batches: Batches) {
    let (batch, list) = with_a_failed_item(&batches, over_a_list()).await;
    let seen = batches.failed(batch).await.unwrap();
    batches.operate(list, BatchVerb::Rerun { tasks: vec![1] }).await;
    batches.work_but(|payload| payload["item"] == 1).await;
    let refused = invalid(batches.try_operate(batch, seen.verb()).await);
    assert_eq!(refused, InvalidBatch::Overtaken(list));
    assert_eq!(batches.view(batch).await.generation, 1, "nothing was changed");
    batches.assert_states(list, "0 succeeded, 1 failed, 2 succeeded").await;
    batches.rerun_failed(batch, &["list/1"]).await;
    assert_eq!((batches.view(batch).await.generation, batches.view(list).await.generation), (2, 3));
}

pub async fn a_task_that_failed_waits_for_the_list_before_it(batches: Batches) {
    let after = job().payload(json!({ "item": 1 })).after(["list"]).rule(Rule::AllDone);
    let (batch, list) = with_a_failed_item(&batches, over_a_list().task("y", after)).await;
    batches.assert_states(batch, "a succeeded, list failed, y failed, z waiting").await;
    batches.rerun_failed(batch, &["list/1", "y"]).await;
    batches.assert_states(batch, "a succeeded, list active, y waiting, z waiting").await;
    batches.step(list, &["1"], done()).await;
    batches.assert_states(batch, "a succeeded, list succeeded, y active, z active").await;
}

pub async fn what_went_on_from_a_failure_does_not_run_again(batches: Batches) {
    let repair = job().after(["list"]).rule(Rule::OneFailed);
    let (batch, list) = with_a_failed_item(&batches, over_a_list().task("repair", repair)).await;
    batches.assert_states(batch, "a succeeded, list failed, repair succeeded, z waiting").await;
    let repaired = batches.task(batch, "repair").await.job;
    batches.rerun_failed(batch, &["list/1"]).await;
    batches.step(list, &["1"], done()).await;
    batches.assert_states(batch, "a succeeded, list succeeded, repair succeeded, z active").await;
    assert_eq!(batches.task(batch, "repair").await.job, repaired);
}

pub async fn a_list_that_fails_again_at_once_has_failed(batches: Batches) {
    let each = Task::each(KIND, "[{'n': 1}, {}]").payload(json!("${ item.n }"));
    let dag = Definition::new("d").task("list", each).task("z", job().after(["list"]));
    let batch = batches.run(dag, json!({})).await;
    batches.work_but(|_| false).await;
    batches.assert_states(batch, "list failed, z waiting").await;
    for generation in 2..4 {
        batches.rerun_failed(batch, &["list/1"]).await;
        batches.assert_states(batch, "list failed, z waiting").await;
        assert_eq!(batches.view(batch).await.generation, generation);
    }
    batches.assert_states(child(&batches, batch, "list").await, "0 succeeded, 1 failed").await;
}

pub async fn a_list_goes_on_in_another_version_unless_it_is_defined_differently(batches: Batches) {
    let (batch, list) = with_a_failed_item(&batches, over_a_list()).await;
    let in_latest = async |definition: Definition| {
        let dag = batches.define(definition).await;
        let row = batches.view(batch).await;
        let (_, definition) = batches.store.dag("d", Some(row.version)).await.unwrap();
        let subject = Subject { row, dag: Some(Dag::check(definition).unwrap()) };
        let to = batches.store.dag("d", None).await.unwrap().0;
        let inside = Chosen::Failed.inside(&subject, Some(&dag), batches.store.as_ref()).await.unwrap();
        let tasks = batches.tasks(batch).await;
        let plan = Rerun::in_version(&Chosen::Failed, &subject, (to, dag), tasks, inside).unwrap();
        batches.try_operate(batch, plan.verb()).await.unwrap();
        batches.assert_nothing_found().await;
        batches.advance().await;
        plan.keys()
    };
    let added = over_a_list().task("0", job());
    assert_eq!(in_latest(added.clone()).await, ["list/1"]);
    assert_eq!(child(&batches, batch, "list").await, list, "the list continues");
    batches.assert_states(batch, "0 active, a succeeded, list active, z waiting").await;
    batches.work_but(|payload| payload["item"] == 1).await;
    let mut mended = added;
    let each = Task::each(KIND, "tasks.a.output").payload(json!({ "mended": "${ item }" }));
    mended.tasks.retain(|(key, _)| key != "list");
    assert_eq!(in_latest(mended.task("list", each.after(["a"]))).await, ["list"]);
    assert_ne!(child(&batches, batch, "list").await, list, "the list starts again as a new batch");
    assert_eq!(batches.state(list).await, BatchState::Canceled);
    batches.work_but(|_| false).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.assert_nothing_found().await;
}

pub async fn a_batch_in_which_nothing_failed_is_not_rerun(batches: Batches) {
    let outer = deep(&batches).await;
    let nothing = BatchVerb::RerunFailed { tasks: Vec::new(), inside: Vec::new() };
    for _ in 0..2 {
        assert_eq!(invalid(batches.try_rerun_failed(outer).await), InvalidBatch::NothingToRerun(outer));
        let refused = batches.try_operate(outer, nothing.clone()).await;
        assert_eq!(invalid(refused), InvalidBatch::NothingToRerun(outer));
        assert_eq!(batches.view(outer).await.generation, 1);
        batches.work_but(|_| false).await;
    }
    // An inner batch that has ended is not rerun on its own.
    let middle = child(&batches, outer, "middle").await;
    let refused =
        batches.try_operate(middle, BatchVerb::RerunFailed { tasks: vec![0], inside: Vec::new() }).await;
    assert!(matches!(invalid(refused), InvalidBatch::State { .. }));
}

/// Number of items, and of concurrent operators.
const ITEMS: usize = 40;
const OPERATORS: usize = 4;

pub async fn items_end_while_operators_rerun_what_failed(batches: Batches) {
    let batches = Arc::new(batches);
    let each = Task::each(KIND, "input").payload(json!("${ item }"));
    let list = Definition::new("list").task("each", each).task("own", job());
    batches.define(list).await;
    let outer = Definition::new("outer").task("list", Task::batch("list").payload(json!("${ input }")));
    let outer = batches.run(outer, json!((0..ITEMS).collect::<Vec<_>>())).await;
    let claimed = batches.scene.claim(1000).await;
    assert_eq!(claimed.len(), ITEMS + 1);
    let ends = claimed.into_iter().enumerate().map(|(at, job)| {
        let batches = batches.clone();
        tokio::spawn(async move { batches.finish(&job, if at % 2 == 0 { fails() } else { done() }).await })
    });
    let operators = (0..OPERATORS).map(|_| {
        let batches = batches.clone();
        tokio::spawn(async move {
            loop {
                match batches.try_rerun_failed(outer).await {
                    // A few locks are shared by many batches, so two operations can conflict.
                    Err(error) if error.is_transient() => {}
                    Ok(operated) => break assert!(operated.changed > 0, "{operated:?}"),
                    Err(StoreError::Batch(InvalidBatch::Overtaken(_) | InvalidBatch::NothingToRerun(_))) => {
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    for one in join_all(ends.chain(operators)).await {
        one.expect("a task panicked");
    }
    batches.assert_nothing_found().await;
    batches.advance().await;
    finish(&batches, outer).await;
    let list = child(&batches, outer, "list").await;
    let each = batches.view(child(&batches, list, "each").await).await;
    assert_eq!((each.state, each.counts.succeeded), (BatchState::Done, ITEMS as u64));
}

/// Completes all remaining tasks successfully.
pub(super) async fn finish(batches: &Batches, outer: BatchId) {
    if batches.view(outer).await.stopped {
        batches.operate(outer, BatchVerb::Resume).await;
    }
    batches.work(|_| done()).await;
    while !batches.state(outer).await.is_ended() {
        batches.try_rerun_failed(outer).await.expect("only failed tasks prevent the end of the batch");
        batches.advance().await;
        batches.work(|_| done()).await;
        batches.assert_nothing_found().await;
    }
    let all = batches.all().await;
    assert!(all.iter().all(|batch| batch.state.is_ended()), "all batches have ended: {all:?}");
}

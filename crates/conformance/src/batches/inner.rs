//! Tasks that are batches, lists or bulk jobs.

use std::time::Duration;

use milepost_core::batch::DEPTH_MAX;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::bulk;
use milepost_core::bulk::statements::Statements;
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::error::StoreError;
use milepost_core::finish::Finished;
use milepost_core::ident::BatchId;
use milepost_core::job::NewJob;
use milepost_core::job::error::InvalidJob;
use milepost_core::port::Operation;
use milepost_core::schedule::{InvalidSchedule, Schedule, Source, Spec};
use milepost_core::transition::Verb;
use serde_json::{Value, json};

use super::{Batches, done, fails, gives, graph, job};
use milepost_testkit::scene::KIND;

fn payload(job: &ClaimedJob) -> Value {
    serde_json::from_str(&job.payload).unwrap()
}

/// `list` iterates over the result of `a`; `z` reads the results of the items.
pub(super) fn over_a_list() -> Definition {
    let each = Task::each(KIND, "tasks.a.output").payload(json!({"item": "${ item }", "n": "${ index }"}));
    Definition::new("d")
        .task("a", job())
        .task("list", each.after(["a"]))
        .task("z", job().payload(json!("${ tasks.list.output }")).after(["list"]))
}

pub(super) async fn child(batches: &Batches, batch: BatchId, key: &str) -> BatchId {
    batches.task(batch, key).await.batch.expect("the task has no inner batch")
}

pub async fn a_list_is_joined_once(batches: Batches) {
    let batch = batches.run(over_a_list(), json!({})).await;
    let items: Vec<u32> = (0..250).collect();
    batches.step(batch, &["a"], gives(&json!(items))).await;
    batches.assert_states(batch, "a succeeded, list active, z waiting").await;
    let inner = child(&batches, batch, "list").await;
    let view = batches.view(inner).await;
    let parent = view.parent.as_ref().unwrap();
    assert_eq!((parent.batch, parent.key.as_deref(), parent.items), (batch, Some("list"), true));
    assert_eq!(view.counts.active, 250);
    let claimed = batches.claim(inner).await;
    assert_eq!(payload(&claimed["17"]), json!({"item": 17, "n": 17}));
    for (key, job) in &claimed {
        assert_eq!(batches.state(inner).await, BatchState::Running);
        let n = payload(job)["n"].as_u64().unwrap();
        batches.finish(job, gives(&json!(n * 2))).await;
        batches.assert_sound(inner).await;
        assert_eq!(key, &n.to_string());
    }
    assert_eq!(batches.state(inner).await, BatchState::Done);
    batches.advance().await;
    let joined = batches.claim(batch).await;
    let doubled: Vec<u32> = items.iter().map(|n| n * 2).collect();
    assert_eq!(payload(&joined["z"]), json!(doubled));
    batches.finish(&joined["z"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn an_empty_list_succeeds_at_once(batches: Batches) {
    let batch = batches.run(over_a_list(), json!({})).await;
    batches.step(batch, &["a"], gives(&json!([]))).await;
    batches.assert_states(batch, "a succeeded, list succeeded, z active").await;
    assert_eq!(payload(&batches.claim(batch).await["z"]), json!([]));
}

pub async fn items_that_fail_fail_the_task_until_they_are_tried_again(batches: Batches) {
    let batch = batches.run(over_a_list(), json!({})).await;
    batches.step(batch, &["a"], gives(&json!(["x", "y", "z"]))).await;
    let inner = child(&batches, batch, "list").await;
    let claimed = batches.claim(inner).await;
    for key in ["0", "2"] {
        batches.finish(&claimed[key], gives(&json!(key))).await;
    }
    batches.finish(&claimed["1"], fails()).await;
    batches.advance().await;
    assert_eq!(batches.state(inner).await, BatchState::Failed);
    batches.assert_states(batch, "a succeeded, list failed, z waiting").await;
    let error = batches.task(batch, "list").await.error.expect("the task has no error");
    assert!(error.contains(&inner.to_string()), "{error}");
    let tasks = vec![1];
    batches.operate(inner, BatchVerb::Rerun { tasks }).await;
    batches.assert_states(batch, "a succeeded, list active, z waiting").await;
    batches.step(inner, &["1"], gives(&json!("1"))).await;
    assert_eq!(payload(&batches.claim(batch).await["z"]), json!(["0", "1", "2"]));
}

pub async fn a_batch_in_a_batch_leaves_the_results_of_its_last_tasks(batches: Batches) {
    batches.define(graph("in", &[("p", &[]), ("q", &["p"]), ("r", &["p"])])).await;
    let dag = Definition::new("out")
        .task("b", Task::batch("in").payload(json!({"day": "${ input.day }"})))
        .task("z", job().payload(json!("${ tasks.b.output }")).after(["b"]));
    let batch = batches.run(dag, json!({"day": "Monday"})).await;
    let inner = child(&batches, batch, "b").await;
    let detail = batches.store.batch(inner).await.unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(detail.input.get()).unwrap(), json!({"day": "Monday"}));
    batches.step(inner, &["p"], gives(&json!(1))).await;
    batches.step(inner, &["q", "r"], gives(&json!({"rows": 2}))).await;
    assert_eq!(batches.state(inner).await, BatchState::Done);
    let joined = batches.claim(batch).await;
    assert_eq!(payload(&joined["z"]), json!({"q": {"rows": 2}, "r": {"rows": 2}}));
    batches.assert_states(batch, "b succeeded, z active").await;
}

pub async fn a_batch_that_cannot_start_fails_its_task(batches: Batches) {
    let picky = json!({"type": "object", "required": ["day"]});
    batches.define(Definition { input_schema: Some(picky), ..graph("picky", &[("a", &[])]) }).await;
    let parameters = [("place".to_owned(), None)].into();
    let statements = Some(Statements { parameters, ..Statements::default() });
    let definition =
        bulk::definition::Definition { statements, ..bulk::definition::Definition::new("notify") };
    batches.scene.store.put_bulk(&definition, Source::Operator).await.unwrap();
    let dag = Definition::new("d")
        .task("missing", Task::batch("nowhere"))
        .task("unfit", Task::batch("picky").payload(json!({})))
        .task("bulk", Task::bulk("nothing"))
        .task("lacking", Task::bulk("notify").payload(json!({"town": "Bern"})));
    let batch = batches.run(dag, json!({})).await;
    batches.assert_states(batch, "bulk failed, lacking failed, missing failed, unfit failed").await;
    for (key, words) in [
        ("missing", "no DAG \"nowhere\""),
        ("unfit", "day"),
        ("bulk", "no bulk job \"nothing\""),
        ("lacking", "uses as :place"),
    ] {
        let error = batches.task(batch, key).await.error.expect("the task has no error");
        assert!(error.contains(words), "{error}");
    }
    assert_eq!((batches.state(batch).await, batches.all().await.len()), (BatchState::Failed, 1));
}

pub async fn batches_do_not_lie_deeper_than_they_may(batches: Batches) {
    let root = batches.run(Definition::new("deep").task("a", Task::batch("deep")), json!({})).await;
    batches.advance().await;
    let all = batches.all().await;
    assert_eq!(all.len(), DEPTH_MAX as usize);
    assert!(all.iter().all(|batch| batch.state == BatchState::Failed), "{all:?}");
    let error = batches.task(all[0].id, "a").await.error.expect("the task has no error");
    assert!(error.contains(&DEPTH_MAX.to_string()), "{error}");
    batches.assert_states(root, "a failed").await;
}

pub async fn a_bulk_job_is_a_task(batches: Batches) {
    let definition = bulk::definition::Definition {
        queue: "default".to_owned(),
        ..bulk::definition::Definition::new("other")
    };
    batches.scene.store.put_bulk(&definition, Source::Operator).await.unwrap();
    let dag = Definition::new("d")
        .task("b", Task::bulk("other").payload(json!({"day": "${ input.day }"})))
        .task("z", job().payload(json!("${ tasks.b.output.done }")).after(["b"]));
    let batch = batches.run(dag, json!({"day": 1})).await;
    let claimed = batches.claim(batch).await;
    assert!(claimed.contains_key("b"), "{:?}", batches.tasks(batch).await);
    let bulk = &claimed["b"];
    assert_eq!((bulk.kind.as_str(), payload(bulk)), ("other", json!({"day": 1})));
    assert_eq!(bulk.group.as_deref(), Some("other"));
    let view = batches.scene.store.bulks(&Default::default()).await.unwrap();
    assert!(view.iter().any(|run| run.id == bulk.run.job), "it is a run of the bulk job");
    batches.finish(bulk, gives(&json!({"done": 9}))).await;
    batches.advance().await;
    assert_eq!(payload(&batches.claim(batch).await["z"]), json!(9));
}

pub async fn a_kind_that_is_a_bulk_job_is_refused_in_dags_and_schedules(batches: Batches) {
    let definition = bulk::definition::Definition::new("other");
    batches.scene.store.put_bulk(&definition, Source::Operator).await.unwrap();
    let dag = |task| Dag::check(Definition::new("d").task("a", job()).task("b", task)).unwrap();
    let refused =
        batches.store.define_dag(&dag(Task::job("other").after(["a"]))).await.unwrap_err().to_string();
    assert!(refused.contains("task \"b\": the kind \"other\" is a bulk job"), "{refused}");
    batches.store.define_dag(&dag(Task::bulk("other").after(["a"]))).await.unwrap();

    let schedule = |job| Schedule::new("s", Spec::every(Duration::from_secs(3600)).unwrap(), job);
    let plain = NewJob::new("other", &json!({})).unwrap();
    let refused = batches.store.put_schedule(&schedule(plain.clone()), Source::Operator).await.unwrap_err();
    let StoreError::InvalidSchedule { invalid: InvalidSchedule::Job(invalid), .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(*invalid, InvalidJob::BulkJob { kind: "other".to_owned() });
    let as_defined = schedule(definition.direct(plain));
    batches.store.put_schedule(&as_defined, Source::Operator).await.expect("the bulk job's settings");
}

pub async fn a_stop_reaches_into_inner_batches(batches: Batches) {
    batches.define(graph("in", &[("p", &[]), ("q", &["p"])])).await;
    let batch = batches.run(Definition::new("out").task("b", Task::batch("in")), json!({})).await;
    let inner = child(&batches, batch, "b").await;
    batches.operate(batch, BatchVerb::Abort).await;
    batches.assert_states(inner, "p aborted, q waiting").await;
    batches.assert_states(batch, "b aborted").await;
    assert_eq!(
        (batches.state(inner).await, batches.state(batch).await),
        (BatchState::Aborted, BatchState::Aborted)
    );
    batches.operate(batch, BatchVerb::Resume).await;
    batches.assert_states(batch, "b active").await;
    batches.step(inner, &["p"], done()).await;
    batches.step(inner, &["q"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_cancel_leaves_the_clearing_up_of_inner_batches(batches: Batches) {
    let clear = job().after(["p"]).rule(Rule::Always);
    batches.define(graph("in", &[("p", &[]), ("q", &["p"])]).task("clear", clear)).await;
    let dag = Definition::new("out").task("b", Task::batch("in")).task("c", job().after(["b"]));
    let batch = batches.run(dag, json!({})).await;
    let inner = child(&batches, batch, "b").await;
    let tasks = batches.numbers(batch, &["b"]).await;
    batches.operate(batch, BatchVerb::Cancel { tasks }).await;
    batches.assert_states(inner, "clear active, p canceled, q canceled").await;
    batches.assert_states(batch, "b active, c waiting").await;
    batches.step(inner, &["clear"], done()).await;
    batches.assert_states(batch, "b canceled, c skipped").await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
    let again = batches.run(Definition::new("again").task("b", Task::batch("in")), json!({})).await;
    let inner = child(&batches, again, "b").await;
    let p = batches.claim(inner).await;
    batches.scene.operate(p["p"].run.job, Operation::new(Verb::Cancel)).await.unwrap();
    assert_eq!(batches.task(inner, "q").await.state, TaskState::Skipped);
    assert_eq!(batches.scene.finish(&p["p"], done()).await, Finished::Fenced);
}

pub async fn an_inner_batch_that_failed_can_be_stopped_and_go_on(batches: Batches) {
    batches.define(graph("in", &[("p", &[]), ("q", &["p"])])).await;
    let batch = batches.run(Definition::new("out").task("b", Task::batch("in")), json!({})).await;
    let inner = child(&batches, batch, "b").await;
    let claimed = batches.claim(inner).await;
    batches.finish(&claimed["p"], fails()).await;
    batches.assert_states(batch, "b failed").await;
    batches.operate(inner, BatchVerb::Abort).await;
    batches.assert_states(batch, "b aborted").await;
    batches.operate(batch, BatchVerb::Resume).await;
    batches.assert_states(batch, "b failed").await;
    batches.scene.operate(claimed["p"].run.job, Operation::new(Verb::RetryNow)).await.unwrap();
    batches.work(|_| done()).await;
    assert_eq!(
        (batches.state(inner).await, batches.state(batch).await),
        (BatchState::Done, BatchState::Done)
    );
}

pub async fn a_rerun_of_a_task_that_is_a_batch_starts_another_one(batches: Batches) {
    batches.define(graph("in", &[("p", &[]), ("q", &["p"])])).await;
    let batch = batches.run(Definition::new("out").task("b", Task::batch("in")), json!({})).await;
    let old = child(&batches, batch, "b").await;
    let tasks = vec![0];
    batches.step(old, &["p"], fails()).await;
    let p = batches.task(old, "p").await.job.unwrap();
    let operated = batches.operate(batch, BatchVerb::Rerun { tasks: tasks.clone() }).await;
    assert_eq!((operated.changed, operated.generation), (1, 2));
    let new = child(&batches, batch, "b").await;
    assert_ne!(new, old);
    assert_eq!(
        batches.state(old).await,
        BatchState::Canceled,
        "the batch is canceled, because no batch uses it any more"
    );
    let refused = batches.scene.operate(p, Operation::new(Verb::Rerun)).await;
    assert!(refused.is_err(), "{refused:?}");
    batches.assert_states(batch, "b active").await;
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    let refused = batches.try_operate(new, BatchVerb::Rerun { tasks }).await;
    assert!(
        matches!(super::invalid(refused), InvalidBatch::State { .. }),
        "the task of the inner batch has ended"
    );
}

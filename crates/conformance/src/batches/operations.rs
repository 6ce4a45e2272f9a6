//! Operations of operators on batches.

use std::time::Duration;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::claim::ClaimedJob;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::finish::End;
use milepost_core::ident::BatchId;
use milepost_core::port::Operation;
use milepost_core::transition::Verb;
use serde_json::json;

use super::{Batches, done, fails, graph, invalid, job};
use milepost_testkit::scene::{KIND, LONG};

pub async fn an_abort_stops_everything_and_a_resume_goes_on(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &[]), ("c", &["a", "b"])]), json!({})).await;
    let operated = batches.operate(batch, BatchVerb::Abort).await;
    assert_eq!((operated.changed, operated.stopping), (2, 0));
    batches.assert_states(batch, "a aborted, b aborted, c waiting").await;
    let view = batches.view(batch).await;
    assert_eq!((view.state, view.stopped), (BatchState::Aborted, true));
    assert!(batches.scene.claim(10).await.is_empty());
    let operated = batches.operate(batch, BatchVerb::Resume).await;
    assert_eq!(operated.changed, 2);
    assert_eq!((batches.state(batch).await, batches.view(batch).await.stopped), (BatchState::Running, false));
    batches.step(batch, &["a", "b"], done()).await;
    batches.step(batch, &["c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_stopped_batch_makes_no_jobs(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"])]).task("c", job().when("true").after(["a"]));
    let batch = batches.run(dag, json!({})).await;
    let claimed = batches.claim(batch).await;
    let operation =
        BatchOperation { batch, generation: Some(1), grace: LONG, note: None, what: BatchVerb::Abort };
    let operated = batches.store.operate_batch(&operation).await.unwrap();
    assert_eq!((operated.changed, operated.stopping), (0, 1));
    assert_eq!(batches.state(batch).await, BatchState::Running, "a run has not ended yet");
    batches.finish(&claimed["a"], done()).await;
    assert_eq!(batches.advance().await, 0);
    batches.assert_states(batch, "a succeeded, b due, c due").await;
    assert_eq!(batches.state(batch).await, BatchState::Aborted);
    batches.operate(batch, BatchVerb::Resume).await;
    batches.step(batch, &["b", "c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_batch_whose_tasks_still_run_can_be_aborted_again_with_less_grace(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    batches.claim(batch).await;
    for grace in [LONG, Duration::ZERO] {
        let abort = BatchOperation { batch, generation: None, grace, note: None, what: BatchVerb::Abort };
        batches.store.operate_batch(&abort).await.unwrap();
    }
    assert_eq!(batches.state(batch).await, BatchState::Aborted);
    let again = invalid(batches.try_operate(batch, BatchVerb::Abort).await);
    assert!(matches!(again, InvalidBatch::State { state: BatchState::Aborted, .. }), "{again:?}");
}

pub async fn a_running_batch_can_be_resumed_for_the_sake_of_one_aborted_task(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &[])]), json!({})).await;
    let claimed = batches.claim(batch).await;
    batches
        .store
        .operate(claimed["a"].run.job, &Operation { grace: Duration::ZERO, ..Operation::new(Verb::Abort) })
        .await
        .unwrap();
    assert_eq!(batches.state(batch).await, BatchState::Running);
    assert_eq!(batches.operate(batch, BatchVerb::Resume).await.changed, 1);
    batches.assert_states(batch, "a active, b active").await;
    let again = invalid(batches.try_operate(batch, BatchVerb::Resume).await);
    assert!(matches!(again, InvalidBatch::State { state: BatchState::Running, .. }), "{again:?}");
}

pub async fn a_cancel_ends_all_but_what_it_does_not_name(batches: Batches) {
    let clear = job().after(["b"]).rule(Rule::Always);
    let dag = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]).task("clear", clear);
    let batch = batches.run(dag, json!({})).await;
    let tasks = batches.numbers(batch, &["a", "b", "c"]).await;
    let operated = batches.operate(batch, BatchVerb::Cancel { tasks }).await;
    assert_eq!(operated.changed, 3);
    batches.assert_states(batch, "a canceled, b canceled, c canceled, clear active").await;
    assert_eq!(batches.state(batch).await, BatchState::Running);
    batches.step(batch, &["clear"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
}

pub async fn tasks_canceled_together_are_none_skipped_for_another(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]), json!({})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], fails()).await;
    let tasks = batches.numbers(batch, &["b", "a"]).await;
    batches.operate(batch, BatchVerb::Cancel { tasks }).await;
    batches.assert_states(batch, "a canceled, b canceled, c skipped").await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
}

pub async fn a_running_task_is_asked_to_stop(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    let claimed: ClaimedJob = batches.claim(batch).await.remove("a").unwrap();
    let what = BatchVerb::Cancel { tasks: batches.numbers(batch, &["a", "b"]).await };
    let operation = BatchOperation { batch, generation: None, grace: LONG, note: None, what };
    let operated = batches.store.operate_batch(&operation).await.unwrap();
    assert_eq!((operated.changed, operated.stopping), (1, 1));
    batches.assert_states(batch, "a active, b canceled").await;
    batches.finish(&claimed, End::Cancel).await;
    batches.assert_states(batch, "a canceled, b canceled").await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
}

/// Requests the operation for a batch, with time for its running job to stop.
async fn request(batches: &Batches, batch: BatchId, what: BatchVerb) {
    let operation = BatchOperation { batch, generation: None, grace: LONG, note: None, what };
    batches.store.operate_batch(&operation).await.unwrap();
}

fn later() -> End {
    End::Yield { delay: Duration::ZERO, note: "later".to_owned() }
}

pub async fn a_requested_cancel_of_a_task_outlives_an_abort_and_a_resume(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    let claimed = batches.claim(batch).await.remove("a").unwrap();
    let tasks = batches.numbers(batch, &["a"]).await;
    for what in [BatchVerb::Cancel { tasks }, BatchVerb::Abort, BatchVerb::Resume] {
        request(&batches, batch, what).await;
    }
    batches.finish(&claimed, later()).await;
    batches.assert_states(batch, "a canceled").await;
    assert_eq!(batches.state(batch).await, BatchState::Canceled);
}

pub async fn a_resume_withdraws_the_abort_of_a_running_task(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    let claimed = batches.claim(batch).await.remove("a").unwrap();
    request(&batches, batch, BatchVerb::Abort).await;
    request(&batches, batch, BatchVerb::Resume).await;
    batches.finish(&claimed, later()).await;
    batches.assert_states(batch, "a active").await;
    batches.step(batch, &["a"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

async fn mark(batches: &Batches, batch: BatchId, key: &str, state: TaskState) {
    let task = batches.numbers(batch, &[key]).await[0];
    batches.operate(batch, BatchVerb::Mark { task, state }).await;
}

pub async fn a_mark_says_how_a_task_ended(batches: Batches) {
    let dag = graph("d", &[("a", &[]), ("b", &["a"]), ("c", &["b"]), ("d", &["c"])]);
    let dag = dag.task("alarm", job().after(["d"]).rule(Rule::OneFailed));
    let batch = batches.run(dag, json!({})).await;
    mark(&batches, batch, "b", TaskState::Succeeded).await;
    batches.assert_states(batch, "a active, alarm waiting, b succeeded, c active, d waiting").await;
    mark(&batches, batch, "d", TaskState::Failed).await;
    batches.assert_states(batch, "a active, alarm active, b succeeded, c active, d failed").await;
    mark(&batches, batch, "a", TaskState::Skipped).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["c"], fails()).await;
    batches.finish(&claimed["alarm"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
    mark(&batches, batch, "c", TaskState::Succeeded).await;
    mark(&batches, batch, "d", TaskState::Succeeded).await;
    batches.assert_states(batch, "a skipped, alarm succeeded, b succeeded, c succeeded, d succeeded").await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn what_cannot_be_done_names_the_task(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    let refused = |what: BatchVerb| async { invalid(batches.try_operate(batch, what).await) };
    let words = refused(BatchVerb::Mark { task: 0, state: TaskState::Failed }).await.to_string();
    assert!(
        words.contains("task \"a\"") && words.contains("is active: it cannot be marked as failed"),
        "{words}"
    );
    let words = refused(BatchVerb::Rerun { tasks: vec![0] }).await.to_string();
    assert!(words.contains("task \"a\"") && words.contains("rerun"), "{words}");
    batches.operate(batch, BatchVerb::Abort).await;
    for (state, word) in [(TaskState::Succeeded, "succeeded"), (TaskState::Skipped, "skipped")] {
        let words = refused(BatchVerb::Mark { task: 0, state }).await.to_string();
        assert!(words.contains(&format!("is aborted: it cannot be marked as {word}")), "{words}");
    }
    batches.operate(batch, BatchVerb::Resume).await;
    let missing = refused(BatchVerb::Cancel { tasks: vec![7] }).await;
    assert_eq!(missing, InvalidBatch::NoSuchTask { batch, task: "7".to_owned() });
    assert_eq!(refused(BatchVerb::Rerun { tasks: vec![1] }).await, InvalidBatch::NothingToRerun(batch));
    assert!(matches!(refused(BatchVerb::Resume).await, InvalidBatch::State { .. }));
    let other = BatchId::new();
    assert_eq!(invalid(batches.try_operate(other, BatchVerb::Abort).await), InvalidBatch::NoSuchBatch(other));
    batches.work(|_| done()).await;
    assert!(matches!(refused(BatchVerb::Abort).await, InvalidBatch::State { .. }));
    batches.assert_states(batch, "a succeeded, b succeeded").await;
    assert_eq!(batches.view(batch).await.generation, 1);
}

pub async fn an_operator_who_was_overtaken_is_told(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    batches.step(batch, &["a"], done()).await;
    let rerun = |generation| {
        let what = BatchVerb::Rerun { tasks: vec![0] };
        let operation = BatchOperation { batch, generation: Some(generation), grace: LONG, note: None, what };
        let store = batches.store.clone();
        async move { store.operate_batch(&operation).await }
    };
    assert_eq!(rerun(1).await.unwrap().generation, 2);
    assert_eq!(invalid(rerun(1).await), InvalidBatch::Overtaken(batch));
    batches.assert_states(batch, "a active").await;
}

pub async fn history_tells_what_happened_to_the_batch(batches: Batches) {
    let batch =
        batches.run(Definition::new("d").task("a", job()).task("b", job().when("false")), json!({})).await;
    batches.step(batch, &["a"], fails()).await;
    mark(&batches, batch, "a", TaskState::Succeeded).await;
    let history = batches.history(batch).await;
    let own: Vec<_> = history.iter().filter(|entry| entry.task.is_none()).collect();
    let states: Vec<_> = own.iter().map(|entry| entry.to.as_str()).collect();
    assert_eq!(states, ["running", "failed", "done"]);
    assert!(own.windows(2).all(|two| two[1].from.as_deref() == Some(&two[0].to)), "{own:#?}");
    assert_eq!(
        (own[0].verb, own[2].verb, own[2].note.as_deref()),
        (Verb::Create, Verb::Mark, Some("by a test"))
    );
    let skipped = history.iter().find(|entry| entry.key.as_deref() == Some("b")).expect("b");
    assert_eq!((skipped.verb, skipped.to.as_str()), (Verb::Skip, "skipped"));
    let page = batches.store.batch_history(batch, history[0].pos, 1).await.unwrap();
    assert_eq!(page[0].pos, history[1].pos);
    let last = batches.store.last_of_batch(batch, 2).await.unwrap();
    let places: Vec<_> = last.iter().map(|entry| entry.pos).collect();
    let newest: Vec<_> = history.iter().rev().take(2).map(|entry| entry.pos).collect();
    assert_eq!(places, newest);
}

pub async fn what_lists_and_inner_batches_come_to_is_not_marked(batches: Batches) {
    batches.define(Definition::new("leaf").task("a", job())).await;
    let outer = Definition::new("outer")
        .task("in", Task::batch("leaf"))
        .task("list", Task::each(KIND, "[1]").payload(json!("${ item }")))
        .task("z", job().after(["in", "list"]));
    let batch = batches.run(outer, json!({})).await;
    batches.work(|_| fails()).await;
    for (number, key) in (0..).zip(["in", "list"]) {
        for state in [TaskState::Succeeded, TaskState::Skipped, TaskState::Failed] {
            let mark = BatchVerb::Mark { task: number, state };
            let refused = batches.try_operate(batch, mark).await.unwrap_err().to_string();
            assert!(
                refused.contains(&format!("task {key:?}")) && refused.contains("cannot be marked"),
                "{refused}"
            );
        }
    }
    batches.assert_sound(batch).await;
    batches.try_rerun_failed(batch).await.expect("the failed tasks can run again");
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

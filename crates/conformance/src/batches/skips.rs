//! Tasks that are skipped.

use milepost_core::batch::due::EXPRESSION;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::BatchState;
use milepost_core::search::JobFilter;
use milepost_core::transition::Verb;
use serde_json::json;

use super::{Batches, answers, done, gives, job};

pub async fn a_false_condition_skips_what_follows_and_makes_no_job(batches: Batches) {
    let dag = Definition::new("d")
        .task("a", job())
        .task("b", job().when("tasks.a.output.rows > 5").after(["a"]))
        .task("c", job().after(["b"]))
        .task("d", job().after(["c"]).rule(Rule::NoneFailed))
        .task("e", job().after(["c"]));
    let batch = batches.run(dag, json!({})).await;
    batches.step(batch, &["a"], gives(&json!({"rows": 3}))).await;
    batches.assert_states(batch, "a succeeded, b skipped, c skipped, d active, e skipped").await;
    batches.step(batch, &["d"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    let jobs = batches.scene.store.jobs(&JobFilter { limit: 10, ..JobFilter::default() }).await.unwrap();
    assert_eq!(jobs.len(), 2, "no job was created for skipped tasks");
    let history = batches.history(batch).await;
    let skips = history.iter().filter(|entry| entry.verb == Verb::Skip);
    let mut skipped: Vec<_> =
        skips.filter_map(|entry| Some((entry.key.as_deref()?, entry.note.as_deref()?))).collect();
    skipped.sort_unstable();
    let by_rule = "its rule can no longer be met";
    assert_eq!(skipped, [("b", "its condition is false"), ("c", by_rule), ("e", by_rule)]);
}

pub async fn a_condition_without_a_value_fails_the_task_until_it_is_rerun(batches: Batches) {
    let dag = Definition::new("d")
        .task("a", job())
        .task("b", job().when("tasks.a.output.rows > 5").after(["a"]))
        .task("c", job().after(["b"]));
    let batch = batches.run(dag, json!({})).await;
    batches.step(batch, &["a"], gives(&json!({"lines": 7}))).await;
    batches.assert_states(batch, "a succeeded, b failed, c waiting").await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
    let error = batches.task(batch, "b").await.error.expect("the task has no error");
    assert!(error.contains(EXPRESSION) && error.contains("rows"), "{error}");
    let tasks = batches.numbers(batch, &["a", "b", "c"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    batches.step(batch, &["a"], gives(&json!({"rows": 7}))).await;
    batches.step(batch, &["b"], done()).await;
    batches.step(batch, &["c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_task_that_cleans_up_runs_after_a_skip(batches: Batches) {
    let dag = Definition::new("d")
        .task("a", job().when("input.no"))
        .task("b", job().after(["a"]))
        .task("c", job().after(["a", "b"]).rule(Rule::AllDone))
        .task("d", job().after(["a"]).rule(Rule::OneSuccess));
    let batch = batches.run(dag, answers()).await;
    batches.assert_states(batch, "a skipped, b skipped, c active, d skipped").await;
    batches.step(batch, &["c"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

//! Expressions that take more than can be done while others wait for the transaction.

use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use serde_json::{Value, json};

use super::{Batches, done, graph, job};
use crate::scene::KIND;

/// More numbers than an expression can look at in a transaction.
fn numbers() -> Value {
    json!({"list": (0..20_000).collect::<Vec<_>>()})
}

pub async fn a_task_that_reads_much_becomes_what_it_says(batches: Batches) {
    let schema = Some(json!({"required": ["list"]}));
    batches.define(Definition { input_schema: schema, ..graph("inner", &[("x", &[])]) }).await;
    let inner = Task::batch("inner").payload(json!({"list": "${ input.list }"}));
    let dag = Definition::new("d")
        .task("a", job())
        .task("inner", inner.after(["a"]))
        .task("items", Task::each(KIND, "input.list.filter(n, n < 3)").after(["a"]))
        .task("none", job().when("input.list.exists(n, n < 0)").after(["a"]))
        .task("payload", job().payload(json!({"n": "${ size(input.list) }"})).after(["a"]))
        .task("small", job().when("true").after(["a"]))
        .task("some", job().when("input.list.all(n, n >= 0)").after(["a"]));
    let batch = batches.run(dag, numbers()).await;
    batches.finish(&batches.claim(batch).await["a"], done()).await;
    batches.advance().await;
    let expected =
        "a succeeded, inner active, items active, none skipped, payload active, small active, some active";
    batches.assert_states(batch, expected).await;
    let claimed = batches.scene.claim(100).await;
    let payloads: Vec<Value> =
        claimed.iter().map(|job| serde_json::from_str(&job.payload).unwrap()).collect();
    assert!(payloads.contains(&json!({"n": 20_000})), "{payloads:?}");
}

pub async fn a_task_that_takes_too_much_fails_alone(batches: Batches) {
    let dag = Definition::new("d")
        .task("all", job().when("input.list.all(n, input == input)"))
        .task("copies", job().payload(json!({"n": "${ size(input.list.map(n, [input.list, input.list])) }"})))
        .task("healthy", job().when("size(input.list) > 0"));
    let batch = batches.run(dag, numbers()).await;
    batches.work(|_| done()).await;
    batches.assert_states(batch, "all failed, copies failed, healthy succeeded").await;
    for task in batches.tasks(batch).await.iter().filter(|task| task.state == TaskState::Failed) {
        let entries = batches.history(batch).await;
        let notes: Vec<_> =
            entries.iter().filter(|entry| entry.task == Some(task.task)).map(|it| &it.note).collect();
        assert!(
            notes.iter().flat_map(|note| note.as_deref()).any(|it| it.contains("2000000 steps")),
            "{notes:?}"
        );
    }
    assert_eq!(batches.state(batch).await, BatchState::Failed);
}

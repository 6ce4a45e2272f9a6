//! Expressions that are too expensive to evaluate inside a transaction for which others wait.

use std::sync::Mutex;

use milepost_core::batch::start::NewBatch;
use milepost_core::batch::{READ_BYTES_MAX, RESULT_BYTES_MAX, ROUND_READ_BYTES_MAX};
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use serde_json::{Value, json};

use super::{Batches, done, gives, graph, job};
use milepost_testkit::scene::KIND;
use milepost_testkit::wait;

/// Returns more numbers than an expression may process within a transaction.
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

/// Ends all jobs of a batch with a result, and returns their payloads.
async fn payloads(batches: &Batches, result: &Value) -> Vec<Value> {
    let payloads = Mutex::new(Vec::new());
    batches
        .work(|job| {
            payloads.lock().unwrap().push(serde_json::from_str(&job.payload).unwrap());
            gives(result)
        })
        .await;
    payloads.into_inner().unwrap()
}

pub async fn tasks_that_read_the_same_large_results_are_all_evaluated(batches: Batches) {
    const TASKS: usize = 30;
    let items = Task::each(KIND, "tasks.a.output")
        .payload(json!({"n": "${ item }", "a": "${ size(tasks.a.output) }"}));
    let dag = Definition::new("d").task("a", job()).task("list", items.after(["a"]));
    let last = json!({"list": "${ size(tasks.list.output) }", "text": "${ size(tasks.list.output[0]) }"});
    let dag = (0..TASKS)
        .fold(dag, |dag, n| dag.task(format!("z{n:02}"), job().payload(last.clone()).after(["list"])));
    let batch = batches.run(dag, json!({})).await;
    let a = batches.claim(batch).await.remove("a").unwrap();
    batches.finish(&a, gives(&json!((0..TASKS).collect::<Vec<_>>()))).await;
    let text = "x".repeat(READ_BYTES_MAX / TASKS / 2);
    let payloads = payloads(&batches, &json!(text)).await;
    let items = (0..TASKS).map(|n| json!({"n": n, "a": TASKS}));
    let last = std::iter::repeat_n(json!({"list": TASKS, "text": text.len()}), TASKS);
    for expected in items.chain(last) {
        assert!(payloads.contains(&expected), "{expected} is missing");
    }
    assert_eq!((payloads.len(), batches.state(batch).await), (2 * TASKS, BatchState::Done));
}

pub async fn tasks_that_read_more_than_a_round_loads_are_all_evaluated(batches: Batches) {
    const TASKS: usize = ROUND_READ_BYTES_MAX / RESULT_BYTES_MAX + 3;
    let pair = |dag: Definition, n: usize| {
        let payload = json!({"n": format!("${{ size(tasks.b{n}.output) }}")});
        dag.task(format!("b{n}"), job())
            .task(format!("c{n}"), job().payload(payload).after([format!("b{n}")]))
    };
    let batch = batches.run((0..TASKS).fold(Definition::new("d"), pair), json!({})).await;
    let text = json!("x".repeat(RESULT_BYTES_MAX - 2));
    for job in batches.claim(batch).await.into_values() {
        batches.finish(&job, gives(&text)).await;
    }
    let payloads = payloads(&batches, &json!(null)).await;
    assert_eq!(payloads, vec![json!({"n": RESULT_BYTES_MAX - 2}); TASKS]);
    assert_eq!(batches.state(batch).await, BatchState::Done);
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

pub async fn a_list_that_takes_much_keeps_no_other_batch_waiting(batches: Batches) {
    let each = Task::each(KIND, "input.list.filter(n, n < 600)")
        .payload(json!({"n": "${ item + size(input.list) }"}));
    // Only starts the batch: no expression is evaluated yet.
    let started = async |dag: Definition| {
        let batch = NewBatch::new(&dag.name, &numbers()).unwrap();
        batches.define(dag).await;
        batches.store.start_batch(&batch).await.unwrap().batch
    };
    let list = started(Definition::new("list").task("items", each)).await;
    let counted = async |batch| batches.view(batch).await.counts;
    wait::until("the list was read", || async {
        batches.store.advance_batches().await.unwrap();
        counted(list).await.active == 1
    })
    .await;
    let items = batches.tasks(list).await[0].batch.unwrap();
    let dag = Definition::new("other").task("a", job().when("input.list.all(n, n >= 0)"));
    let other = started(dag).await;
    // On a slow machine each call evaluates one task, of a random batch.
    for _ in 0..30 {
        batches.store.advance_batches().await.unwrap();
    }
    assert_eq!(counted(other).await.active, 1, "the other batch has advanced");
    assert!(counted(items).await.due > 0, "while items are still due");
}

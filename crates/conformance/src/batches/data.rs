//! Data passed between tasks, and its retention.

use std::time::Duration;

use milepost_core::batch::RESULT_BYTES_MAX;
use milepost_core::batch::due::READS_TOO_MUCH;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::start::NewBatch;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish};
use milepost_core::json::is_same_json;
use serde_json::{Value, json};

use super::inner::child;
use super::{Batches, done, fails, gives, graph, job};
use crate::traces::span;
use milepost_testkit::scene::KIND;

pub async fn results_go_along_the_edges(batches: Batches) {
    let reads = json!({
        "day": "${ input.day }",
        "rows": "${ tasks.a.output.rows }",
        "text": "${ tasks.a.output.rows } rows, b ${ tasks.b.state }",
        "none": "${ tasks.c.output }",
    });
    let last = job().payload(reads).after(["a", "b", "c"]).rule(Rule::AllDone);
    let dag = graph("d", &[("a", &[]), ("b", &[]), ("c", &[])]).task("z", last);
    let batch = batches.run(dag, json!({"day": "2026-11-01"})).await;
    let claimed = batches.claim(batch).await;
    batches.finish(&claimed["a"], gives(&json!({"rows": 3}))).await;
    batches.finish(&claimed["b"], fails()).await;
    batches.finish(&claimed["c"], done()).await;
    batches.advance().await;
    let payload: Value = serde_json::from_str(&batches.claim(batch).await["z"].payload).unwrap();
    let expected = json!({"day": "2026-11-01", "rows": 3, "text": "3 rows, b failed", "none": null});
    assert_eq!(payload, expected);
}

pub async fn payloads_come_as_they_were_written(batches: Batches) {
    let written =
        json!({"n": 12_345_678_901_234_567_i64, "x": 0.1, "s": "'\"\\ ü", "l": [1, null, true], "o": {}});
    let dag = Definition::new("d").task("a", job().payload(written.clone())).task("b", job());
    let dag = dag.task("c", job().payload(written.clone()).after(["a"]));
    let batch = batches.run(dag, json!({})).await;
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let claimed = batches.claim(batch).await;
    assert_eq!((read(&claimed["a"].payload), read(&claimed["b"].payload)), (written.clone(), json!({})));
    batches.finish(&claimed["a"], done()).await;
    batches.advance().await;
    assert_eq!(read(&batches.claim(batch).await["c"].payload), written);
}

pub async fn numbers_keep_all_their_digits(batches: Batches) {
    const NUMBERS: &str = "[100000000000000000001, 12345678901234567.89, 0.1234567890123456789]";
    let input = format!(r#"{{"n": 100000000000000000002, "list": {NUMBERS}}}"#);
    batches.define(Definition::new("in").task("p", job().payload(json!("${ input }")))).await;
    let results = json!({"a": "${ tasks.a.output }", "list": "${ tasks.list.output }"});
    let dag = Definition::new("out")
        .task("a", job().payload(json!({"all": "${ input }", "text": "no ${ input.n }"})))
        .task("inner", Task::batch("in").payload(json!({"n": "${ input.n }"})).after(["a"]))
        .task("list", Task::each(KIND, "input.list").payload(json!("${ item }")).after(["inner"]))
        .task("never", job().when("input.n == input.list[0]").after(["a"]))
        .task("z", job().payload(results).after(["a", "list"]));
    batches.define(dag).await;
    let input = serde_json::value::RawValue::from_string(input).unwrap();
    let new = NewBatch { input: input.clone(), ..NewBatch::new("out", &json!({})).unwrap() };
    let batch = batches.store.start_batch(&new).await.unwrap().batch;
    batches.advance().await;

    let is_same =
        |text: &str, expected: &str| assert!(is_same_json(text, expected), "{text} is not {expected}");
    let claimed = batches.claim(batch).await;
    is_same(&claimed["a"].payload, &format!(r#"{{"all": {input}, "text": "no 100000000000000000002"}}"#));
    let gives = |result: &str| End::Succeed { result: Some(result.to_owned()) };
    batches.finish(&claimed["a"], gives(NUMBERS)).await;
    batches.advance().await;
    assert_eq!(batches.task(batch, "never").await.state, TaskState::Skipped);
    let claimed = batches.claim(child(&batches, batch, "inner").await).await;
    is_same(&claimed["p"].payload, r#"{"n": 100000000000000000002}"#);
    batches.finish(&claimed["p"], done()).await;
    batches.advance().await;
    let claimed = batches.claim(child(&batches, batch, "list").await).await;
    is_same(&claimed["1"].payload, "12345678901234567.89");
    for item in claimed.values() {
        batches.finish(item, gives(&item.payload)).await;
    }
    batches.advance().await;
    let last = &batches.claim(batch).await["z"].payload;
    is_same(last, &format!(r#"{{"a": {NUMBERS}, "list": {NUMBERS}}}"#));
}

pub async fn a_result_over_the_limit_is_refused(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    let claimed = batches.claim(batch).await;
    let tell = |bytes: usize| {
        let end = gives(&Value::from("x".repeat(bytes - 2)));
        let finish = Finish { run: claimed["a"].run, end, grouped: false, task: true };
        let (store, worker) = (batches.scene.store.clone(), batches.scene.worker);
        async move { store.finish_many(worker, &[finish]).await }
    };
    let refused = tell(RESULT_BYTES_MAX + 1).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    assert!(refused.chain().contains(&RESULT_BYTES_MAX.to_string()), "{}", refused.chain());
    batches.assert_states(batch, "a active").await;
    tell(RESULT_BYTES_MAX).await.unwrap();
    assert_eq!(batches.state(batch).await, BatchState::Done);
}

pub async fn a_result_that_nobody_could_read_is_refused(batches: Batches) {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    let claimed = batches.claim(batch).await;
    let deep = format!("{}{}", "[".repeat(121), "]".repeat(121));
    let reserved = r#"{"$serde_json::private::RawValue": "1e400"}"#;
    for result in
        ["1e400", r#"{"x": -1e999}"#, r#""\ud800""#, r#""\u0000""#, "1e-16384", "{", reserved, &deep]
    {
        let end = End::Succeed { result: Some(result.to_owned()) };
        let finish = Finish { run: claimed["a"].run, end, grouped: false, task: true };
        let refused = batches.scene.store.finish_many(batches.scene.worker, &[finish]).await.unwrap_err();
        assert!(matches!(refused, StoreError::Refused { .. }), "{result}: {refused}");
    }
    batches.assert_states(batch, "a active, b waiting").await;
}

pub async fn an_input_that_nobody_could_read_is_refused(batches: Batches) {
    batches.define(graph("d", &[("a", &[])])).await;
    let deep = format!("{}{}", "[".repeat(121), "]".repeat(121));
    let reserved = r#"{"$serde_json::private::RawValue": "1e400"}"#;
    for input in ["1e400", r#"{"x": -1e999}"#, r#""\ud800""#, r#""\u0000""#, "1e-16384", reserved, &deep] {
        let input = serde_json::value::RawValue::from_string(input.to_owned()).unwrap();
        let batch = NewBatch { input, ..NewBatch::new("d", &json!({})).unwrap() };
        let refused = batches.store.start_batch(&batch).await.unwrap_err();
        assert!(matches!(refused, StoreError::Batch(InvalidBatch::Input { .. })), "{refused}");
    }
}

/// This number of results of maximum size is one more than a task may read.
const LARGE: usize = 33;

pub async fn a_task_that_reads_too_much_fails(batches: Batches) {
    let keys: Vec<String> = (0..LARGE).map(|n| format!("s{n:02}")).collect();
    let dag = keys.iter().fold(Definition::new("d"), |dag, key| dag.task(key, job()));
    let all = job().payload(json!("${ tasks.map(t, t) }")).after(keys.clone());
    let few = job().payload(json!("${ tasks.s00.state }")).after(keys);
    let batch = batches.run(dag.task("y", few).task("z", all), json!({})).await;
    let large = Value::from("x".repeat(RESULT_BYTES_MAX - 2));
    for job in batches.claim(batch).await.into_values() {
        batches.finish(&job, gives(&large)).await;
    }
    batches.advance().await;
    let error = batches.task(batch, "z").await.error.expect("the task has no error");
    assert!(error.contains(READS_TOO_MUCH), "{error}");
    batches.step(batch, &["y"], done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Failed);
}

pub async fn jobs_of_a_batch_are_kept_as_long_as_it(batches: Batches) {
    let reader = job().payload(json!("${ tasks.a.output }")).after(["a"]);
    let inner = Task::each(milepost_testkit::scene::KIND, "[1, 2]").after(["b"]);
    let dag = Definition::new("d").task("a", job()).task("b", reader).task("c", inner);
    let batch = batches.run(dag, json!({})).await;
    let kept = batches.run(graph("k", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    let plain = batches.scene.enqueue(crate::Scene::job()).await;
    let claimed = batches.scene.claim(10).await;
    for job in &claimed {
        batches.finish(job, gives(&json!(7))).await;
    }
    // Pruning always keeps one entry of the history, so add another one.
    batches.scene.enqueue(crate::Scene::job()).await;
    wait_a_moment().await;
    assert_eq!(batches.prune_jobs().await, 1, "only the job without a batch is deleted");
    assert!(batches.scene.store.job(plain).await.unwrap().is_none());
    batches.work(|_| gives(&json!(7))).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.scene.enqueue(crate::Scene::job()).await;
    wait_a_moment().await;
    batches.prune_jobs().await;
    let jobs: Vec<_> = batches.tasks(batch).await.iter().filter_map(|task| task.job).collect();
    assert_eq!(jobs.len(), 2);
    assert!(batches.scene.store.job(jobs[0]).await.unwrap().is_some(), "the job is kept for its result");
    let day = Duration::from_secs(24 * 3600);
    assert_eq!(batches.store.prune_batches(day).await.unwrap(), 0, "a batch that has just ended is kept");
    let mut rows = 0;
    loop {
        match batches.store.prune_batches(Duration::ZERO).await.unwrap() {
            0 => break,
            more => rows += more,
        }
    }
    assert!(rows > 0);
    assert!(batches.all().await.is_empty(), "the inner batch and the other finished batch are deleted, too");
    assert!(batches.store.batch(kept).await.unwrap().is_none() && batches.tasks(batch).await.is_empty());
    batches.prune_jobs().await;
    for job in jobs {
        assert!(
            batches.scene.store.job(job).await.unwrap().is_none(),
            "the jobs are deleted after their batch"
        );
    }
}

/// Waits until finished jobs have been finished for at least a millisecond.
pub(super) async fn wait_a_moment() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

pub async fn jobs_of_a_batch_are_of_its_trace(batches: Batches) {
    batches.define(graph("inner", &[("x", &[])])).await;
    let each = Task::each(KIND, "input.list");
    let dag = graph("d", &[("a", &[])]).task("b", job().when("true")).task("l", each);
    batches.define(dag.task("i", Task::batch("inner"))).await;
    let mut batch = NewBatch::new("d", &json!({ "list": [1] })).unwrap();
    batch.traceparent = Some(span());
    batches.store.start_batch(&batch).await.unwrap();
    batches.advance().await;
    let claimed = batches.scene.claim(10).await;
    let known: Vec<_> = claimed.iter().map(|job| job.traceparent).collect();
    assert_eq!(
        known,
        [Some(span()); 4],
        "a plain task, a task with expressions, an item of a list, a task of an inner batch"
    );
}

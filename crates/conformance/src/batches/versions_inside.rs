//! Batches inside a batch whose version changes.

use super::{Batches, done, fails, gives, graph, invalid, job};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::BatchState;
use milepost_core::port::Operation;
use milepost_core::transition::Verb;
use milepost_testkit::scene::KIND;
use serde_json::{Value, json};

pub async fn batches_in_a_batch_stay_with_their_tasks(batches: Batches) {
    batches.define(graph("in", &[("p", &[])])).await;
    let out = || {
        Definition::new("out").task("b", Task::batch("in")).task("c", job()).task(
            "list",
            Task::each(KIND, "[1, 2]")
                .payload(json!({ "c": "${ tasks.c.output }", "n": "${ item }" }))
                .after(["c"]),
        )
    };
    let old = out().task("g", Task::batch("in")).task("z", job().after(["b", "list"]));
    let batch = batches.begin(old, json!({})).await;
    let (b, g) =
        (batches.task(batch, "b").await.batch.unwrap(), batches.task(batch, "g").await.batch.unwrap());
    batches.work(|job| if job.batch == Some(batch) { gives(&json!("c")) } else { fails() }).await;
    let list = batches.task(batch, "list").await.batch.unwrap();
    batches.assert_states(batch, "b failed, c succeeded, g failed, list failed, z waiting").await;
    let new = out().task("a", job()).task("cc", job()).task("z", job().after(["a", "b", "list"]));
    batches.renew(batch, new, &[]).await;
    batches.assert_states(batch, "a active, b failed, c succeeded, cc active, list failed, z waiting").await;
    assert_eq!(
        batches.state(g).await,
        BatchState::Canceled,
        "the batch is canceled, because no batch uses it any more"
    );
    let parents = [b, g, list].map(|inner| (inner, batches.view(inner)));
    for (inner, view) in parents {
        let key = view.await.parent.expect("the batch has no parent").key;
        assert_eq!(
            key.as_deref(),
            if inner == b {
                Some("b")
            } else if inner == g {
                None
            } else {
                Some("list")
            }
        );
    }
    let refused = invalid(
        batches
            .try_operate(
                list,
                BatchVerb::RerunIn {
                    version: batches.view(batch).await.version,
                    tasks: vec![0],
                    inside: None,
                },
            )
            .await,
    );
    assert_eq!(refused, InvalidBatch::OverAList(list));
    // Items see the values for which their list was created.
    batches.operate(list, BatchVerb::Rerun { tasks: vec![0, 1] }).await;
    let p = batches.task(b, "p").await.job.unwrap();
    batches.scene.operate(p, Operation::new(Verb::RetryNow)).await.unwrap();
    let mut seen = Vec::new();
    for job in batches.scene.claim(100).await {
        if job.batch == Some(list) {
            seen.push(serde_json::from_str::<Value>(&job.payload).unwrap());
        }
        batches.finish(&job, done()).await;
    }
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, [json!({ "c": "c", "n": 1 }), json!({ "c": "c", "n": 2 })]);
    batches.work(|_| done()).await;
    assert_eq!(batches.state(batch).await, BatchState::Done);
    batches.assert_nothing_found().await;
}

pub async fn a_batch_that_was_given_up_with_its_task_skips_nothing(batches: Batches) {
    batches.define(graph("in", &[("p", &[])])).await;
    let batch = batches.begin(graph("out", &[("z", &["b"])]).task("b", Task::batch("in")), json!({})).await;
    batches.work(|_| fails()).await;
    batches.assert_states(batch, "b failed, z waiting").await;
    let tasks = batches.numbers(batch, &["b"]).await;
    batches.operate(batch, BatchVerb::Rerun { tasks }).await;
    batches.assert_states(batch, "b active, z waiting").await;
    batches.work(|_| fails()).await;
    batches.renew(batch, graph("out", &[("z", &[])]), &[]).await;
    batches.assert_states(batch, "z active").await;
}

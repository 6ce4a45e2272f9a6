//! State changes of batches as events.

use milepost_core::batch::listing::BatchEntry;
use milepost_core::batch::operation::BatchVerb;
use milepost_core::event::{Changes, Event};
use milepost_core::ident::BatchId;
use serde_json::{Value, json};

use super::inner::{child, over_a_list};
use super::{Batches, done, fails, gives, graph};
use crate::changes::{events_of, want};
use milepost_testkit::scene::KIND;

fn said(event: &Event) -> Value {
    serde_json::from_str(event.payload.get()).expect("JSON")
}

/// Asserts that the events of a batch match the entries of its history one for one. Returns their states.
async fn assert_emitted(on: &Batches, batch: BatchId) -> Vec<String> {
    let view = on.view(batch).await;
    let events = events_of(&on.store, &format!("milepost.batch.{}", view.dag), batch).await;
    let history: Vec<BatchEntry> = on.history(batch).await.into_iter().filter(|e| e.key.is_none()).collect();
    assert_eq!(events.len(), history.len(), "{events:#?}\n{history:#?}");
    for (n, (event, entry)) in (1..).zip(events.iter().zip(&history)) {
        assert_eq!(event.sequence, n);
        let mut said = said(event);
        let at: jiff::Timestamp = said["at"].as_str().expect("a time").parse().expect("a time");
        assert_eq!(at, entry.at);
        said.as_object_mut().expect("an object").remove("at");
        let mut expected = json!({
            "batch_id": batch, "dag": view.dag, "version": view.version, "biz_key": view.key, "verb": entry.verb,
            "from": entry.from, "to": entry.to, "note": entry.note, "parent_id": view.parent.as_ref().map(|parent| parent.batch),
        });
        expected.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        assert_eq!(said, expected);
    }
    events.iter().map(|event| event.event_type.trim_start_matches("milepost.batch.").to_owned()).collect()
}

async fn want_all(on: &Batches, dag: &str) {
    let changes = Changes { kinds: vec![KIND.to_owned()], dags: vec![dag.to_owned()] };
    want(&on.store, "audit", changes).await;
}

pub async fn a_batch_and_its_tasks_are_told(on: Batches) {
    want_all(&on, "close").await;
    let batch = on.run(graph("close", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    on.step(batch, &["a"], done()).await;
    on.step(batch, &["b"], done()).await;
    assert_eq!(assert_emitted(&on, batch).await, ["running", "done"]);
    for key in ["a", "b"] {
        let job = on.task(batch, key).await.job.expect("its job");
        let events = events_of(&on.store, "milepost.job.test", job).await;
        assert_eq!(events.len(), 3, "{events:#?}");
        assert!(events.iter().all(|event| {
            let said = said(event);
            said["batch_id"] == json!(batch) && said["task"] == key
        }));
    }
}

pub async fn what_operators_do_to_a_batch_is_told(on: Batches) {
    want_all(&on, "close").await;
    let batch = on.run(graph("close", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    on.step(batch, &["a"], fails()).await;
    on.operate(batch, BatchVerb::Abort).await;
    on.operate(batch, BatchVerb::Resume).await;
    let tasks = on.numbers(batch, &["a", "b"]).await;
    on.operate(batch, BatchVerb::Cancel { tasks }).await;
    let states = assert_emitted(&on, batch).await;
    assert_eq!(states.first().map(String::as_str), Some("running"));
    assert_eq!(states.last().map(String::as_str), Some("canceled"), "{states:?}");
    assert!(states.iter().any(|state| state == "aborted"), "{states:?}");
}

pub async fn batches_of_other_dags_make_no_events(on: Batches) {
    want(&on.store, "audit", Changes { kinds: Vec::new(), dags: vec!["close".to_owned()] }).await;
    let other = on.run(graph("open", &[("a", &[])]), json!({})).await;
    on.step(other, &["a"], done()).await;
    assert!(events_of(&on.store, "milepost.batch.open", other).await.is_empty());
    let job = on.task(other, "a").await.job.expect("its job");
    assert!(events_of(&on.store, "milepost.job.test", job).await.is_empty());
}

pub async fn an_inner_batch_says_whose_it_is(on: Batches) {
    let definition = over_a_list();
    want_all(&on, &definition.name).await;
    let batch = on.run(definition, json!({})).await;
    on.step(batch, &["a"], gives(&json!([1, 2]))).await;
    let inner = child(&on, batch, "list").await;
    on.step(inner, &["0", "1"], gives(&json!(3))).await;
    on.step(batch, &["z"], done()).await;
    assert_eq!(assert_emitted(&on, inner).await, ["running", "done"]);
    assert_eq!(assert_emitted(&on, batch).await, ["running", "done"]);
    let item = on.task(inner, "1").await.job.expect("its job");
    let told = events_of(&on.store, "milepost.job.test", item).await;
    assert_eq!(said(&told[0])["task"], "1");
}

//! Tests that unfinished batches are moved and continue.

use std::sync::Arc;
use std::time::Duration;

use milepost_conformance::batches::{Batches, done, fails, gives, graph, job};
use milepost_conformance::traces::span;
use milepost_core::batch::listing::{BatchFilter, TaskFilter};
use milepost_core::batch::operation::BatchVerb;
use milepost_core::batch::start::NewBatch;
use milepost_core::batch::wait::NewSignal;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::BatchState;
use milepost_core::dag::wait::Wait;
use milepost_core::ident::BatchId;
use milepost_core::port::Store;
use milepost_testkit::scene::KIND;
use serde_json::{Value, json};

use crate::relocation::{Move, assert_same};
use crate::support::block_on;

/// A task, a list task over its output, one whose condition is false, and one that follows all others.
fn over_a_list() -> Definition {
    Definition::new("list")
        .task("a", job())
        .task("each", Task::each(KIND, "tasks.a.output").after(["a"]))
        .task("never", job().when("input.no").after(["a"]))
        .task("z", job().payload(json!({ "read": "${ tasks.each.output }" })).after(["each"]))
}

/// Creates a batch that was switched to another version, which lacks one of its tasks.
async fn leave_renewed(batches: &Batches) {
    let batch = batches.run(graph("renewed", &[("a", &[]), ("b", &[])]), json!({})).await;
    batches.step(batch, &["a", "b"], fails()).await;
    let new = batches.define(graph("renewed", &[("b", &[])])).await;
    batches.operate(batch, BatchVerb::RerunIn { version: new.version(), tasks: vec![0], inside: None }).await;
    batches.claim(batch).await;
}

/// Creates a batch with waits: one that has ended, one that goes on, and one that did not begin, whose signal is kept.
async fn leave_waiting(batches: &Batches) {
    let wait = |name: &str| Task::wait(Wait::signal(name));
    let dag = Definition::new("wait")
        .task("first", wait("one"))
        .task("second", wait("two").after(["first"]))
        .task("third", wait("three").after(["second"]));
    let batch = batches.run(dag, json!({})).await;
    for name in ["one", "three"] {
        let signal = NewSignal::new(batch, name).payload(&json!({ "größe": 1 })).unwrap();
        batches.store.signal_batch(&signal).await.unwrap();
    }
    batches.advance().await;
    batches.assert_states(batch, "first succeeded, second active, third waiting").await;
}

/// Creates batches in the old store: one is done, one is in the middle of a list, one is rerun, one is stopped, and one has an end that is
/// not counted yet. A worker holds the jobs that are ready.
pub(crate) async fn leave_half_done(both: &Move) {
    let store: Arc<dyn Store> = Arc::new(both.sqlite());
    let batches = Batches::on(store).await;
    batches.define(graph("chain", &[("a", &[]), ("b", &["a"])])).await;
    let chain = graph("chain", &[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
    let ended = batches.run(chain, json!({ "größe": [1, 2.5] })).await;
    for key in ["a", "b", "c"] {
        batches.step(ended, &[key], gives(&json!({ "by": key }))).await;
    }
    assert_eq!(batches.state(ended).await, BatchState::Done);

    let list = batches.run(over_a_list(), json!({ "no": false })).await;
    batches.step(list, &["a"], gives(&json!([1, 2, 3]))).await;
    let items = batches.task(list, "each").await.batch.unwrap();
    let held = batches.claim(items).await;
    batches.finish(&held["1"], gives(&json!("one"))).await;

    let again = batches.start("chain", json!({})).await;
    batches.step(again, &["a"], fails()).await;
    batches.operate(again, BatchVerb::Rerun { tasks: vec![0] }).await;
    batches.claim(again).await;

    leave_renewed(&batches).await;
    leave_waiting(&batches).await;

    let stopped = batches.start("chain", json!({})).await;
    batches.step(stopped, &["a"], done()).await;
    batches.operate(stopped, BatchVerb::Abort).await;

    let mut counted = NewBatch::new("chain", &json!({})).unwrap().key("größe 🦀");
    counted.traceparent = Some(span());
    let counted = batches.store.start_batch(&counted).await.unwrap().batch;
    batches.claim(counted).await;
    both.old.tamper(
        "INSERT INTO milepost.batch_spread (batch_id, task, was, state)
         SELECT id, 0, 'active', 'active' FROM milepost.batch WHERE key IS NOT NULL RETURNING 'put in line'",
    );
}

/// Returns the listings of DAGs and batches.
pub(crate) async fn listed(store: &dyn Store) -> Vec<Value> {
    let mut listed = Vec::new();
    for dag in store.dags().await.unwrap() {
        for version in store.dag_versions(&dag.dag).await.unwrap() {
            let (_, definition) = store.dag(&dag.dag, Some(version.version)).await.unwrap();
            listed.push(json!({ "version": version, "definition": definition }));
        }
    }
    let filter = BatchFilter { inner: true, limit: 1000, ..BatchFilter::default() };
    for row in store.batches(&filter).await.unwrap() {
        let mut tasks = store.batch_tasks(row.id, &TaskFilter::default()).await.unwrap();
        // PostgreSQL records when an inner batch was started, SQLite does not.
        tasks.iter_mut().filter(|task| task.batch.is_some()).for_each(|task| task.started_at = None);
        let history = store.batch_history(row.id, 0, 1000).await.unwrap();
        let batch = store.batch(row.id).await.unwrap().unwrap();
        listed.push(json!({ "batch": batch, "tasks": tasks, "history": history }));
    }
    listed
}

/// Starts a batch with two tasks and `leaves` tasks that wait for both.
async fn hub(batches: &Batches, leaves: u32) -> BatchId {
    let hub = Definition::new("hub").task("h1", job()).task("h2", job());
    let hub = (0..leaves).fold(hub, |hub, n| hub.task(format!("leaf{n:04}"), job().after(["h1", "h2"])));
    batches.define(hub).await;
    // Not advanced after the start, because that would also count the ends that an earlier hub left in the queue.
    let batch = batches.store.start_batch(&NewBatch::new("hub", &json!({})).unwrap()).await.unwrap().batch;
    let held = batches.claim(batch).await;
    // Not advanced: ends that exceed one page remain queued.
    batches.finish(&held["h1"], done()).await;
    batch
}

#[test]
fn batches_that_are_half_done_go_on_to_their_ends() {
    let both = Move::new();
    let old = block_on(async {
        leave_half_done(&both).await;
        let store: Arc<dyn Store> = Arc::new(both.sqlite());
        hub(&Batches::on(Arc::clone(&store)).await, 2100).await;
        json!({ "batches": listed(store.as_ref()).await })
    });
    let lines = "SELECT CAST(count(*) AS TEXT) FROM milepost.batch_spread";
    assert_eq!(both.old.tamper(lines), "2");
    both.expire_leases();
    both.run(&[]).ok();
    assert_eq!(both.new.tamper(lines), "2");
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(both.postgres().await);
        assert_same(&old, &json!({ "batches": listed(store.as_ref()).await }));
        store.rescue_expired(100, &|_, _, _| Duration::ZERO).await.unwrap();
        let batches = Batches::on(Arc::clone(&store)).await;
        for batch in batches.all().await {
            if batch.stopped {
                batches.operate(batch.id, BatchVerb::Resume).await;
            }
            if batch.dag == "wait" {
                store.signal_batch(&NewSignal::new(batch.id, "two")).await.unwrap();
            }
        }
        batches.advance().await;
        batches.work(|_| gives(&json!([1]))).await;
        for batch in batches.all().await {
            assert_eq!(batch.state, BatchState::Done, "{batch:#?}");
            batches.assert_sound(batch.id).await;
        }
        let key = NewBatch::new("chain", &json!({})).unwrap().key("größe 🦀");
        let known = store.start_batch(&key).await.unwrap();
        assert!(known.duplicate, "its key is taken");
        for task in store.batch_tasks(known.batch, &TaskFilter::default()).await.unwrap() {
            let job = store.job(task.job.unwrap()).await.unwrap().unwrap();
            assert_eq!(job.traceparent, Some(span()), "{} is of the batch's trace", task.key);
        }
        batches.define(graph("chain", &[("other", &[])])).await;
        assert_eq!(store.dag_versions("chain").await.unwrap().len(), 3);
    });
    assert_eq!(both.new.run(&["doctor"]).status, 0);
}

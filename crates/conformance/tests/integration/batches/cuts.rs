//! Task ends over PostgreSQL connections that break at each of their messages.

use milepost_conformance::batches::{Batches, gives, job};
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::BatchState;
use milepost_core::finish::{Finish, Finished};
use milepost_core::port::WorkerStore;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;
use milepost_testkit::proxy::{Moment, Proxy};
use serde_json::json;

/// Returns a DAG with a task whose end releases another one, has a payload made from its result, and has a condition that skips two more.
fn definition() -> Definition {
    Definition::new("cut")
        .task("a", job())
        .task("plain", job().after(["a"]))
        .task("read", job().payload(json!("${ tasks.a.output }")).after(["a"]))
        .task("declined", job().when("tasks.a.output > 7").after(["a"]))
        .task("behind", job().after(["declined"]))
        .task("inner", Task::each(milepost_testkit::scene::KIND, "[1, 2]").after(["a"]))
}

/// Ends the first task over a connection that breaks once, and repeats the call until the store answers. Returns whether the connection was cut.
async fn end_with_a_cut(batches: &Batches, url: &str, request: usize, moment: Moment) -> bool {
    let batch = batches.start("cut", json!({})).await;
    let claimed = batches.claim(batch).await;
    let (proxy, url) = Proxy::for_url(url).await;
    proxy.cut("milepost", request, moment);
    let options = PostgresOptions { connections_max: 1, ..PostgresOptions::default() };
    let store = loop {
        if let Ok(store) = PostgresStore::connect(&url, options.clone()).await {
            break store;
        }
    };
    let finish = Finish { run: claimed["a"].run, end: gives(&json!(7)), grouped: false, task: true };
    let answer = loop {
        match store.finish_many(batches.scene.worker, std::slice::from_ref(&finish)).await {
            Ok(answers) => break answers[0],
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert_ne!(answer, Finished::Fenced, "{request} {moment:?}");
    store.close().await;
    batches.advance().await;
    batches
        .assert_states(
            batch,
            "a succeeded, behind skipped, declined skipped, inner active, plain active, read active",
        )
        .await;
    let made = batches.scene.claim(100).await;
    assert_eq!(made.len(), 4, "each job was created once: {made:?}");
    for job in &made {
        batches.finish(job, gives(&json!(null))).await;
    }
    assert_eq!(batches.state(batch).await, BatchState::Done);
    proxy.has_cut()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_whose_connection_breaks_at_any_message_is_settled_once() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(std::sync::Arc::new(store)).await;
    batches.define(definition()).await;
    for moment in [Moment::BeforeSend, Moment::AfterSend, Moment::AfterReply] {
        let mut reached = 0;
        while end_with_a_cut(&batches, &database.url(), reached, moment).await {
            reached += 1;
        }
        // Connecting, the transaction with its reads and writes, and the commit need more messages than this.
        assert!((10..200).contains(&reached), "{moment:?}: {reached} messages were cut");
    }
}

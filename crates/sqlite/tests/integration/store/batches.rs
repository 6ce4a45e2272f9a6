//! Batches in transactions of callers, and in the file.

use std::time::Duration;

use milepost_core::batch::RESULT_BYTES_MAX;
use milepost_core::batch::listing::{TaskFilter, TaskView};
use milepost_core::batch::start::NewBatch;
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::dag::wait::Wait;
use milepost_core::error::StoreError;
use milepost_core::finish::Finish;
use milepost_core::ident::BatchId;
use milepost_core::port::{AdminStore, BatchStore, Wake, WorkerStore};
use milepost_testkit::wait;

use crate::store::fixture::{HOUR, Home, claim, enqueue, job, success, worker};

/// Defines a DAG with `a`, and `b`, which reads the result of `a`.
async fn defined(home: &Home) -> NewBatch {
    let reader = Task::job("b").payload(serde_json::json!("${ tasks.a.output }")).after(["a"]);
    let dag = Dag::check(Definition::new("d").task("a", Task::job("a")).task("b", reader)).unwrap();
    home.store.define_dag(&dag).await.unwrap();
    NewBatch::new("d", &()).unwrap()
}

/// Processes deferred batch work until nothing is due.
async fn advance(home: &Home) {
    wait::until("nothing is due", || async {
        home.store.advance_batches().await.unwrap();
        let due = "SELECT count(*) FROM milepost_batch_task WHERE state = 'due'";
        home.connection().query_row(due, (), |row| row.get::<_, i64>(0)).unwrap() == 0
    })
    .await;
}

async fn tasks(home: &Home, batch: BatchId) -> Vec<TaskView> {
    home.store.batch_tasks(batch, &TaskFilter::default()).await.unwrap()
}

#[tokio::test]
async fn a_signal_is_sent_when_its_transaction_commits() {
    let home = Home::new().await;
    let dag = Dag::check(Definition::new("d").task("ask", Task::wait(Wait::signal("approved")))).unwrap();
    home.store.define_dag(&dag).await.unwrap();
    let batch = home.store.start_batch(&NewBatch::new("d", &()).unwrap()).await.unwrap().batch;
    let signal = NewSignal::new(batch, "approved");
    let mut conn = home.connection();
    for (commits, state) in [(false, TaskState::Active), (true, TaskState::Succeeded)] {
        let tx = conn.transaction().unwrap();
        assert_eq!(milepost_sqlite::signal(&tx, &signal).unwrap(), SignalResult::Accepted);
        assert_eq!(milepost_sqlite::signal(&tx, &signal).unwrap(), SignalResult::Duplicate);
        let ended = if commits { tx.commit() } else { tx.rollback() };
        ended.unwrap();
        while home.store.advance_batches().await.unwrap() > 0 {}
        assert_eq!(tasks(&home, batch).await[0].state, state);
    }
}

#[tokio::test]
async fn a_batch_starts_in_the_transaction_of_its_caller() {
    let home = Home::new().await;
    let batch = defined(&home).await;
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    assert!(!milepost_sqlite::start_batch(&tx, &batch).unwrap().duplicate);
    assert!(milepost_sqlite::start_batch(&tx, &batch).unwrap().duplicate);
    tx.rollback().unwrap();
    assert!(home.store.batch(batch.id).await.unwrap().is_none());
    for table in ["batch", "batch_input", "batch_task", "batch_history", "job", "live", "history"] {
        let rows: i64 =
            conn.query_row(&format!("SELECT count(*) FROM milepost_{table}"), (), |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
    let tx = conn.transaction().unwrap();
    milepost_sqlite::start_batch(&tx, &batch).unwrap();
    tx.commit().unwrap();
    let states: Vec<_> = tasks(&home, batch.id).await.iter().map(|task| task.state).collect();
    assert_eq!(states, [TaskState::Active, TaskState::Waiting]);
}

#[tokio::test]
async fn a_task_that_completes_in_its_callers_transaction_goes_on_there() {
    let home = Home::new().await;
    let batch = home.store.start_batch(&defined(&home).await).await.unwrap().batch;
    let worker = worker(&home.store, &["a", "b"], HOUR).await;
    let run = claim(&home.store, worker, &["a", "b"], 9).await[0].run;
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    milepost_sqlite::complete(&tx, run, Some("[7]")).unwrap();
    tx.rollback().unwrap();
    assert_eq!(tasks(&home, batch).await[1].state, TaskState::Waiting);
    let tx = conn.transaction().unwrap();
    let large = format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX));
    let refused = milepost_sqlite::complete(&tx, run, Some(&large)).unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    milepost_sqlite::complete(&tx, run, Some("[7]")).unwrap();
    let next = "SELECT state FROM milepost_batch_task WHERE task = 1";
    let next: String = tx.query_row(next, (), |row| row.get(0)).unwrap();
    // Its payload is also evaluated there, if the machine is fast enough.
    assert!(["due", "active"].contains(&next.as_str()), "{next}");
    tx.commit().unwrap();
    advance(&home).await;
    let next = claim(&home.store, worker, &["a", "b"], 9).await;
    assert_eq!((next.len(), next[0].payload.as_str()), (1, "[7]"));
    let view = home.store.batch(batch).await.unwrap().unwrap().row;
    assert_eq!((view.state, view.counts.succeeded, view.counts.active), (BatchState::Running, 1, 1));
}

#[tokio::test]
async fn a_plain_job_returns_what_it_likes() {
    let home = Home::new().await;
    let id = enqueue(&home.store, job("a")).await;
    let worker = worker(&home.store, &["a"], HOUR).await;
    let run = claim(&home.store, worker, &["a"], 1).await[0].run;
    let large = format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX));
    let mut conn = home.connection();
    let tx = conn.transaction().unwrap();
    milepost_sqlite::complete(&tx, run, Some(&large)).unwrap();
    tx.commit().unwrap();
    assert!(home.store.job(id).await.unwrap().unwrap().result.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_makes_a_task_ready_wakes_workers() {
    let home = Home::new().await;
    let batch = defined(&home).await;
    home.store.start_batch(&batch).await.unwrap();
    let worker = worker(&home.store, &["a", "b"], HOUR).await;
    let run = claim(&home.store, worker, &["a"], 1).await[0].run;
    let mut wakes = home.store.wakes().await.unwrap();
    let idle = tokio::time::timeout(Duration::from_millis(50), wakes.next()).await;
    assert!(idle.is_err(), "nothing is ready");
    let finish = Finish { run, end: success(), grouped: false, task: true };
    home.store.finish_many(worker, &[finish]).await.unwrap();
    // On a busy machine the evaluation of the payload may be deferred; then a batch wake comes first.
    let woken = async {
        loop {
            match wakes.next().await {
                // A wake can come before the job is ready.
                Wake::Ready if claim(&home.store, worker, &["b"], 1).await.is_empty() => {}
                Wake::Ready => return,
                Wake::Batch => advance(&home).await,
                Wake::Stop => panic!("no stop was requested"),
            }
        }
    };
    tokio::time::timeout(wait::LIMIT, woken).await.expect("workers are woken when the job is ready");
}

#[tokio::test]
async fn where_nothing_is_left_to_be_done_nothing_is_written() {
    let home = Home::new().await;
    home.store.start_batch(&defined(&home).await).await.unwrap();
    let conn = home.connection();
    let version = || conn.query_row("PRAGMA data_version", (), |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    assert_eq!(home.store.advance_batches().await.unwrap(), 0);
    assert_eq!(home.store.prune_batches(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(version(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_leaves_something_to_be_done_calls_workers_to_it() {
    let home = Home::new().await;
    let hub = Definition::new("hub").task("a", Task::job("a"));
    let hub = (0..2500).fold(hub, |dag, n| dag.task(format!("s{n:04}"), Task::job("b").after(["a"])));
    home.store.define_dag(&Dag::check(hub).unwrap()).await.unwrap();
    home.store.start_batch(&NewBatch::new("hub", &()).unwrap()).await.unwrap();
    let worker = worker(&home.store, &["a", "b"], HOUR).await;
    let run = claim(&home.store, worker, &["a"], 1).await[0].run;
    let neighbour = home.neighbour();
    let (mut here, mut there) = (home.store.wakes().await.unwrap(), neighbour.wakes().await.unwrap());
    let finish = Finish { run, end: success(), grouped: false, task: true };
    home.store.finish_many(worker, &[finish]).await.unwrap();
    for wakes in [&mut here, &mut there] {
        let called = async { while wakes.next().await != Wake::Batch {} };
        tokio::time::timeout(wait::LIMIT, called).await.unwrap();
    }
    assert!(home.store.advance_batches().await.unwrap() > 0);
}

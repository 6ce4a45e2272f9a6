//! Deadlocks that a test forces on transactions that settle task ends (PostgreSQL).

use std::sync::Arc;
use std::time::Duration;

use milepost::{Outcome, RetryPolicy, Worker};
use milepost_conformance::batches::{Batches, fails, graph};
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::{BatchOperation, BatchVerb};
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::BatchStore;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::{self, Database};
use milepost_testkit::wait;
use serde_json::json;
use sqlx::{Connection, Executor, PgConnection};
use tokio::sync::Semaphore;

const KIND: &str = "deadlock";

/// Returns whether a session of this database waits for a row or a batch. Sessions of other tests on the server do not count.
async fn somebody_waits(store: &PostgresStore) -> bool {
    let waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and l.locktype in ('transactionid', 'tuple', 'advisory') and a.datname = current_database()";
    sqlx::query_scalar::<_, i64>(waits).fetch_one(store.pool()).await.unwrap() > 0
}

/// How often a deadlock is tried: it does not happen if the test is so slow that the settling session has stopped waiting before.
const TRIES: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_the_victim_of_a_deadlock_is_told_again_and_counted_once() {
    let database = Database::migrated().await;
    let mut other = PgConnection::connect(&database.url()).await.unwrap();
    // The settling session checks for a deadlock once, after this time, and before it stops waiting. By then the other session must be waiting,
    // too.
    let patience = "do $$ begin execute format('alter database %I set deadlock_timeout = ''900ms''', current_database()); end $$";
    other.execute(patience).await.unwrap();
    other.execute("set deadlock_timeout = '10min'").await.unwrap();
    let store = Arc::new(database::open(&database.url()).await);
    let batches = Batches::on(store.clone()).await;
    batches
        .define(Definition::new("d").task("a", Task::job(KIND)).task("b", Task::job(KIND).after(["a"])))
        .await;
    let gate = Arc::new(Semaphore::new(0));
    let of_handler = gate.clone();
    let worker = Worker::builder(store.clone())
        .handle_kind(KIND, RetryPolicy::default(), move |_| {
            let gate = of_handler.clone();
            async move {
                gate.acquire().await?.forget();
                Ok(Outcome::Done)
            }
        })
        .start()
        .await
        .unwrap();
    let deadlocks = async || {
        let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
        sqlx::query_scalar::<_, i64>(deadlocks).fetch_one(store.pool()).await.unwrap()
    };
    let mut batches_done = 0;
    while deadlocks().await == 0 {
        assert!(batches_done < TRIES, "there was no deadlock");
        let batch = batches.start("d", json!({})).await;
        wait::until("the first task runs", || async { worker.stats().claimed == 2 * batches_done + 1 }).await;
        // In the wrong order: first the batch, then its task. The settling session holds the task and waits for the batch.
        other.execute("begin").await.unwrap();
        let lock = |sql: &'static str| sqlx::query(sql).bind(batch.0);
        lock("select from milepost.batch where id = $1 for update").execute(&mut other).await.unwrap();
        gate.add_permits(1);
        wait::until("the settling session waits for the batch", || async { somebody_waits(&store).await })
            .await;
        lock("select from milepost.batch_task where batch_id = $1 and task = 1 for update")
            .execute(&mut other)
            .await
            .expect("the settling session must be the deadlock victim, because it checks first");
        other.execute("commit").await.unwrap();
        gate.add_permits(1);
        wait::until("the batch is done", || async { batches.state(batch).await == BatchState::Done }).await;
        batches.assert_sound(batch).await;
        batches_done += 1;
    }
    assert_eq!((worker.stats().succeeded, worker.stats().fenced), (2 * batches_done, 0));
    worker.shutdown().await;
}

/// Starts a batch that has an end in the queue of ends to be counted.
async fn batch_with_an_end_in_line(store: &PostgresStore, batches: &Batches) -> BatchId {
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    batches.step(batch, &["a"], fails()).await;
    let line =
        "insert into milepost.batch_spread (batch_id, task, was, state) values ($1, 0, 'failed', 'failed')";
    sqlx::query(line).bind(batch.0).execute(store.pool()).await.unwrap();
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_of_inner_batches_and_of_others_lock_in_one_order() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    batches.define(graph("in", &[("p", &[])])).await;
    let other = batches.run(graph("other", &[("a", &[]), ("d", &[])]), json!({})).await;
    let outer = Definition::new("out").task("b", Task::batch("in")).task("c", Task::job(KIND));
    let outer = batches.run(outer, json!({})).await;
    batches.advance().await;
    let inner = batches.task(outer, "b").await.batch.expect("the task has no inner batch");
    assert!(other < outer && outer < inner, "the order of the ids is the one that led to a deadlock");
    let session = async || PgConnection::connect(&database.url()).await.unwrap();
    let waiting = async |sessions: i64| {
        let waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        let count = || async { sqlx::query_scalar::<_, i64>(waits).fetch_one(store.pool()).await.unwrap() };
        wait::until("the sessions wait", || async { count().await == sessions }).await;
    };
    let settle = async |mut session: PgConnection, batches: [BatchId; 2], tasks: [i32; 2]| {
        let end = "select from milepost.settle($1, $2, '{succeeded,succeeded}')";
        sqlx::query(end).bind(batches.map(|batch| batch.0)).bind(tasks).execute(&mut session).await
    };

    let mut first = session().await;
    first.execute("begin").await.unwrap();
    let lock = sqlx::query("select from milepost.batch where id = $1 for update").bind(other.0);
    lock.execute(&mut first).await.unwrap();
    let (of_inner, of_outer) = (session().await, session().await);
    let of_inner = settle(of_inner, [inner, other], [0, 0]);
    let of_outer = async {
        waiting(1).await;
        settle(of_outer, [outer, other], [1, 1]).await
    };
    let release = async {
        waiting(2).await;
        first.execute("commit").await.unwrap();
    };
    let (of_inner, of_outer, ()) = tokio::join!(of_inner, of_outer, release);
    of_inner.and(of_outer).expect("no session is the victim of a deadlock");
    let states = (batches.state(inner).await, batches.state(outer).await, batches.state(other).await);
    assert_eq!(states, (BatchState::Done, BatchState::Done, BatchState::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_waits_for_who_counts_ends_that_stand_in_line() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batch_with_an_end_in_line(&store, &batches).await;
    let mut other = PgConnection::connect(&database.url()).await.unwrap();
    other.execute("begin").await.unwrap();
    other.execute("select milepost.spread()").await.unwrap();
    let rerun = batches.try_operate(batch, BatchVerb::Rerun { tasks: vec![0] });
    let count = async {
        wait::until("the rerun waits for the counting session", || async { somebody_waits(&store).await })
            .await;
        other.execute("commit").await.unwrap();
    };
    let both = async { tokio::join!(rerun, count) };
    let (rerun, ()) = tokio::time::timeout(wait::LIMIT, both).await.expect("timed out: deadlock");
    rerun.unwrap();
    batches.advance().await;
    batches.assert_states(batch, "a active, b waiting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_in_line_of_a_batch_that_an_operator_has_are_counted_later() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batch_with_an_end_in_line(&store, &batches).await;
    let mut operator = PgConnection::connect(&database.url()).await.unwrap();
    operator.execute("begin").await.unwrap();
    let has = sqlx::query("select milepost.take_batch($1, null)").bind(batch.0);
    has.execute(&mut operator).await.unwrap();
    let in_line = async || {
        let count = "select count(*) from milepost.batch_spread";
        sqlx::query_scalar::<_, i64>(count).fetch_one(store.pool()).await.unwrap()
    };
    let spread = sqlx::query("select milepost.spread()").execute(store.pool());
    tokio::time::timeout(wait::LIMIT, spread).await.expect("timed out: the call waited for a lock").unwrap();
    assert_eq!(in_line().await, 1);
    operator.execute("commit").await.unwrap();
    batches.advance().await;
    assert_eq!(in_line().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_ends_although_another_session_waits_for_the_batch() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batch_with_an_end_in_line(&store, &batches).await;
    let mut operator = PgConnection::connect(&database.url()).await.unwrap();
    operator.execute("begin").await.unwrap();
    let has = sqlx::query("select milepost.take_batch($1, null)").bind(batch.0);
    has.execute(&mut operator).await.unwrap();
    let abort = batches.try_operate(batch, BatchVerb::Abort);
    let rerun = async {
        wait::until("the other session waits", || async { somebody_waits(&store).await }).await;
        let rerun = sqlx::query("select milepost.rerun_tasks($1, '{0}')").bind(batch.0);
        rerun.execute(&mut operator).await.unwrap();
        operator.execute("commit").await.unwrap();
    };
    let both = async { tokio::join!(abort, rerun) };
    let (abort, ()) =
        tokio::time::timeout(wait::LIMIT, both).await.expect("timed out: the rerun does not end");
    abort.unwrap();
    batches.assert_sound(batch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_job_is_claimed_meanwhile_is_not_marked_and_its_state_is_told() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batches.run(graph("d", &[("a", &[])]), json!({})).await;
    let mut claim = PgConnection::connect(&database.url()).await.unwrap();
    claim.execute("begin").await.unwrap();
    claim.execute("select from milepost.live for update").await.unwrap();
    let operation = BatchOperation {
        batch,
        what: BatchVerb::Mark { task: 0, state: TaskState::Succeeded },
        note: None,
        grace: Duration::ZERO,
        generation: None,
    };
    let mark = tokio::spawn({
        let store = store.clone();
        async move { store.operate_batch(&operation).await }
    });
    database::until_one_waits(&store).await;
    let claimed = "update milepost.live set state = 'running', ready_at = null, started_at = now(), attempt = 1, token = token + 1";
    claim.execute(claimed).await.unwrap();
    claim.execute("commit").await.unwrap();
    let refused = mark.await.unwrap().unwrap_err();
    assert!(matches!(refused, StoreError::Batch(InvalidBatch::Task { .. })), "{refused:?}");
}

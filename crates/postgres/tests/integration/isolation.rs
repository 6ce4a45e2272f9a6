//! Tests with callers whose transaction is not read committed: the invariants hold although they do not see later commits.

use std::time::Duration;

use milepost_conformance::batches::{Batches, graph};
use milepost_core::ident::JobId;
use milepost_core::job::{NewJob, StartAt};
use milepost_core::limit::{Limit, Source};
use milepost_core::port::LimitStore;
use milepost_core::state::JobState;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::scene::KIND;
use milepost_testkit::{Scene, wait};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use uuid::Uuid;

const LEVELS: [&str; 2] = ["repeatable read", "serializable"];

fn grouped() -> NewJob {
    Scene::job().group("t:1")
}

/// Opens a transaction whose snapshot is taken now.
async fn caller(database: &Database, level: &str) -> PgConnection {
    let mut caller = PgConnection::connect(&database.url()).await.unwrap();
    let begin = format!("begin isolation level {level}; select count(*) from milepost.job");
    caller.execute(sqlx::raw_sql(AssertSqlSafe(begin))).await.unwrap();
    caller
}

async fn slots(store: &PostgresStore, slots: u32) {
    store.put_limit(&Limit::group("t:*").slots(slots), Source::Operator).await.unwrap();
}

async fn enqueue_grouped(caller: &mut PgConnection) -> JobId {
    let enqueue = sqlx::query_scalar("select job_id from milepost.enqueue($1, group_key => 't:1')");
    let job: Uuid = enqueue.bind(KIND).fetch_one(caller).await.unwrap();
    JobId(job)
}

async fn holders(store: &PostgresStore) -> i64 {
    sqlx::query_scalar("select count(*) from milepost.group_slot").fetch_one(store.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_was_lowered_since_the_snapshot_of_a_caller_holds() {
    for level in LEVELS {
        let (database, store, scene) = Database::with_scene().await;
        slots(&store, 3).await;
        scene.enqueue(grouped()).await;
        let mut caller = caller(&database, level).await;
        scene.enqueue(grouped()).await;
        slots(&store, 2).await;
        enqueue_grouped(&mut caller).await;
        caller.execute("commit").await.unwrap();
        assert_eq!(holders(&store).await, 2, "{level}");
        scene.store.fill_groups().await.unwrap();
        assert_eq!(holders(&store).await, 2, "{level}, after upkeep");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn upkeep_gives_out_the_slots_that_such_a_caller_leaves() {
    for level in LEVELS {
        let (database, _store, scene) = Database::with_scene().await;
        let mut enqueuing = caller(&database, level).await;
        let first = enqueue_grouped(&mut enqueuing).await;
        enqueuing.execute("commit").await.unwrap();
        assert_eq!(scene.state(first).await, JobState::Blocked, "{level}");
        scene.store.fill_groups().await.unwrap();
        let claimed = scene.claim(1).await;
        assert_eq!(claimed[0].run.job, first, "{level}");

        let next = scene.enqueue(grouped()).await;
        let mut ending = caller(&database, level).await;
        let complete = format!("select milepost.complete('{}', {})", first.0, claimed[0].run.token.0);
        ending.execute(sqlx::raw_sql(AssertSqlSafe(complete))).await.unwrap();
        ending.execute("commit").await.unwrap();
        scene.store.fill_groups().await.unwrap();
        assert_eq!(scene.state(next).await, JobState::Pending, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn such_a_caller_cannot_release_a_job_of_a_group() {
    let (database, _store, scene) = Database::with_scene().await;
    // A slot is free, and the job waits for its start time.
    let mut later = grouped();
    later.start = StartAt::After(Duration::from_secs(3600));
    let waits = scene.enqueue(later).await;
    let release = format!("select milepost.change('{}', 'release')", waits.0);
    for level in LEVELS {
        let mut caller = caller(&database, level).await;
        assert_eq!(refusal(&mut caller, &release).await, "MP003", "{level}");
    }
    let mut allowed = caller(&database, "read committed").await;
    allowed.execute(sqlx::raw_sql(AssertSqlSafe(release))).await.expect("released");
}

/// A change that another transaction commits after the caller's snapshot, and the caller's statement that must then fail:
/// `$job` is a running job, `$token` its run token, `$batch` a running batch.
const CONFLICTS: [(&str, &str); 12] = [
    ("milepost.enqueue('k', key => 'a')", "milepost.enqueue('k', key => 'a')"),
    ("milepost.cancel('$job')", "milepost.complete('$job', $token)"),
    ("milepost.complete('$job', $token)", "milepost.cancel('$job')"),
    ("milepost.change('$job', 'abort')", "milepost.change('$job', 'cancel')"),
    ("milepost.emit('order', '1', 'made')", "milepost.emit('order', '1', 'paid')"),
    ("milepost.emit('order', '0', 'paid')", "milepost.emit('order', '0', 'sent')"),
    ("milepost.once('c', '$event')", "milepost.once('c', '$event')"),
    (
        "milepost.receive('c', 'order', '1', 1, '$event', 'made')",
        "milepost.receive('c', 'order', '1', 1, '$event', 'made')",
    ),
    (
        "milepost.expect_from('c', 'order', '2', 5)",
        "milepost.receive('c', 'order', '2', 1, '$event', 'made')",
    ),
    ("milepost.start_batch('d', 'a')", "milepost.start_batch('d', 'a')"),
    ("milepost.abort_batch('$batch')", "milepost.cancel_batch('$batch')"),
    ("milepost.abort_batch('$batch')", "milepost.resume_batch('$batch')"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_meets_a_change_since_its_snapshot_fails_with_40001() {
    for level in LEVELS {
        for (first, call) in CONFLICTS {
            let (database, store, scene) = Database::with_scene().await;
            let batches = Batches::on(scene.store.clone()).await;
            let batch = batches.run(graph("d", &[("x", &[]), ("y", &["x"])]), serde_json::json!({})).await;
            // The job of the batch is claimed as well.
            scene.enqueue(Scene::job().key("running")).await;
            let claimed = scene.claim(10).await;
            let run = claimed.iter().find(|job| job.batch.is_none()).unwrap().run;
            let filled = |text: &str| {
                let text =
                    text.replace("$job", &run.job.0.to_string()).replace("$token", &run.token.0.to_string());
                let text = text.replace("$batch", &batch.0.to_string());
                format!("select * from {}", text.replace("$event", "018f0000-0000-7000-8000-000000000001"))
            };
            let emit = sqlx::raw_sql(
                "select * from milepost.emit('order', '0', 'made'); select milepost.put_consumer('c')",
            );
            store.pool().execute(emit).await.unwrap();
            let mut caller = caller(&database, level).await;
            store.pool().execute(sqlx::raw_sql(AssertSqlSafe(filled(first)))).await.unwrap();
            assert_eq!(refusal(&mut caller, &filled(call)).await, "40001", "{level}: {first}, then {call}");
        }
    }
}

/// What another transaction deletes after the snapshot, as retention does, and a call that uses it.
const DELETED: &[(&str, &str)] = &[
    ("delete from milepost.job_key where key = 'k'", "milepost.enqueue('x', '{}', 'k')"),
    (
        "delete from milepost.job_key where key = 'k'",
        "milepost.enqueue_many(array['x', 'x'], array['{}', '{}']::jsonb[], array['k', 'k'])",
    ),
    ("delete from milepost.batch where key = 'k'", "milepost.start_batch('d', 'k')"),
    (
        "delete from milepost.event where event_id = '018f0000-0000-7000-8000-000000000001'",
        "milepost.emit('order', '0', 'made', event_id => '018f0000-0000-7000-8000-000000000001')",
    ),
    (
        "delete from milepost.event where event_id = '018f0000-0000-7000-8000-000000000001'",
        "milepost.emit('order', '0', 'made', event_id => '018f0000-0000-7000-8000-000000000001', aggregate_seq => 1)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_uses_what_was_deleted_since_its_snapshot_fails_with_40001() {
    for level in LEVELS {
        for (delete, call) in DELETED {
            let (database, store, scene) = Database::with_scene().await;
            let batches = Batches::on(scene.store.clone()).await;
            batches.define(graph("d", &[("x", &[])])).await;
            let before = sqlx::raw_sql(
                "select * from milepost.enqueue('x', '{}', 'k'); select * from milepost.start_batch('d', 'k'); \
                 select * from milepost.emit('order', '0', 'made', event_id => '018f0000-0000-7000-8000-000000000001')",
            );
            store.pool().execute(before).await.unwrap();
            let mut caller = caller(&database, level).await;
            store.pool().execute(sqlx::raw_sql(AssertSqlSafe((*delete).to_owned()))).await.unwrap();
            let call = format!("select * from {call}");
            assert_eq!(refusal(&mut caller, &call).await, "40001", "{level}: {delete}, then {call}");
        }
    }
}

async fn refusal(caller: &mut PgConnection, statement: &str) -> String {
    let answer =
        tokio::time::timeout(wait::LIMIT, caller.execute(sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))));
    let error = answer.await.expect("answered").expect_err(statement);
    error.as_database_error().expect("the database's").code().unwrap().into_owned()
}

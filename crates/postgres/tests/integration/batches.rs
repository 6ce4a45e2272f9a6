//! Tests of the SQL functions of batches: they decide as the library does, and calls from plain SQL leave the evaluation to
//! workers.

use std::sync::Arc;

use milepost_conformance::batches::{Batches, done, graph, job};
use milepost_core::batch::wait::{NewSignal, SignalResult};
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::dag::rule::{Rule, Tally, decide};
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::dag::wait::Wait;
use milepost_core::ident::BatchId;
use milepost_core::port::{BatchStore, MaintenanceStore};
use milepost_core::state::JobState;
use milepost_testkit::database::{Database, until_one_waits};
use milepost_testkit::scene::KIND;
use milepost_testkit::wait;
use serde_json::json;
use sqlx::{Connection, PgConnection, Postgres, Transaction};

/// All combinations of counters with up to this number of predecessors are compared.
const TOTAL_MAX: u32 = 4;

#[tokio::test]
async fn every_rule_decides_every_tally_as_the_library_does() {
    let (_database, store) = Database::with_store().await;
    for tally in Tally::all(TOTAL_MAX) {
        for &rule in Rule::ALL {
            let decided: String = sqlx::query_scalar(
                "select milepost.decide($1::text::milepost.task_rule, $2, $3, $4, $5, $6)",
            )
            .bind(rule.as_str())
            .bind(tally.open().cast_signed())
            .bind(tally.succeeded.cast_signed())
            .bind(tally.failed.cast_signed())
            .bind(tally.skipped.cast_signed())
            .bind(tally.canceled.cast_signed())
            .fetch_one(store.pool())
            .await
            .unwrap();
            assert_eq!(decided, decide(rule, &tally).as_str(), "{rule} {tally:?}");
        }
    }
}

#[tokio::test]
async fn a_batch_is_called_in_sql_what_the_library_calls_it() {
    let (_database, store) = Database::with_store().await;
    for bits in 0..1_u64 << 8 {
        let bit = |at: u32| (bits >> at) & 1;
        let counts = Counts {
            waiting: bit(0),
            due: bit(1),
            active: bit(2),
            failed: bit(3),
            aborted: bit(4),
            succeeded: bit(5),
            skipped: 0,
            canceled: bit(6),
        };
        let stopped = bit(7) == 1;
        let called: String =
            sqlx::query_scalar("select milepost.batch_state_of($1, $2, $3, $4, $5, $6, $7)::text")
                .bind(stopped)
                .bind(counts.waiting as i32)
                .bind(counts.due as i32)
                .bind(counts.active as i32)
                .bind(counts.failed as i32)
                .bind(counts.aborted as i32)
                .bind(counts.canceled as i32)
                .fetch_one(store.pool())
                .await
                .unwrap();
        assert_eq!(called, counts.state(stopped).as_str(), "{counts:?} {stopped}");
    }
}

#[tokio::test]
async fn the_states_of_tasks_are_those_of_the_library() {
    let (_database, store) = Database::with_store().await;
    let answer = async |sql: &'static str, name: &str| -> String {
        sqlx::query_scalar(sql).bind(name.to_owned()).fetch_one(store.pool()).await.unwrap()
    };
    for &state in JobState::ALL {
        let of_job = "select milepost.task_state_of($1::text::milepost.job_state)::text";
        assert_eq!(answer(of_job, state.as_str()).await, TaskState::of_job(state).as_str());
    }
    for &state in BatchState::ALL {
        let of_batch = "select milepost.task_state_of($1::text::milepost.batch_state)::text";
        assert_eq!(answer(of_batch, state.as_str()).await, TaskState::of_batch(state).as_str());
    }
    for &state in TaskState::ALL {
        let open =
            answer("select milepost.is_open($1::text::milepost.task_state)::text", state.as_str()).await;
        assert_eq!(open == "true", state.outcome().is_none(), "{state}");
    }
}

#[tokio::test]
async fn a_rerun_in_sql_takes_a_batch_to_the_latest_version_if_its_input_was_checked() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batches.run(graph("d", &[("b", &[])]), json!({})).await;
    batches.step(batch, &["b"], done()).await;
    let schema = Some(json!({ "type": "object" }));
    batches.define(Definition { input_schema: schema, ..graph("d", &[("a", &[]), ("b", &["a"])]) }).await;
    let rerun = async |more: &'static str| {
        let sql = format!("select milepost.rerun_tasks($1, '{{1}}', version => 'latest' {more})");
        sqlx::query_scalar::<_, i32>(sqlx::AssertSqlSafe(sql)).bind(batch.0).fetch_one(store.pool()).await
    };
    let refused = rerun("").await.unwrap_err();
    let refused = refused.as_database_error().unwrap();
    assert_eq!(refused.code().as_deref(), Some("MP011"), "{refused}");
    assert_eq!(batches.view(batch).await.number, 1);
    assert_eq!(rerun(", input_checked => true").await.unwrap(), 2);
    batches.advance().await;
    batches.assert_states(batch, "a active, b waiting").await;
}

#[tokio::test]
async fn a_batch_that_is_started_in_sql_can_have_a_tick() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    batches
        .define(Definition::new("d").task("a", job().payload(json!("${ tick.date } in ${ tick.zone }"))))
        .await;
    let start = async |more: &str| {
        let sql = format!("select batch_id from milepost.start_batch('d', {more})");
        sqlx::query_scalar::<_, uuid::Uuid>(sqlx::AssertSqlSafe(sql)).fetch_one(store.pool()).await
    };
    for (more, date) in [
        (
            "nominal_at => '2026-11-21T23:30:00Z', nominal_zone => 'Europe/Berlin'",
            "2026-11-22 in Europe/Berlin",
        ),
        ("nominal_at => '2026-11-21T23:30:00Z'", "2026-11-21 in UTC"),
    ] {
        let batch = BatchId(start(more).await.unwrap());
        batches.advance().await;
        let job = &batches.claim(batch).await["a"];
        assert_eq!(job.payload, json!(date).to_string());
        batches.finish(job, done()).await;
    }
    for bad in [
        "nominal_zone => 'UTC'",
        "nominal_at => now(), nominal_zone => 'CEST'",
        "nominal_at => now(), nominal_zone => 'ABC3DEF'",
        "nominal_at => now(), nominal_zone => 'Europe/Berlim'",
    ] {
        let refused = start(bad).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some("MP011"), "{bad}");
    }
}

/// Opens a transaction of an operator who has locked the batch and changes nothing yet.
async fn operator<'c>(connection: &'c mut PgConnection, batch: BatchId) -> Transaction<'c, Postgres> {
    let mut tx = connection.begin().await.unwrap();
    sqlx::query("select milepost.take_batch($1, null)").bind(batch.0).execute(&mut *tx).await.unwrap();
    tx
}

async fn cancel(mut operator: Transaction<'_, Postgres>, batch: BatchId) {
    let canceled = sqlx::query("select * from milepost.cancel_batch($1, grace_ms => 0)").bind(batch.0);
    canceled.execute(&mut *operator).await.expect("no other transaction holds a lock");
    operator.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_in_sql_leaves_tasks_that_always_run() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let dag = Definition::new("d")
        .task("a", job())
        .task("root", job().rule(Rule::Always))
        .task("end", job().after(["a"]).rule(Rule::Always));
    let batch = batches.run(dag, json!({})).await;
    let canceled = sqlx::query("select * from milepost.cancel_batch($1, grace_ms => 0)").bind(batch.0);
    canceled.execute(store.pool()).await.unwrap();
    batches.assert_states(batch, "a canceled, end active, root active").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stops_too_late_is_not_in_the_way_of_who_changes_its_batch() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batches.run(graph("d", &[("a", &[]), ("b", &["a"])]), json!({})).await;
    let run = batches.scene.claim(1).await.remove(0).run;
    sqlx::query("select milepost.change($1, 'abort', grace_ms => 1)")
        .bind(run.job.0)
        .execute(store.pool())
        .await
        .unwrap();
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let operator = operator(&mut connection, batch).await;
    let late = store.clone();
    let stopping = tokio::spawn(async move { late.stop_overdue(100).await });
    until_one_waits(&store).await;
    cancel(operator, batch).await;
    stopping.await.unwrap().unwrap();
    batches.assert_states(batch, "a canceled, b canceled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn due_tasks_of_a_batch_that_an_operator_changes_are_left_to_him() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let conditional = Definition::new("d").task("a", job().when("true")).task("b", job().after(["a"]));
    batches.define(conditional).await;
    let start = sqlx::query_scalar("select batch_id from milepost.start_batch('d')");
    let batch = BatchId(start.fetch_one(store.pool()).await.unwrap());
    batches.assert_states(batch, "a due, b waiting").await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let operator = operator(&mut connection, batch).await;
    let advanced = tokio::time::timeout(wait::LIMIT, store.advance_batches()).await;
    assert_eq!(advanced.expect("it does not wait for a lock").unwrap(), 0);
    cancel(operator, batch).await;
    batches.assert_states(batch, "a canceled, b canceled").await;
}

/// Returns a DAG whose only task waits for a signal.
fn approval() -> Definition {
    Definition::new("d").task("ask", Task::wait(Wait::signal("approved").choices(["yes", "no"])))
}

#[tokio::test]
async fn a_signal_is_sent_when_its_transaction_commits() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batches.run(approval(), json!({})).await;
    let send = async |tx: &mut PgConnection| {
        let sql = "select milepost.signal($1, 'approved', '{\"choice\": \"yes\"}', 'once')";
        sqlx::query_scalar::<_, String>(sql).bind(batch.0).fetch_one(tx).await.unwrap()
    };
    let mut tx = store.pool().begin().await.unwrap();
    assert_eq!(send(&mut tx).await, "accepted");
    batches.advance().await;
    batches.assert_states(batch, "ask active").await;
    tx.rollback().await.unwrap();
    batches.advance().await;
    batches.assert_states(batch, "ask active").await;
    let mut tx = store.pool().begin().await.unwrap();
    let signal = NewSignal::new(batch, "approved").payload(&json!({"choice": "yes"})).unwrap().id("once");
    assert_eq!(milepost_postgres::signal(&mut tx, &signal).await.unwrap(), SignalResult::Accepted);
    assert_eq!(send(&mut tx).await, "duplicate");
    tx.commit().await.unwrap();
    batches.advance().await;
    batches.assert_states(batch, "ask succeeded").await;
}

#[tokio::test]
async fn a_signal_that_commits_after_the_wait_began_is_noticed() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let dag =
        Definition::new("d").task("a", job()).task("ask", Task::wait(Wait::signal("approved")).after(["a"]));
    let batch = batches.run(dag, json!({})).await;
    let mut tx = store.pool().begin().await.unwrap();
    let signal = NewSignal::new(batch, "approved");
    assert_eq!(milepost_postgres::signal(&mut tx, &signal).await.unwrap(), SignalResult::Accepted);
    // The wait begins and is checked while the signal cannot be seen.
    batches.step(batch, &["a"], done()).await;
    batches.assert_states(batch, "a succeeded, ask active").await;
    tx.commit().await.unwrap();
    batches.advance().await;
    batches.assert_states(batch, "a succeeded, ask succeeded").await;
}

#[tokio::test]
async fn a_signal_in_sql_is_refused_with_its_reason() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let batch = batches.run(approval(), json!({})).await;
    let wait = Wait::signal("approved").schema(json!({"type": "object"}));
    let checked = batches.run(Definition::new("e").task("ask", Task::wait(wait)), json!({})).await;
    let send = async |call: &str| {
        let sql = sqlx::AssertSqlSafe(call.to_owned());
        let sent = sqlx::query_scalar::<_, String>(sql).fetch_one(store.pool()).await;
        sent.map_err(|error| error.as_database_error().unwrap().message().to_owned())
    };
    for (call, words) in [
        (format!("select milepost.signal('{}', 'approved')", BatchId::new()), "there is no batch"),
        (format!("select milepost.signal('{batch}', 'aproved')"), "waits for a signal 'aproved'"),
        (
            format!("select milepost.signal('{batch}', 'approved', '{{\"choice\": \"maybe\"}}')"),
            "one of these values: yes, no",
        ),
        (format!("select milepost.signal('{batch}', 'approved')"), "one of these values: yes, no"),
        (format!("select milepost.signal('{checked}', 'approved', '{{}}')"), "cannot be checked in SQL"),
        (format!("select milepost.signal('{batch}', 'approved', id => '')"), "1 to 200 bytes"),
        ("select milepost.signal_by_key('d', 'k', 'approved')".to_owned(), "no batch with the key 'k'"),
    ] {
        let refused = send(&call).await.unwrap_err();
        assert!(refused.contains(words), "{call}: {refused}");
    }
    let call = format!("select milepost.signal('{checked}', 'approved', '{{}}', payload_checked => true)");
    assert_eq!(send(&call).await.unwrap(), "accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_of_a_batch_that_an_operator_changes_are_checked_later() {
    let (database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let dag =
        Definition::new("d").task("a", Task::wait(Wait::signal("approved"))).task("b", job().after(["a"]));
    let batch = batches.run(dag, json!({})).await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let operator = operator(&mut connection, batch).await;
    let sent =
        tokio::time::timeout(wait::LIMIT, store.signal_batch(&NewSignal::new(batch, "approved"))).await;
    assert_eq!(sent.expect("it does not wait for a lock").unwrap(), SignalResult::Accepted);
    let advanced = tokio::time::timeout(wait::LIMIT, store.advance_batches()).await;
    assert_eq!(advanced.expect("it does not wait for a lock").unwrap(), 0);
    cancel(operator, batch).await;
    batches.advance().await;
    batches.assert_states(batch, "a canceled, b canceled").await;
}

#[tokio::test]
async fn a_rerun_of_what_failed_in_sql_goes_into_lists() {
    let (_database, store) = Database::with_store().await;
    let batches = Batches::on(Arc::new(store.clone())).await;
    let each = Task::each(KIND, "[{'n': 1}, {}]").payload(json!("${ item.n }"));
    let batch = batches
        .run(Definition::new("d").task("list", each).task("a", job().when("input.x")), json!({}))
        .await;
    batches.work(|_| done()).await;
    batches.assert_states(batch, "a failed, list failed").await;
    let rerun = async || {
        let sql = sqlx::query_scalar("select milepost.rerun_failed($1, note => 'again', generation => 1)");
        sql.bind(batch.0).fetch_one(store.pool()).await
    };
    let changed: i64 = rerun().await.unwrap();
    assert_eq!(changed, 2, "the task and the item are rerun");
    assert_eq!(batches.view(batch).await.generation, 2);
    let refused = rerun().await.map(|_: i64| ()).unwrap_err();
    assert_eq!(refused.as_database_error().unwrap().code().as_deref(), Some("MP013"));
    // PostgreSQL releases the locks of the refused call only after it has reported the error, and due tasks of locked batches are passed over.
    wait::until("the due tasks are evaluated", || async { batches.advance().await > 0 }).await;
    batches.assert_states(batch, "a failed, list failed").await;
}

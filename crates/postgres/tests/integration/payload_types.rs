//! Tests that `enqueue` and `emit` take payloads of each type that drivers bind.

use milepost_testkit::database::Database;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

/// Creates a store and connects to it.
async fn store() -> (Database, PgConnection) {
    let (database, _store) = Database::with_store().await;
    let caller = PgConnection::connect(&database.url()).await.unwrap();
    (database, caller)
}

#[tokio::test]
async fn a_job_stores_the_same_payload_whatever_its_type_is() {
    let (_database, mut caller) = store().await;
    for payload in [
        "'{\"a\":  1}'",
        "json '{\"a\":  1}'",
        "jsonb '{\"a\":  1}'",
        "text '{\"a\":  1}'",
        "'{\"a\":  1}'::varchar",
    ] {
        let enqueue = format!("select * from milepost.enqueue('k', {payload}, queue => 'q')");
        caller.execute(AssertSqlSafe(enqueue)).await.unwrap();
    }
    let stored: Vec<(String, String, i64)> =
        sqlx::query_as("select payload::text, queue, count(*) from milepost.job group by 1, 2")
            .fetch_all(&mut caller)
            .await
            .unwrap();
    assert_eq!(stored, [("{\"a\": 1}".to_owned(), "q".to_owned(), 5)]);
}

#[tokio::test]
async fn an_event_keeps_a_payload_byte_for_byte_unless_it_is_jsonb() {
    let (_database, mut caller) = store().await;
    for payload in [
        "'{\"a\":  1}'",
        "json '{\"a\":  1}'",
        "text '{\"a\":  1}'",
        "'{\"a\":  1}'::varchar",
        "jsonb '{\"a\":  1}'",
    ] {
        let emit = format!(
            "select * from milepost.emit('order', '17', 'paid', {payload}, headers => '{{\"h\": \"1\"}}')"
        );
        caller.execute(AssertSqlSafe(emit)).await.unwrap();
    }
    let stored: Vec<String> = sqlx::query_scalar(
        "select payload::text from milepost.event where headers ->> 'h' = '1' order by aggregate_seq",
    )
    .fetch_all(&mut caller)
    .await
    .unwrap();
    let kept = "{\"a\":  1}";
    assert_eq!(stored, [kept, kept, kept, kept, "{\"a\": 1}"]);
}

#[tokio::test]
async fn a_call_without_a_payload_and_one_with_null_mean_an_empty_object() {
    let (_database, mut caller) = store().await;
    for call in [
        "enqueue('k')",
        "enqueue('k', null)",
        "enqueue('k', null::json)",
        "enqueue('k', key => 'a')",
        "emit('t', 'i', 'e')",
        "emit('t', 'i', 'e', null::jsonb)",
    ] {
        caller.execute(AssertSqlSafe(format!("select * from milepost.{call}"))).await.unwrap();
    }
    let stored: Vec<(String, i64)> = sqlx::query_as(
        "select payload::text, count(*) from (select payload::text from milepost.job union all select payload::text from milepost.event) p group by 1",
    )
    .fetch_all(&mut caller)
    .await
    .unwrap();
    assert_eq!(stored, [("{}".to_owned(), 6)]);
}

#[tokio::test]
async fn a_text_that_is_not_json_is_refused_and_nothing_is_stored() {
    let (_database, mut caller) = store().await;
    for call in ["enqueue('k', '{a')", "emit('t', 'i', 'e', '{a')"] {
        let refused =
            caller.execute(AssertSqlSafe(format!("select * from milepost.{call}"))).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "22P02", "{refused}");
    }
    let stored: i64 = sqlx::query_scalar(
        "select (select count(*) from milepost.job) + (select count(*) from milepost.event)",
    )
    .fetch_one(&mut caller)
    .await
    .unwrap();
    assert_eq!(stored, 0);
}

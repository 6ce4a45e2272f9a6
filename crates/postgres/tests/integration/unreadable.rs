//! Tests of values that readers cannot represent: they are refused in SQL, and do no harm if another program wrote them.

use milepost_conformance::batches::{Batches, done, graph, job};
use milepost_core::dag::definition::{Definition, Task};
use milepost_core::event::SEQUENCE_MAX;
use milepost_core::finish::UNREADABLE;
use milepost_core::inbox::{EVENT_BYTES_MAX, HEADER_BYTES_MAX};
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::limit::{Limit, Rate};
use milepost_core::port::{LimitStore, SearchStore};
use milepost_core::schedule::Source;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_testkit::database::Database;
use milepost_testkit::scene::KIND;
use milepost_testkit::{Scene, wait};
use serde_json::json;
use sqlx::postgres::PgDatabaseError;
use sqlx::{AssertSqlSafe, Executor, PgPool, Row};

/// JSON that PostgreSQL accepts and readers do not: numbers out of range, too many levels, too many digits.
fn documents() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(121), "]".repeat(121));
    let digits = format!("[{}0]", "1e-16383,".repeat(70));
    let reserved = r#"[{"a": {"$serde_json::private::RawValue": "1e400"}}]"#.to_owned();
    vec!["1e400".to_owned(), r#"{"a": [-1e999]}"#.to_owned(), deep, digits, reserved]
}

async fn refusal(pool: &PgPool, sql: String) -> String {
    let error = pool.execute(AssertSqlSafe(sql.clone())).await.map(|_| sql).unwrap_err();
    error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>().code().to_owned()
}

/// Numbers around the largest double, where they are rounded down to it or up to infinity.
const AT_THE_BOUND: [&str; 6] = [
    "1.797e308",
    "1.7976931348623157e308",
    "-1.7976931348623158e308",
    "1.7976931348623158079e308",
    "1.7976931348623158080e308",
    "-1.7976931348623159e308",
];

#[tokio::test]
async fn sql_and_the_library_agree_on_the_largest_number() {
    let (_database, store) = Database::with_store().await;
    for number in AT_THE_BOUND {
        let job = NewJob::from_json(KIND, number.to_owned());
        let taken = job.is_ok_and(|job| job.check(PAYLOAD_BYTES_MAX).is_ok());
        let sql =
            sqlx::query_scalar::<_, bool>("select milepost.refuse_document($1::jsonb, 1000000) is null");
        let answer = sql.bind(number).fetch_one(store.pool()).await.unwrap();
        assert_eq!(taken, answer, "{number}");
    }
}

#[tokio::test]
async fn sql_and_the_library_agree_on_the_largest_event_that_a_consumer_receives() {
    let (_database, store) = Database::with_store().await;
    let limit = sqlx::query_scalar::<_, i64>("select milepost.document_bytes_limit()");
    assert_eq!(usize::try_from(limit.fetch_one(store.pool()).await.unwrap()).unwrap(), EVENT_BYTES_MAX);
    let headers = |bytes| {
        format!(
            "select milepost.receive('c', 'o', '1', 2, gen_random_uuid(), 't', '{{}}', jsonb_build_object('a', repeat('x', {bytes})))"
        )
    };
    store.pool().execute(AssertSqlSafe(headers(HEADER_BYTES_MAX - 1))).await.unwrap();
    assert_eq!(refusal(store.pool(), headers(HEADER_BYTES_MAX)).await, "MP018");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_callers_cannot_hand_over_what_no_reader_can_hold() {
    let (_database, store, scene) = Database::with_scene().await;
    let batches = Batches::on(scene.store.clone()).await;
    batches.define(graph("d", &[("a", &[])])).await;
    let run = scene.running(Scene::job()).await.run;
    for document in documents() {
        let enqueue = format!("select milepost.enqueue('{KIND}', '{document}')");
        assert_eq!(refusal(store.pool(), enqueue).await, "MP001", "{document:.40}");
        let start = format!("select milepost.start_batch('d', input => '{document}')");
        assert_eq!(refusal(store.pool(), start).await, "MP011", "{document:.40}");
        let complete = format!("select milepost.complete('{}', {}, '{document}')", run.job.0, run.token.0);
        assert_eq!(refusal(store.pool(), complete).await, "MP011", "{document:.40}");
    }
    let enqueue = format!(
        "select milepost.enqueue_many(array['{KIND}'], array['{{}}'::jsonb], ids => array['{}'::uuid])",
        uuid::Uuid::max()
    );
    assert_eq!(refusal(store.pool(), enqueue).await, "MP001", "lists begin below this id");
    for time in ["infinity", "-infinity", "20000-01-01"] {
        let enqueue = format!(
            "select milepost.enqueue_many(array['{KIND}'], array['{{}}'::jsonb], nominal_ats => array['{time}'::timestamptz])"
        );
        assert_eq!(refusal(store.pool(), enqueue).await, "MP001", "{time}");
        let start = format!("select milepost.start_batch('d', nominal_at => '{time}')");
        assert_eq!(refusal(store.pool(), start).await, "MP011", "{time}");
    }
    let long = format!(r#"["{}", 1e300, 0.1]"#, "7".repeat(1000));
    store
        .pool()
        .execute(AssertSqlSafe(format!("select milepost.enqueue('{KIND}', '{long}')")))
        .await
        .unwrap();
}

#[tokio::test]
async fn sql_callers_cannot_emit_or_receive_what_readers_cannot_hold() {
    let (_database, store) = Database::with_store().await;
    let deep = format!("{}{}", "[".repeat(121), "]".repeat(121));
    let receive = |payload: &str, event_type: &str, sequence: i64| {
        format!(
            "select milepost.receive('billing', 'order', '1', {sequence}, gen_random_uuid(), '{event_type}', '{payload}')"
        )
    };
    for payload in ["1e400", r#"{"a": "\ud800"}"#, r#""\u0000""#, "[1e-99999]", &deep] {
        let emit = format!("select milepost.emit('order', '1', 'order.paid', '{payload}')");
        assert_eq!(refusal(store.pool(), emit).await, "MP015", "{payload:.40}");
        assert_eq!(refusal(store.pool(), receive(payload, "order.paid", 2)).await, "MP018", "{payload:.40}");
    }
    let emit = "select milepost.emit('order', '1', 'order.paid', aggregate_seq => 9000000000000000001)";
    assert_eq!(refusal(store.pool(), emit.to_owned()).await, "MP015");
    for (event_type, sequence) in [("order.paid", SEQUENCE_MAX + 1), ("order.paid", 0), ("", 2)] {
        let call = receive("{}", event_type, sequence);
        assert_eq!(refusal(store.pool(), call).await, "MP018", "{event_type} {sequence}");
    }
    for rest in [
        "headers => '{\"x\": 1}'",
        "headers => '[1, 2]'",
        "headers => 'null'",
        "headers => '\"x\"'",
        "emitted_at => 'infinity'",
        "emitted_at => '-infinity'",
        "emitted_at => '290000-01-01'",
    ] {
        let call = format!(
            "select milepost.receive('billing', 'order', '1', 2, gen_random_uuid(), 't', '{{}}', {rest})"
        );
        assert_eq!(refusal(store.pool(), call).await, "MP018", "{rest}");
    }
    for good in [r#"["\ud83d\ude00", "\\ud800", 1e300]"#, r#""\\u0000""#, &format!("\"{}\"", "7".repeat(400))]
    {
        let emit = format!("select milepost.emit('order', '1', 'order.paid', '{good}')");
        store.pool().execute(AssertSqlSafe(emit)).await.unwrap();
        store.pool().execute(AssertSqlSafe(receive(good, "order.paid", SEQUENCE_MAX))).await.unwrap();
    }
}

#[tokio::test]
async fn arrays_of_events_may_begin_anywhere_and_have_several_dimensions() {
    let (_database, store) = Database::with_store().await;
    for (number, (arrays, events)) in [
        ("'[0:0]={order}'::text[], '[5:5]={$id}'::text[], '[0:0]={paid}'::text[], payloads => '[0:0]={1}'::json[], headers => '[0:0]={\"{\\\"a\\\": \\\"b\\\"}\"}'::jsonb[]", 1),
        ("array['order'], array['$id'], array['paid'], payloads => '{{1}}'::json[], headers => array[array['{\"a\": \"b\"}'::jsonb]]", 1),
        ("array['order', 'order'], array['$id', '$id'], array['paid', 'paid'], payloads => '[0:1]={1,1}'::json[], headers => array[array['{\"a\": \"b\"}', '{\"a\": \"b\"}'::jsonb]]", 2),
        ("array['order'], array['$id'], array['paid'], payloads => '{1}'::json[], headers => array['{\"a\": \"b\"}'::jsonb], event_ids => '[0:0]={01890a5d-ac96-774b-bcce-b302099a8057}'", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("o{number}");
        let call = format!("select milepost.emit_many({})", arrays.replace("$id", &id));
        store.pool().execute(AssertSqlSafe(call)).await.unwrap();
        let stored = "select count(*) from milepost.event where aggregate_id = $1 and payload::text = '1' and headers ->> 'a' = 'b'";
        let stored: i64 = sqlx::query_scalar(stored).bind(id).fetch_one(store.pool()).await.unwrap();
        assert_eq!(stored, events, "{arrays}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_callers_give_reasons_and_times_within_limits() {
    let (_database, store, scene) = Database::with_scene().await;
    let job = scene.enqueue(Scene::job()).await;
    for operation in ["cancel", "abort"] {
        let call = format!("select milepost.change('{}', '{operation}', repeat('x', 1001))", job.0);
        assert_eq!(refusal(store.pool(), call).await, "MP001", "{operation}");
    }
    let call = format!("select milepost.change('{}', 'cancel', E'a\\x1b[2Jb')", job.0);
    assert_eq!(refusal(store.pool(), call).await, "MP001", "a control character");
    for time in ["1969-12-31T23:59:59Z", "4000-01-01 BC", "infinity"] {
        let call = format!("select milepost.enqueue('{KIND}', '{{}}', run_at => '{time}')");
        assert_eq!(refusal(store.pool(), call).await, "MP001", "{time}");
    }
    let cancel = format!("select milepost.cancel('{}', repeat('x', 1000))", job.0);
    store.pool().execute(AssertSqlSafe(cancel)).await.unwrap();
    assert_eq!(scene.state(job).await, JobState::Canceled);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_account_can_store_a_payload_whose_text_cannot_be_given_out() {
    let (_database, store, scene) = Database::with_scene().await;
    let good = scene.enqueue(Scene::job()).await;
    // Its text has 1.1 GB, the row one MB.
    let insert = format!(
        "insert into milepost.job (id, kind, queue, payload, priority, max_attempts, created_at)
         select gen_random_uuid(), '{KIND}', 'default', jsonb_agg(1e-16383::numeric), 4, 1, now() from generate_series(1, $count)"
    );
    assert_eq!(refusal(store.pool(), insert.replace("$count", "70000")).await, "54000");
    assert_eq!(refusal(store.pool(), insert.replace("$count", "17000")).await, "23514", "more than 256 MiB");
    store.pool().execute(AssertSqlSafe(insert.replace("$count", "600"))).await.unwrap();
    let claimed: Vec<_> = scene.claim(10).await.into_iter().map(|job| job.run.job).collect();
    assert_eq!(claimed, [good]);
}

#[tokio::test]
async fn every_column_of_json_has_a_limit_of_its_text() {
    let (_database, store) = Database::with_store().await;
    let without = "
        select c.relname || '.' || a.attname
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'milepost'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
          and a.atttypid in ('json'::regtype, 'jsonb'::regtype)
          and not exists (
              select from pg_constraint k
              where k.conrelid = c.oid and k.conkey = array[a.attnum] and k.contype = 'c'
                and pg_get_constraintdef(k.oid) like '%octet_length(%::text) <= 268435456%')";
    let without: Vec<String> = sqlx::query_scalar(without).fetch_all(store.pool()).await.unwrap();
    assert_eq!(without, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_cannot_be_read_fails_by_itself() {
    let (_database, store, scene) = Database::with_scene().await;
    let bad = scene.enqueue(Scene::job().group("g")).await;
    let behind = scene.enqueue(Scene::job().group("g")).await;
    let good = scene.enqueue_many(3, KIND, json!({})).await;
    let tamper = format!(
        "alter table milepost.job drop constraint job_nominal_at_check;
         update milepost.job set nominal_at = 'infinity' where id = '{}'",
        bad.0
    );
    store.pool().execute(sqlx::raw_sql(AssertSqlSafe(tamper))).await.unwrap();
    let claimed: Vec<_> = scene.claim(10).await.into_iter().map(|job| job.run.job).collect();
    assert_eq!(claimed.len(), good.len());
    assert!(good.iter().all(|job| claimed.contains(job)));
    let last = "select to_state::text || ' ' || error_code from milepost.history where job_id = $1 order by pos desc limit 1";
    let ended: String = sqlx::query_scalar(last).bind(bad.0).fetch_one(store.pool()).await.unwrap();
    assert_eq!(ended, format!("failed {UNREADABLE}"));
    assert_eq!(scene.state(behind).await, JobState::Pending, "its group continues");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_cannot_be_read_does_not_keep_others_from_going_on() {
    let (_database, store, scene) = Database::with_scene().await;
    let batches = Batches::on(scene.store.clone()).await;
    let reads =
        Definition::new("d").task("a", job()).task("b", job().after(["a"]).payload(json!("${ input.x }")));
    let over = Definition::new("l").task("a", job()).task("b", Task::each(KIND, "input.x").after(["a"]));
    let mut ids = Vec::new();
    for (dag, is_bad) in [(reads.clone(), true), (over, true), (reads, false)] {
        let id = batches.run(dag, json!({ "x": [1] })).await;
        if is_bad {
            let tamper = "update milepost.batch_input set input = '{\"x\": [1e400]}' where batch_id = $1";
            sqlx::query(tamper).bind(id.0).execute(store.pool()).await.unwrap();
        }
        batches.step(id, &["a"], done()).await;
        ids.push(id);
    }
    wait::until("no task is due", || async { batches.store.advance_batches().await.unwrap() == 0 }).await;
    for bad in [ids[0], ids[1]] {
        let error = batches.task(bad, "b").await.error.expect("the failed task has an error");
        assert!(error.contains(UNREADABLE), "{error}");
    }
    batches.assert_states(ids[2], "a succeeded, b active").await;
}

#[tokio::test]
async fn ids_of_two_dimensions_may_be_null() {
    let (_database, store) = Database::with_store().await;
    let call = "select count(*) from milepost.enqueue_many(array['a', 'b'], array['1', '2']::jsonb[], ids => array[[null, null]]::uuid[])";
    let made: i64 = sqlx::query_scalar(call).fetch_one(store.pool()).await.unwrap();
    assert_eq!(made, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_time_that_cannot_be_read_does_not_disturb_the_search_for_the_next_job() {
    let (_database, store, scene) = Database::with_scene().await;
    scene.enqueue(Scene::job()).await;
    for time in ["infinity", "200000-01-01", "4000-01-01 BC", "-infinity"] {
        let tamper = "update milepost.live set ready_at = $1::timestamptz, due_at = $1::timestamptz, timed = true, priority = 4";
        sqlx::query(tamper).bind(time).execute(store.pool()).await.unwrap();
        let peek = include_str!("../../queries/peek.sql");
        let peek = sqlx::query(peek)
            .bind(vec!["default"])
            .bind(vec![KIND])
            .bind(vec![4_i16])
            .bind(vec![None::<String>]);
        let row = peek.fetch_one(store.pool()).await.unwrap_or_else(|error| panic!("{time}: {error}"));
        let (open_in_ms, timed_in_ms): (i64, i64) = (row.get("open_in_ms"), row.get("timed_in_ms"));
        let is_future = !time.starts_with('-') && !time.ends_with("BC");
        assert_eq!((open_in_ms > 0, timed_in_ms > 0), (is_future, is_future), "{time}");
        row.try_get::<jiff_sqlx::Timestamp, _>("ready_at").unwrap();
    }
}

/// Rows as only another program writes them.
#[tokio::test]
async fn a_damaged_row_stops_no_claim_and_hides_no_other_row_of_a_list() {
    for damage in [
        "update milepost.live set token = 2147483647",
        "update milepost.live set attempt = 2147483647",
        "update milepost.kind_limit set full_at = 'infinity'",
        "update milepost.kind_limit set full_at = '-infinity'",
        "update milepost.job set created_at = 'infinity'",
    ] {
        let (_database, store) = Database::with_store().await;
        let scene = Scene::on(std::sync::Arc::new(store.clone())).await;
        let limit = Limit::kind("limited", Rate::new(50.0, 50));
        store.put_limit(&limit, Source::Operator).await.unwrap();
        scene.enqueue(Scene::job()).await;
        store.pool().execute(damage).await.unwrap_or_else(|error| panic!("{damage}: {error}"));
        let good = scene.enqueue(Scene::job()).await;
        let claimed = scene.claim(2).await;
        assert!(claimed.iter().any(|job| job.run.job == good), "{damage}: {claimed:?}");
        let listed = store.search_jobs(&JobFilter::default()).await.unwrap();
        assert!(listed.rows.iter().any(|job| job.id == good), "{damage}");
        assert!(store.limits().await.unwrap().len() <= 1, "{damage}");
        store.put_limit(&limit, Source::Operator).await.unwrap();
    }
}

/// A rate that cannot be computed with would stop the claims of all kinds, and groups.
#[tokio::test]
async fn rates_that_cannot_be_computed_with_are_refused_by_the_tables() {
    let (_database, store) = Database::with_store().await;
    let limits =
        [Limit::kind("k", Rate::new(2.0, 1)), Limit { rate: Some(Rate::new(2.0, 1)), ..Limit::group("g") }];
    for limit in &limits {
        store.put_limit(limit, Source::Operator).await.unwrap();
    }
    for table in ["kind_limit", "group_limit"] {
        for rate in ["'NaN'", "'infinity'", "1e-300", "0", "-1"] {
            let update = format!("update milepost.{table} set per_second = {rate}");
            assert_eq!(refusal(store.pool(), update).await, "23514", "{table} {rate}");
        }
    }
    for per_second in ["1/30d", "10000/s"] {
        let rate = Rate::steady(Rate::parse_per_second(per_second).unwrap());
        store.put_limit(&Limit::kind("k", rate), Source::Operator).await.unwrap();
    }
}

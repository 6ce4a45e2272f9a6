//! Emits in the caller's transaction: rollback, blocking, SQL functions and poolers.

use futures::future::join_all;
use milepost_conformance::events::{Log, invalid, of, with};
use milepost_core::error::StoreError;
use milepost_core::event::InvalidEvent;
use milepost_core::event::listing::LoggedEvent;
use milepost_core::search::JobFilter;
use milepost_core::state::JobState;
use milepost_postgres::{PostgresStore, emit, emit_many, pooled};
use milepost_testkit::Scene;
use milepost_testkit::database::{Database, until_one_waits};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

async fn with_log() -> (Database, PostgresStore, Log) {
    let (database, store) = Database::with_store().await;
    let log = Log { store: std::sync::Arc::new(store.clone()) };
    (database, store, log)
}

async fn connect(database: &Database) -> PgConnection {
    PgConnection::connect(&database.url()).await.unwrap()
}

async fn number(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_a_business_row_and_a_job_commit_together_or_not_at_all() {
    let (database, _store, log) = with_log().await;
    let scene = Scene::on(log.store.clone()).await;
    let mut connection = connect(&database).await;
    connection.execute("create table public.orders (id int primary key)").await.unwrap();
    for committed in [false, true] {
        let mut tx = connection.begin().await.unwrap();
        tx.execute("insert into public.orders values (17)").await.unwrap();
        let emitted = emit(&mut tx, &of("17")).await.unwrap();
        assert_eq!((emitted.sequence, emitted.duplicate), (1, false), "the rolled back event used no number");
        let job = milepost_postgres::enqueue(&mut tx, &Scene::job()).await.unwrap().job;
        assert!(log.all().await.is_empty(), "not visible before the commit");
        if committed {
            tx.commit().await.unwrap();
            assert_eq!(scene.state(job).await, JobState::Pending);
        } else {
            tx.rollback().await.unwrap();
            let left = number(
                &mut connection,
                "select (select count(*) from milepost.event) + (select count(*) from milepost.aggregate)",
            )
            .await;
            assert_eq!(left, 0, "events and heads after the rollback");
            assert!(scene.store.jobs(&JobFilter::default()).await.unwrap().is_empty());
        }
    }
    assert_eq!(log.sequences("17").await, [1]);
    assert_eq!(number(&mut connection, "select count(*) from public.orders").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_rolled_back_takes_its_numbers_back() {
    let (database, _store, log) = with_log().await;
    let mut connection = connect(&database).await;
    let mut tx = connection.begin().await.unwrap();
    emit(&mut tx, &of("1")).await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    emit_many(&mut savepoint, &[of("1"), of("2")]).await.unwrap();
    savepoint.rollback().await.unwrap();
    assert_eq!(emit(&mut tx, &of("1")).await.unwrap().sequence, 2);
    tx.commit().await.unwrap();
    assert_eq!((log.sequences("1").await, log.sequences("2").await), (vec![1, 2], vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_before_the_database_was_asked_leaves_the_transaction_usable() {
    let (database, _store, log) = with_log().await;
    let mut connection = connect(&database).await;
    let mut tx = connection.begin().await.unwrap();
    assert!(matches!(invalid(emit(&mut tx, &of("")).await), (0, InvalidEvent::Name(_))));
    emit(&mut tx, &of("1")).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(log.sequences("1").await, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_of_which_many_roll_back_leave_dense_numbers_in_the_order_of_commits() {
    let (database, store, log) = with_log().await;
    store.pool().execute("create table public.commits (aggregate_id text, seq bigint, at bigint generated always as identity)").await.unwrap();
    let writers = join_all((0..8).map(|_| connect(&database))).await;
    let writers = writers.into_iter().enumerate().map(|(writer, mut connection)| {
        tokio::spawn(async move {
            for round in 0..40 {
                let order = ((writer + round) % 3).to_string();
                let mut tx = connection.begin().await.unwrap();
                let emitted = emit_many(&mut tx, &[of(&order), of(&order)]).await.unwrap();
                if (writer * 7 + round) % 5 < 2 {
                    tx.rollback().await.unwrap();
                    continue;
                }
                // The last statement of the transaction, so that the rows of an aggregate are in commit order.
                sqlx::query("insert into public.commits (aggregate_id, seq) values ($1, $2)")
                    .bind(&order)
                    .bind(emitted[1].sequence)
                    .execute(&mut *tx)
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            }
        })
    });
    join_all(writers).await.into_iter().for_each(Result::unwrap);
    for order in ["0", "1", "2"] {
        let sequences = log.sequences(order).await;
        assert!(sequences.len() > 50);
        let dense: Vec<i64> = (1..=i64::try_from(sequences.len()).unwrap()).collect();
        assert_eq!(sequences, dense, "without gaps, and rising with the position");
        let commits: Vec<i64> =
            sqlx::query_scalar("select seq from public.commits where aggregate_id = $1 order by at")
                .bind(order)
                .fetch_all(store.pool())
                .await
                .unwrap();
        assert!(commits.is_sorted(), "{commits:?}");
    }
    let mut connection = connect(&database).await;
    let split = "select count(*) from (select from milepost.event e join milepost.aggregate a using (aggregate_type, aggregate_id) where e.slot <> a.slot) s";
    assert_eq!(number(&mut connection, split).await, 0, "aggregates with events in several slots");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_emitted_side_by_side_waits_and_is_a_duplicate() {
    let (database, store, log) = with_log().await;
    let (mut first, mut second) = (connect(&database).await, connect(&database).await);
    let event = with("1", "[1]");
    let mut tx = first.begin().await.unwrap();
    assert!(!emit(&mut tx, &event).await.unwrap().duplicate);
    let again = event.clone();
    let waiting = tokio::spawn(async move {
        let mut tx = second.begin().await.unwrap();
        let emitted = emit_many(&mut tx, &[of("1"), again]).await.unwrap();
        tx.commit().await.unwrap();
        emitted
    });
    until_one_waits(&store).await;
    tx.commit().await.unwrap();
    let emitted = waiting.await.unwrap();
    assert_eq!((emitted[0].sequence, emitted[1].sequence, emitted[1].duplicate), (2, 1, true));
    assert_eq!(log.sequences("1").await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_given_to_another_aggregate_side_by_side_is_refused_or_free_again() {
    let (database, store, log) = with_log().await;
    for committed in [true, false] {
        let (mut first, mut second) = (connect(&database).await, connect(&database).await);
        let event = of("1");
        let mut tx = first.begin().await.unwrap();
        emit(&mut tx, &event).await.unwrap();
        let elsewhere = of("2").id(event.id);
        let waiting = tokio::spawn(async move {
            let mut tx = second.begin().await.unwrap();
            let answer = emit(&mut tx, &elsewhere).await;
            if answer.is_ok() {
                tx.commit().await.unwrap();
            }
            answer
        });
        until_one_waits(&store).await;
        if committed {
            tx.commit().await.unwrap();
            let refused = invalid(waiting.await.unwrap());
            assert_eq!(refused, (0, InvalidEvent::OtherContent { id: event.id }));
        } else {
            tx.rollback().await.unwrap();
            assert_eq!(waiting.await.unwrap().unwrap().sequence, 1, "the rolled back event used no number");
        }
    }
    assert_eq!((log.sequences("1").await, log.sequences("2").await), (vec![1], vec![1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_through_a_pooler_and_leave_nothing_prepared() {
    let (database, _store, log) = with_log().await;
    let options: PgConnectOptions = database.pooled_url().parse().unwrap();
    let options = options.extra_float_digits(None);
    let shared = of("shared").header("a", "1");
    let clients = (0..4).map(|client| {
        let (options, shared) = (options.clone(), shared.clone());
        tokio::spawn(async move {
            let mut connection = PgConnection::connect_with(&options).await.unwrap();
            for round in 1..=10 {
                let mut tx = connection.begin().await.unwrap();
                let own = of(&client.to_string());
                assert_eq!(pooled::emit(&mut tx, &own).await.unwrap().sequence, round);
                pooled::emit_many(&mut tx, &[shared.clone(), of("shared")]).await.unwrap();
                tx.commit().await.unwrap();
            }
            let mut tx = connection.begin().await.unwrap();
            let prepared =
                sqlx::query_scalar("select count(*) from pg_prepared_statements").persistent(false);
            let prepared: i64 = prepared.fetch_one(&mut *tx).await.unwrap();
            assert_eq!(prepared, 0);
        })
    });
    join_all(clients).await.into_iter().for_each(Result::unwrap);
    assert_eq!(log.sequences("shared").await, (1..=41).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeatable_read_that_was_overtaken_may_try_again() {
    let (database, _store, log) = with_log().await;
    log.emit(&of("1")).await;
    let mut connection = connect(&database).await;
    connection.execute("begin isolation level repeatable read; select 1").await.unwrap();
    log.emit(&of("1")).await;
    let overtaken = emit(&mut connection, &of("1")).await;
    assert!(matches!(&overtaken, Err(StoreError::Unavailable { .. })), "{overtaken:?}");
    connection.execute("rollback").await.unwrap();
    assert_eq!(log.emit(&of("1")).await, 3);
}

/// Returns the SQLSTATE, the message and the detail of a rejected call.
async fn refusal(store: &PostgresStore, call: &str) -> (String, String, String) {
    let sql = AssertSqlSafe(format!("select * from milepost.{call}"));
    let error = store.pool().execute(sqlx::raw_sql(sql)).await.expect_err(call);
    let error = error.as_database_error().expect("the error is not from the database");
    let error = error.downcast_ref::<sqlx::postgres::PgDatabaseError>();
    (error.code().to_owned(), error.message().to_owned(), error.detail().unwrap_or_default().to_owned())
}

/// The id of the existing event.
const ID: &str = "018f0000-0000-7000-8000-000000000001";
/// The same id with different headers.
const OTHER: &str = "emit('order', '1', 'made', event_id => '018f0000-0000-7000-8000-000000000001')";
/// Rejected calls, with SQLSTATE, detail, and a part of the message.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    ("emit(null, '1', 'made')", "MP015", "name", "the type of the aggregate must have 1 to 200 bytes"),
    ("emit(repeat('k', 201), '1', 'made')", "MP015", "name", "the type of the aggregate"),
    ("emit('milepost.job.mail', '1', 'made')", "MP015", "name", "are kept for state changes"),
    ("emit('order', '', 'made')", "MP015", "name", "the id of the aggregate must have 1 to 1000 bytes"),
    ("emit('order', repeat('i', 1001), 'made')", "MP015", "name", "the id of the aggregate"),
    ("emit('order', '1', '')", "MP015", "name", "the type of the event"),
    (r"emit('order', E'1\n', 'made')", "MP015", "name", "control characters"),
    (r"emit('order', '1', E'made\u2066')", "MP015", "name", "the direction of text"),
    ("emit('..', '1', 'made')", "MP015", "name", "remove them from URLs"),
    ("emit('order', '1', 'made', aggregate_seq => 0)", "MP015", "sequence", "the sequence 0 is not"),
    (r#"emit('order', '1', 'made', headers => '["a"]')"#, "MP015", "headers", "an object of strings"),
    ("emit('order', '1', 'made', headers => 'null')", "MP015", "headers", "an object of strings"),
    (
        r#"emit('order', '1', 'made', headers => '{"a": 1}')"#,
        "MP015",
        "headers",
        r#"the header "a" is not a string"#,
    ),
    (r#"emit('order', '1', 'made', headers => '{"a b": "1"}')"#, "MP015", "headers", "brokers refuse"),
    (r#"emit('order', '1', 'made', headers => '{"a": "1\r\n"}')"#, "MP015", "headers", "control characters"),
    (
        "emit('order', '1', 'made', headers => (select jsonb_object_agg('h' || n, '') from generate_series(1, 51) n))",
        "MP015",
        "headers",
        "51 headers",
    ),
    (
        "emit('order', '1', 'made', headers => jsonb_build_object('a', repeat('x', 8192)))",
        "MP015",
        "headers",
        "8193 bytes",
    ),
    (
        "emit('order', '1', 'made', to_json(repeat('x', 1048575)))",
        "MP015",
        "payload",
        "1048577 bytes; the limit is 1048576",
    ),
    (
        "emit('order', '1', 'made', (repeat('[', 121) || repeat(']', 121))::json)",
        "MP015",
        "payload",
        "nested 121 levels",
    ),
    (r#"emit('order', '1', 'made', '"\u0000"')"#, "MP015", "payload", "NUL"),
    (
        r#"emit('order', '1', 'made', '{"\u0024serde_json::private::\u0052awValue": "1"}')"#,
        "MP015",
        "payload",
        "which is reserved",
    ),
    ("emit_many(array['order'], array['1', '2'], array['made'])", "MP015", "arrays", "as many elements"),
    (
        "emit_many(array['order', 'order'], array['1', ''], array['made', 'made'])",
        "MP015",
        "name",
        "event 1 of the call",
    ),
    (
        "emit('order', '1', 'made', aggregate_seq => 1)",
        "MP016",
        "repeated 1",
        "order/1 is at sequence 1 already",
    ),
    ("emit('order', '1', 'made', aggregate_seq => 3)", "MP016", "gap 1", "would leave a gap"),
    (OTHER, "MP017", ID, "exists with other content"),
    ("emit('order', '1', 'made', '{not json')", "22P02", "", "json"),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_sql_functions_refuse_with_words_for_people_and_for_machines() {
    let (_database, store, log) = with_log().await;
    let first = format!(
        "select milepost.emit('order', '1', 'made', event_id => '{ID}', headers => '{{\"a\": \"1\"}}')"
    );
    store.pool().execute(sqlx::raw_sql(AssertSqlSafe(first))).await.unwrap();
    for (call, state, detail, words) in REFUSED.iter().copied() {
        let (found, message, found_detail) = refusal(&store, call).await;
        assert_eq!(found, state, "{call}: {message}");
        assert!(message.contains(words), "{call}: {message}");
        if state.starts_with("MP") {
            assert_eq!(found_detail, detail, "{call}");
        }
    }
    let all: Vec<LoggedEvent> = log.all().await;
    assert_eq!(all.len(), 1, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_and_the_library_write_one_log() {
    let (_database, store, log) = with_log().await;
    let event = with("1", r#"{"n": 1.0}"#).header("b", "2").header("a", "1");
    log.emit(&event).await;
    let again = format!(
        r#"select aggregate_seq::text || duplicate from milepost.emit('order', '1', 'order.changed', '{{"n":1}}', '{}', 1, '{{"a": "1", "b": "2"}}')"#,
        event.id
    );
    let again: String = sqlx::query_scalar(AssertSqlSafe(again)).fetch_one(store.pool()).await.unwrap();
    assert_eq!(again, "1true");
    let made: (uuid::Uuid, i64, bool) =
        sqlx::query_as("select * from milepost.emit('order', '1', 'order.shipped', '[1.50, 1e3]', aggregate_seq => 9, gap_allowed => true)")
            .fetch_one(store.pool())
            .await
            .unwrap();
    assert_eq!((made.1, made.2, made.0.get_version_num()), (9, false, 7));
    let many: Vec<(i64, bool)> = sqlx::query_as(
        "select aggregate_seq, duplicate from milepost.emit_many(array['order', 'order'], array['2', '1'], array['a', 'b'],
             headers => array[null, '{}']::jsonb[])",
    )
    .fetch_all(store.pool())
    .await
    .unwrap();
    assert_eq!(many, [(1, false), (10, false)]);
    let all = log.all().await;
    assert_eq!(all[1].event.payload.get(), "[1.50, 1e3]");
    assert_eq!(all[2].event.payload.get(), "{}", "the default payload is an empty object");
    assert!(all[3].event.headers.is_empty());
}

//! Tests that every statement can be prepared, and that hot ones have one plan regardless of the statistics.

mod inbox;
mod log;

use std::path::Path;
use std::time::Duration;

use milepost_core::doctor::{Check, Stores};
use milepost_core::job::NewJob;
use milepost_core::port::{IntakeStore, WorkerStore};
use milepost_core::worker::NewWorker;
use milepost_postgres::PostgresStore;
use milepost_testkit::database::Database;
use milepost_testkit::queries;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Scripts of several statements in one message, which cannot be prepared.
const SCRIPTS: &[&str] =
    &["begin_calm", "begin_own", "begin_pinned", "begin_snapshot", "bulk/begin_chunk", "bulk/take_begin"];

#[tokio::test]
async fn every_statement_prepares_against_a_migrated_database() {
    let (database, _store) = Database::with_store().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    for name in SCRIPTS {
        connection.execute(statement_named(name)).await.unwrap();
        connection.execute("rollback").await.unwrap();
    }
    let files = queries::all(CRATE);
    assert!(files.len() > SCRIPTS.len());
    for file in files.into_iter().filter(|file| !SCRIPTS.contains(&file.name.as_str())) {
        let prepared = connection.prepare(AssertSqlSafe(file.sql).into_sql_str()).await;
        assert!(prepared.is_ok(), "{}.sql: {:?}", file.name, prepared.err());
    }
}

#[tokio::test]
async fn a_transaction_behind_a_pooler_pins_what_a_session_pins_and_leaves_nothing() {
    let (database, _store) = Database::with_store().await;
    let mut session = PgConnection::connect(&database.url()).await.unwrap();
    let untouched = changed_settings(&mut session).await;
    session.execute(statement_named("pin_plans")).await.unwrap();
    let mut pinned = changed_settings(&mut session).await;
    assert!(pinned.len() > untouched.len() + 5, "{pinned:?}");
    // A transaction gets its isolation from its `begin`, and an idle session behind a pooler belongs to the pooler.
    let of_pooler = |name: &str| name == "idle_session_timeout" || name.starts_with("tcp_keepalives_");
    pinned.retain(|(name, _)| name != "default_transaction_isolation" && !of_pooler(name));

    let mut pooled = PgConnection::connect(&database.url()).await.unwrap();
    pooled.execute(statement_named("begin_pinned")).await.unwrap();
    let in_transaction = changed_settings(&mut pooled).await;
    let other = |(name, _): &&(String, String)| name != "transaction_isolation";
    assert!(in_transaction.iter().filter(other).eq(&pinned), "{in_transaction:?} {pinned:?}");
    for connection in [&mut session, &mut pooled] {
        let isolation = sqlx::query_scalar::<_, String>("show transaction_isolation");
        assert_eq!(isolation.fetch_one(connection).await.unwrap(), "read committed");
    }
    pooled.execute("commit").await.unwrap();
    assert_eq!(changed_settings(&mut pooled).await, untouched);
}

#[tokio::test]
async fn idle_sessions_of_a_store_end_only_if_their_client_is_gone_whatever_the_database_sets() {
    let (database, _store) = Database::with_store().await;
    for settings in ["pin_plans", "pin_calm", "compile_nothing", "listen_only"] {
        let mut session = PgConnection::connect(&database.url()).await.unwrap();
        session.execute("set idle_session_timeout = '10min'").await.unwrap();
        session.execute(statement_named(settings)).await.unwrap();
        let (timeout, idle, interval, count): (String, String, String, String) = sqlx::query_as(
            "select current_setting('idle_session_timeout'), current_setting('tcp_keepalives_idle'),
                    current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count')",
        )
        .fetch_one(&mut session)
        .await
        .unwrap();
        // Of a client that vanished, the places and locks are free again after half a minute, not after two hours.
        let found = [timeout, idle, interval, count];
        assert_eq!(found, ["0", "20", "5", "3"], "{settings}");
    }
}

/// Returns the settings of this session that differ from the server's, with their values.
async fn changed_settings(connection: &mut PgConnection) -> Vec<(String, String)> {
    sqlx::query_as("select name, setting from pg_settings where source = 'session' order by name")
        .fetch_all(connection)
        .await
        .unwrap()
}

#[test]
fn every_query_file_is_used() {
    assert_eq!(queries::unused(CRATE), [] as [&str; 0]);
}

#[test]
fn every_check_about_this_store_has_a_question() {
    for check in Check::ALL {
        let asked = Path::new(CRATE).join(format!("queries/doctor/{check}.sql")).exists();
        assert_eq!(asked, check.stores() != Stores::Sqlite, "{check}");
    }
}

/// The hot verbs with arguments of the right types; their values do not matter to a generic plan.
const HOT: &[(&str, &str)] = &[
    ("claim", "1, 1, 500, '{default}', '{test}', '{2}', '{null}'"),
    ("finish_succeeded", "'{}', '{}', '{}', 1"),
    ("finish_unfinished", "'{}', '{}', '{}', '{}', '{}', '{}', '{}', 1"),
    ("finish_stopped", "'{}', '{}', '{}', '{}', '{}', 1"),
    ("lock_runs", "'{}'"),
    ("clear_worker", "1"),
    ("ended_runs", "'{}', '{}', '{}', '{}'"),
    ("report", "'{}', '{}', '{}', '{}', '{}', '{}'"),
    ("held", "1"),
    ("stop_requests", "1"),
    ("heartbeat", "1"),
    ("peek", "'{default}', '{test}', '{2}', '{null}'"),
    ("lost_runs", "1, 500"),
    ("batch/join_overdue", "500"),
    ("waiting_groups", ""),
    ("jobs", "null, null, null, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50"),
    ("jobs_aside", "'failed', null, null, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50"),
    ("jobs_ended_aside", "'canceled', null, null, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50"),
    ("jobs_running", "'running', null, null, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50"),
    ("jobs_with_key", "null, null, null, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 50, 'k'"),
    ("history", "'ffffffff-ffff-ffff-ffff-ffffffffffff', 0, 50"),
    ("history_newest", "'ffffffff-ffff-ffff-ffff-ffffffffffff', 50"),
    ("key_holders", "'{test}', '{k}'"),
    ("prune_jobs", "1000, 1000, 1000, null, 0, 500, 500, '(0,0)', '(500,0)'"),
    ("shorten_history", "1000, 500, 500, '(0,0)', '(500,0)'"),
    ("prune_keys", "1000, 500"),
    ("prune_workers", "1000, 500"),
    ("prune_targets", "500"),
    ("inbox/prune_processed", "1000, 500"),
    ("inbox/prune_dead", "1000, 500"),
    ("inbox/gaps", "null, now(), 'c', 'order', '1', 50"),
];

/// The index that each of these statements must use: with another one it would read unrelated rows.
const READ_OFF: &[(&str, &[&str])] = &[
    ("batch/join_overdue", &["live_stop"]),
    ("stop_requests", &["live_stop"]),
    ("claim", &["live_ready"]),
    ("peek", &["live_ready"]),
    ("jobs", &["Index Scan Backward using live_pkey", "Index Scan Backward using ended_pkey"]),
    ("jobs_aside", &["Index Scan Backward using live_aside"]),
    ("jobs_ended_aside", &["Index Scan Backward using ended_aside"]),
    ("jobs_running", &["live_worker"]),
    ("jobs_with_key", &["job_key_pkey"]),
    ("history", &["history_job", "Index Cond: ((job_id ="]),
    ("history_newest", &["Index Scan Backward using history_job"]),
    ("key_holders", &["job_key_pkey", "job_pkey"]),
    ("prune_jobs", &["Tid Range Scan on ended", "live_failed", "aggregate_pkey"]),
    ("shorten_history", &["Tid Range Scan on ended"]),
    ("prune_keys", &["job_key_due"]),
    ("prune_workers", &["worker_ended", "live_worker"]),
    ("prune_targets", &["bulk_origin", "bulk_target_pkey"]),
    ("inbox/prune_processed", &["processed_event_due"]),
    ("inbox/prune_dead", &["inbox_dead_due", "aggregate_checkpoint_pkey"]),
    ("inbox/gaps", &["aggregate_checkpoint_gap", "Index Cond: (gives_up_at >="]),
];

/// Milepost's own statements in a chunk, on a connection whose plans are not pinned, since users' statements run on it.
const OF_CHUNKS: &[(&str, &str)] = &[
    ("bulk/take", "gen_random_uuid(), 1, 'x', null"),
    ("bulk/keep_size", "gen_random_uuid(), 1, 1"),
    ("bulk/next_failures", "gen_random_uuid(), null, 1"),
    ("bulk/lock", "gen_random_uuid(), 1"),
    ("bulk/instructions", "gen_random_uuid(), 1"),
    ("bulk/advance", "gen_random_uuid(), 1, null, 1, 0, 1, 1"),
    ("bulk/fail", "gen_random_uuid(), '[]', 'x', 'x'"),
    ("bulk/rest", "gen_random_uuid(), 1, null, 1"),
    ("bulk/settings", "gen_random_uuid()"),
    ("bulk/end", "gen_random_uuid(), 1"),
];

/// The state of the tables when ANALYZE ran.
const LIES: &[&str] = &["empty", "all pending", "all running"];

#[tokio::test]
async fn hot_statements_neither_scan_nor_sort_a_backlog_under_lying_statistics() {
    for lie in LIES {
        let (database, store) = Database::with_store().await;
        let mut connection = PgConnection::connect(&database.url()).await.unwrap();
        connection.execute("alter table milepost.live set (autovacuum_enabled = false)").await.unwrap();
        connection.execute("alter table milepost.job set (autovacuum_enabled = false)").await.unwrap();
        if *lie == "empty" {
            analyze(&mut connection).await;
            // A plan made now is still used when the tables have grown.
            explain_all(&mut connection, "empty, and are").await;
        }
        fill(&store).await;
        if *lie == "all running" {
            let worker = NewWorker {
                name: "test".into(),
                queues: vec!["default".into()],
                kinds: vec!["test".into()],
                lease: Duration::from_secs(600),
                ..NewWorker::default()
            };
            let worker = store.register_worker(&worker).await.unwrap();
            let claimed = store.claim(&milepost_testkit::scene::claim(worker, 20_000)).await.unwrap();
            assert_eq!(claimed.len(), 20_000);
        }
        if *lie != "empty" {
            analyze(&mut connection).await;
        }
        explain_all(&mut connection, lie).await;
        let mut chunks = PgConnection::connect(&database.url()).await.unwrap();
        for (name, arguments) in OF_CHUNKS {
            check_plan(name, lie, &explain(&mut chunks, name, arguments).await);
        }
        assert_groups_do_not_scan(&mut connection, lie).await;
        assert_rules_do_not_scan(&mut connection, lie).await;
    }
}

/// Calls with rules for duplicates, and edits, find keys and jobs by their indexes.
async fn assert_rules_do_not_scan(connection: &mut PgConnection, lie: &str) {
    let mut tx = connection.begin().await.unwrap();
    let enqueue = |rule: &str| {
        let rule = format!("array_fill('{rule}'::jsonb, array[300])");
        let keys = "array(select 'rule ' || n from generate_series(1, 300) n)";
        format!(
            "select milepost.enqueue_many_by_key(array_fill('test'::text, array[300]), array_fill('{{}}'::jsonb, array[300]), {rule}, keys => {keys})"
        )
    };
    for verb in [
        enqueue(r#"{"action": "keep", "unique": "live"}"#),
        enqueue(r#"{"action": "replace"}"#),
        enqueue(r#"{"action": "debounce", "delay_ms": 1000, "max_delay_ms": 2000}"#),
        "select milepost.cancel(k.job_id, null) from milepost.job_key k where starts_with(k.key, 'rule 1') limit 50".to_owned(),
        enqueue(r#"{"action": "replace"}"#),
        "select milepost.edit_job(k.job_id, '1', 1, null, 5000, 3, 'why') from milepost.job_key k where starts_with(k.key, 'rule 2')
         limit 50"
            .to_owned(),
    ] {
        tx.execute(AssertSqlSafe(verb)).await.unwrap();
    }
    let edits: i64 = count(&mut tx, "select count(*) from milepost.history where verb = 'edit'").await;
    assert_eq!(edits, 900, "when analyzed {lie}");
    let scans = "select sum(seq_scan)::bigint from pg_stat_xact_user_tables
                 where schemaname = 'milepost' and relname in ('live', 'job', 'ended')";
    assert_eq!(count(&mut tx, scans).await, 0, "rules scan when analyzed {lie}");
    tx.rollback().await.unwrap();
}

/// The plan does not show the statements inside functions, but every scan is counted.
async fn assert_groups_do_not_scan(connection: &mut PgConnection, lie: &str) {
    let mut tx = connection.begin().await.unwrap();
    for verb in [
        "insert into milepost.group_limit (name, slots, per_second, burst, portion, source)
         values ('t:*', 3, null, null, null, 'operator'), ('r:*', null, 10, 10, 1, 'operator')",
        "select milepost.enqueue_many(array_fill('test'::text, array[900]), array_fill('{}'::jsonb, array[900]),
             groups => (select array_agg((array['t:', 'r:', 'g'])[1 + n % 3] || n % 30) from generate_series(1, 900) n))",
        "select milepost.pace()",
        "select milepost.free_groups(array(select job_id from milepost.group_slot))",
        "select milepost.hand_over(array_agg(distinct group_key), true) from milepost.group_slot",
        "select milepost.pace()",
    ] {
        tx.execute(verb).await.unwrap();
    }
    let released: i64 = count(&mut tx, "select count(*) from milepost.history where verb = 'release'").await;
    assert!(released > 150, "{released} jobs were released when analyzed {lie}");
    let scans = "select sum(seq_scan)::bigint from pg_stat_xact_user_tables
                 where schemaname = 'milepost' and relname in ('live', 'job', 'ended')";
    assert_eq!(count(&mut tx, scans).await, 0, "groups scan when analyzed {lie}");
    tx.rollback().await.unwrap();
}

/// PostgreSQL compiles a plan with an estimated cost above 100,000 (`jit_above_cost`) at each execution, even if the result
/// is empty.
#[tokio::test]
async fn the_list_of_limits_is_never_compiled() {
    let (database, _store) = Database::with_store().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    let explain = format!("explain {}", statement_named("limits"));
    let plan: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).fetch_all(&mut connection).await.unwrap();
    // Sort  (cost=11116.78..11120.33 rows=1420 width=136)
    let cost = plan[0].split("..").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(cost.parse::<f64>().unwrap() < 50_000.0, "{}", plan.join("\n"));
}

async fn count(connection: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

async fn explain_all(connection: &mut PgConnection, lie: &str) {
    connection.execute(statement_named("pin_plans")).await.unwrap();
    for (name, arguments) in HOT {
        let plan = explain(connection, name, arguments).await;
        check_plan(name, lie, &plan);
    }
}

pub(crate) fn statement_named(name: &str) -> &'static str {
    let path = format!("{CRATE}/queries/{name}.sql");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")).leak()
}

async fn analyze(connection: &mut PgConnection) {
    connection
        .execute("analyze milepost.live, milepost.job, milepost.job_key, milepost.ended, milepost.history")
        .await
        .unwrap();
}

async fn fill(store: &PostgresStore) {
    for _ in 0..20 {
        let jobs: Vec<NewJob> = (0..1000).map(|n| NewJob::new("test", &n).unwrap()).collect();
        store.enqueue_many(&jobs).await.unwrap();
    }
}

pub(crate) async fn explain(connection: &mut PgConnection, name: &str, arguments: &str) -> Vec<String> {
    let prepare = format!("prepare hot as {}", statement_named(name));
    connection.execute(sqlx::raw_sql(sqlx::AssertSqlSafe(prepare))).await.unwrap();
    let arguments = if arguments.is_empty() { String::new() } else { format!("({arguments})") };
    let explain = format!("explain (costs off) execute hot{arguments}");
    let plan =
        sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).persistent(false).fetch_all(&mut *connection).await;
    connection.execute("deallocate hot").await.unwrap();
    plan.unwrap()
}

/// Checks that large tables are read by an index, and that only rows from pages of an index are sorted.
fn check_plan(name: &str, lie: &str, plan: &[String]) {
    let text = plan.join("\n");
    for line in plan {
        let scans = line.contains("Seq Scan on");
        let grows =
            ["live", "job", "job_key", "ended", "history", "progress", "aggregate"].iter().any(|table| {
                line.contains(&format!("Seq Scan on {table} "))
                    || line.ends_with(&format!("Seq Scan on {table}"))
            });
        assert!(!(scans && grows), "{name} scans when analyzed {lie}:\n{text}");
        assert!(!line.contains("Hash Join") && !line.contains("Merge Join"), "{name}, {lie}:\n{text}");
    }
    let indexes = READ_OFF.iter().filter(|(read, _)| *read == name).flat_map(|(_, indexes)| *indexes);
    for index in indexes {
        assert!(text.contains(index), "{name} does not use {index} when analyzed {lie}:\n{text}");
    }
    if matches!(name, "claim" | "peek" | "jobs_aside" | "jobs_ended_aside") {
        assert!(!text.contains("Sort"), "{name} sorts when analyzed {lie}:\n{text}");
    }
}

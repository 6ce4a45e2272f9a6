//! Roles with least privilege, as created by `ops/postgres/roles.sql`: each sentence of the table in docs/SECURITY.md, both
//! what a role may do and what it may not do.

use std::sync::Arc;

use milepost_core::port::{Store, TokenStore};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;
use milepost_testkit::server::Server;
use sqlx::{AssertSqlSafe, Executor, PgPool, raw_sql};

mod application;
mod audit;
mod reader;
mod server;
mod worker;

const ROLES: &str = include_str!("../../../../../ops/postgres/roles.sql");

/// SQLSTATE of an operation for which a role lacks the privilege.
const REFUSED: &str = "42501";

async fn run(pool: &PgPool, sql: &'static str) -> Result<(), sqlx::Error> {
    pool.execute(raw_sql(sql)).await.map(drop)
}

/// Creates a migrated store with the roles.
async fn with_roles() -> (Database, PostgresStore) {
    let (database, owner) = Database::with_store().await;
    run(owner.pool(), ROLES).await.unwrap();
    (database, owner)
}

/// Opens the store as this role: its connections set the role, and so lose their other privileges.
async fn seen_by(role: &str, database: &Database) -> PostgresStore {
    let url = format!("{}?options=-c%20role%3D{role}", database.url());
    PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap()
}

async fn may(store: &PostgresStore, sql: &'static str) {
    run(store.pool(), sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn may_not(store: &PostgresStore, sql: &'static str) {
    is_refused(store, sql, REFUSED).await;
}

/// Runs statements that must fail with this SQLSTATE.
async fn is_refused(store: &PostgresStore, sql: &'static str, expected: &str) {
    let answer = run(store.pool(), sql).await;
    let code = answer
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error)
        .and_then(sqlx::error::DatabaseError::code);
    assert_eq!(code.as_deref(), Some(expected), "{sql}: {answer:?}");
}

/// A DAG with one task, a bulk job, limits of groups, and a subscription that selects changes.
const SCENE: &str = "
    with v as (
        insert into milepost.dag_version (name, number, version, canonical, tasks, edges, depth)
        values ('settlement', 1, 'abc', '{}', 1, 0, 1) returning id
    ), d as (insert into milepost.dag (name, latest) select 'settlement', id from v)
    insert into milepost.dag_task select id, 0, 'all_success', true, 0, 'a', '{}', '{}', '{}', '{}', 'mail', 'default', 2, null, 3 from v;
    insert into milepost.bulk_definition (name, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max, duty,
                                          failures_max, effects, fingerprint, source)
    values ('notify', 'bulk:notify', 'bulk', 2, 3, 100, 1, 10, 1, 0, 'transaction', 'f', 'config');
    insert into milepost.group_limit (name, slots, per_second, burst, portion, source)
    values ('t:*', 2, 1, 1, 1, 'operator'), ('slots:*', 3, null, null, null, 'operator');
    select milepost.subscribe('all', false);
    insert into milepost.change_source values ('kind', 'mail', 'all'), ('dag', 'settlement', 'all');";

/// Returns the tables of the store.
async fn tables(owner: &PostgresStore) -> Vec<String> {
    let tables = "select relname::text from pg_class where relnamespace = 'milepost'::regnamespace and relkind = 'r' order by relname";
    sqlx::query_scalar(tables).fetch_all(owner.pool()).await.unwrap()
}

/// Returns the privileges that a role has on a table or on one of its columns.
async fn rights(owner: &PostgresStore, role: &str, table: &str) -> Vec<String> {
    let rights = "select p.name from unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p(name)
        where has_table_privilege($1, 'milepost.' || $2, p.name)
           or p.name in ('select', 'insert', 'update') and has_any_column_privilege($1, 'milepost.' || $2, p.name)
        order by p.name";
    sqlx::query_scalar(rights).bind(role).bind(table).fetch_all(owner.pool()).await.unwrap()
}

async fn number(store: &PostgresStore, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(store.pool()).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn shared(role: &str) -> (Database, Arc<dyn Store>) {
    let (database, _owner) = with_roles().await;
    let store = seen_by(role, &database).await;
    (database, Arc::new(store))
}

#[tokio::test]
async fn the_migrator_migrates_and_grants_again_without_being_a_superuser() {
    let (database, owner) = with_roles().await;
    let migrator = seen_by("milepost_migrator", &database).await;
    migrator.migrate().await.unwrap();
    may(&migrator, "create table milepost.later (n int)").await;
    let server = seen_by("milepost_server", &database).await;
    may(&server, "select from milepost.later").await;
    let reader = seen_by("milepost_reader", &database).await;
    may_not(&reader, "select from milepost.later").await;
    may(&migrator, ROLES).await;
    may_not(&reader, "select from milepost.access_token").await;
    let others = "select count(*) from pg_class where relnamespace = 'milepost'::regnamespace and relowner <> 'milepost_migrator'::regrole";
    let others: i64 = sqlx::query_scalar(others).fetch_one(owner.pool()).await.unwrap();
    assert_eq!(others, 0, "the migrator owns everything");
}

/// Uses a separate server, which has none of the roles yet. A superuser's role takes the place of one that the creator may
/// not grant.
#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_refused_takes_no_role_back() {
    let server = Server::create().await;
    let postgres = PgPool::connect(&server.url()).await.unwrap();
    run(
        &postgres,
        "create role boss superuser; create role maker login createrole; create role milepost_migrator;
        grant milepost_migrator to maker",
    )
    .await
    .unwrap();
    run(&postgres, "create database shop owner maker").await.unwrap();
    let url = server.url().replace("postgres@", "maker@").replace("/postgres", "/shop");
    let maker = PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap();
    maker.migrate().await.unwrap();
    let refused = ROLES.replace("pg_read_all_stats", "boss");
    maker.pool().execute(raw_sql(AssertSqlSafe(refused))).await.unwrap();
    let made = "select count(*) from pg_roles where rolname like 'milepost\\_%'";
    let made: i64 = sqlx::query_scalar(made).fetch_one(&postgres).await.unwrap();
    assert_eq!(made, 5);
}

#[tokio::test]
async fn of_every_table_it_has_been_decided_who_may_use_it() {
    let (_database, owner) = with_roles().await;
    let tables = "select relname::text from pg_class where relnamespace = 'milepost'::regnamespace and relkind in ('r', 'v', 'm', 'p')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(owner.pool()).await.unwrap();
    let named: Vec<&str> = ROLES
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
        .filter_map(|word| word.strip_prefix("milepost."))
        .collect();
    for table in &tables {
        assert!(
            named.contains(&table.as_str()),
            "milepost.{table}: grant its privileges in ops/postgres/roles.sql"
        );
    }
    assert!(tables.len() > 40, "{tables:?}");
}

#[tokio::test]
async fn functions_with_their_owners_rights_are_granted_by_name_and_look_nothing_up() {
    let (_database, owner) = Database::with_store().await;
    let open = "select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'milepost'::regnamespace and p.prosecdef
          and (has_function_privilege('public', p.oid, 'execute') or p.proconfig[1] is distinct from 'search_path=pg_catalog, pg_temp')";
    let open: Vec<String> = sqlx::query_scalar(open).fetch_all(owner.pool()).await.unwrap();
    assert!(open.is_empty(), "{open:?}: revoke it from public, and set its search_path");
    let foreign = "select p.oid::regprocedure::text from pg_proc p, unnest(p.proargtypes) a(type) join pg_type t on t.oid = a.type
        where p.pronamespace = 'milepost'::regnamespace and p.prosecdef and t.typnamespace <> 'pg_catalog'::regnamespace";
    let foreign: Vec<String> = sqlx::query_scalar(foreign).fetch_all(owner.pool()).await.unwrap();
    assert!(foreign.is_empty(), "{foreign:?}: arguments must have types of pg_catalog");
}

#[tokio::test]
async fn each_role_executes_the_functions_with_their_owners_rights_that_it_needs() {
    const INTAKE: [&str; 14] = [
        "begin_batch",
        "emit_many",
        "enqueue_many",
        "enqueue_many_by_key",
        "expect_from",
        "give_up_gaps",
        "inbox_ready",
        "next_parked",
        "once",
        "put_consumer",
        "receive",
        "signal",
        "signal_by_key",
        "start_bulk",
    ];
    let (_database, owner) = with_roles().await;
    for (role, more) in [
        ("milepost_app", Some([].as_slice())),
        ("milepost_worker", Some(&["prune_audit", "touch_token"])),
        ("milepost_server", Some(&["prune_audit", "switch_recording", "touch_token"])),
        ("milepost_reader", None),
    ] {
        let granted = "select p.proname::text from pg_proc p
            where p.pronamespace = 'milepost'::regnamespace and p.prosecdef and has_function_privilege($1, p.oid, 'execute')
            order by p.proname";
        let granted: Vec<String> =
            sqlx::query_scalar(granted).bind(role).fetch_all(owner.pool()).await.unwrap();
        let mut expected: Vec<&str> =
            more.map_or_else(Vec::new, |more| INTAKE.iter().chain(more).copied().collect());
        expected.sort_unstable();
        assert_eq!(granted, expected, "{role}");
    }
}

#[tokio::test]
async fn a_trigger_function_with_its_owners_rights_works_on_its_own_table_only() {
    let (database, owner) = with_roles().await;
    run(owner.pool(), SCENE).await.unwrap();
    run(owner.pool(), "grant create on schema public to milepost_app").await.unwrap();
    let table = "create table public.theirs (job_id uuid, pos bigint)";
    let trigger = "create trigger t after insert on public.theirs referencing new table as changed
        for each statement execute function milepost.record_job_changes()";
    let app = seen_by("milepost_app", &database).await;
    may(&app, table).await;
    may_not(&app, trigger).await;
    // Not even with a grant.
    run(owner.pool(), "grant execute on function milepost.record_job_changes() to milepost_app")
        .await
        .unwrap();
    may(&app, trigger).await;
    may_not(&app, "insert into public.theirs values (gen_random_uuid(), 1)").await;
}

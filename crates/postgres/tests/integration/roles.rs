//! Roles of least privilege, as `ops/postgres/roles.sql` makes them: what each may do, and what is refused.

use std::sync::Arc;

use milepost_core::port::{Store, TokenStore};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;
use milepost_testkit::server::Server;
use sqlx::{AssertSqlSafe, Executor, PgPool, raw_sql};

const ROLES: &str = include_str!("../../../../ops/postgres/roles.sql");

/// The SQLSTATE of what a role may not do.
const REFUSED: &str = "42501";

async fn run(pool: &PgPool, sql: &'static str) -> Result<(), sqlx::Error> {
    pool.execute(raw_sql(sql)).await.map(drop)
}

/// A migrated store in which the roles are.
async fn with_roles() -> (Database, PostgresStore) {
    let (database, owner) = Database::with_store().await;
    run(owner.pool(), ROLES).await.unwrap();
    (database, owner)
}

/// The store as this role sees it: its connections give up what else they may do.
async fn seen_by(role: &str, database: &Database) -> PostgresStore {
    let url = format!("{}?options=-c%20role%3D{role}", database.url());
    PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap()
}

async fn may(store: &PostgresStore, sql: &'static str) {
    run(store.pool(), sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

async fn may_not(store: &PostgresStore, sql: &'static str) {
    let answer = run(store.pool(), sql).await;
    let code = answer
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error)
        .and_then(sqlx::error::DatabaseError::code);
    assert_eq!(code.as_deref(), Some(REFUSED), "{sql}: {answer:?}");
}

/// A DAG of one task, a bulk job, a limit of a group, and somebody who wants to hear of changes.
const SCENE: &str = "
    with v as (
        insert into milepost.dag_version (name, number, version, canonical, tasks, edges, depth)
        values ('settlement', 1, 'abc', '{}', 1, 0, 1) returning id
    ), d as (insert into milepost.dag (name, latest) select 'settlement', id from v)
    insert into milepost.dag_task select id, 0, 'all_success', true, 0, 'a', '{}', '{}', '{}', '{}', 'mail', 'default', 2, null, 3 from v;
    insert into milepost.bulk_definition (name, group_key, queue, priority, max_attempts, chunk_ms, chunk_rows_min, chunk_rows_max, duty,
                                          failures_max, effects, fingerprint, source)
    values ('notify', 'bulk:notify', 'bulk', 2, 3, 100, 1, 10, 1, 0, 'transaction', 'f', 'config');
    insert into milepost.group_limit (name, slots, per_second, burst, portion, source) values ('t:*', 2, 1, 1, 1, 'operator');
    select milepost.subscribe('all', false);
    insert into milepost.change_source values ('kind', 'mail', 'all'), ('dag', 'settlement', 'all');";

#[tokio::test]
async fn an_application_makes_work_and_takes_events_in() {
    let (database, owner) = with_roles().await;
    may(&owner, SCENE).await;
    for what in ["select milepost.switch_recording('kind')", "select milepost.switch_recording('dag')"] {
        may(&owner, what).await;
    }
    let app = seen_by("milepost_app", &database).await;
    app.check_schema().await.unwrap();
    for repeated in [
        "select milepost.enqueue('mail', '{}', key => 'order-7')",
        "select milepost.enqueue('mail', group_key => 'plain')",
        "select milepost.enqueue('mail', group_key => 't:1')",
        "select milepost.enqueue('mail', group_key => 't:1', run_at => now() + interval '1 hour')",
        "select milepost.emit('order', '17', 'order.paid')",
        "select milepost.emit('order', '18', 'order.paid', event_id => '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c')",
        "select milepost.emit_many(array['order', 'order'], array['19', '19'], array['order.paid', 'order.sent'])",
        "select milepost.start_bulk('notify', key => 'once')",
        "select milepost.start_batch('settlement', key => '2026-11-22')",
        "select milepost.receive('shop', 'order', '1', 1, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b21', 'order.paid')",
        "select milepost.once('shop', '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b20')",
    ] {
        may(&app, repeated).await;
        may(&app, repeated).await;
        may(&app, repeated).await;
    }
    for once in [
        "select milepost.receive('shop', 'order', '1', 3, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b23', 'order.paid')",
        "select milepost.receive('shop', 'order', '1', 2, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b22', 'order.paid')",
        "select milepost.next_parked('shop', 'order', '1')",
        "select milepost.put_consumer('shop', gap_wait_ms => 0)",
        "select milepost.receive('shop', 'order', '1', 9, '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b29', 'order.paid')",
        "select milepost.expect_from('shop', 'order', '2', 9)",
        "select milepost.inbox_ready('shop'), milepost.give_up_gaps('shop')",
    ] {
        may(&app, once).await;
    }
}

#[tokio::test]
async fn an_application_cancels_nothing_and_reads_no_payload_of_a_job() {
    let (database, owner) = with_roles().await;
    may(&owner, SCENE).await;
    let app = seen_by("milepost_app", &database).await;
    may(&app, "select milepost.enqueue('mail'), milepost.start_batch('settlement')").await;
    for refused in [
        "select milepost.cancel(id) from milepost.live",
        "select milepost.change(id, 'skip') from milepost.live",
        "select milepost.cancel_batch(id) from milepost.batch",
        "select milepost.abort_batch(id) from milepost.batch",
        "select payload from milepost.job",
        "select input from milepost.batch_input",
        "select result from milepost.ended",
        "delete from milepost.live",
        "update milepost.live set priority = 0",
        "update milepost.event set payload = '{}'",
        "delete from milepost.event",
        "select from milepost.access_token",
        "select from milepost.console_session",
        "select from milepost.audit",
        "insert into milepost.audit (who, what, detail) values ('me', 'nothing', '{}')",
        "select milepost.switch_recording('kind')",
    ] {
        may_not(&app, refused).await;
    }
}

#[tokio::test]
async fn a_worker_makes_no_tokens_and_rewrites_no_audit() {
    let (database, _owner) = with_roles().await;
    let worker = seen_by("milepost_worker", &database).await;
    may(&worker, "insert into milepost.audit (who, what, detail) values ('config', 'limit.put', '{}')").await;
    assert!(!worker.has_tokens().await.unwrap(), "it can ask who may see its numbers");
    assert!(worker.token("none").await.unwrap().is_none());
    may(&worker, "update milepost.access_token set last_used_at = now()").await;
    for refused in [
        "insert into milepost.access_token (prefix) values ('mine')",
        "delete from milepost.access_token",
        "update milepost.access_token set role = 'admin'",
        "select from milepost.console_session",
        "select detail from milepost.audit",
        "update milepost.audit set who = 'nobody'",
        "update milepost.subscription set paused_at = now()",
        "update milepost.transition set to_state = 'succeeded'",
        "delete from milepost.schema_migration",
        "create table milepost.mine (id int)",
        "truncate milepost.live",
    ] {
        may_not(&worker, refused).await;
    }
}

#[tokio::test]
async fn a_server_changes_neither_the_schema_nor_the_audit() {
    let (database, _owner) = with_roles().await;
    let server = seen_by("milepost_server", &database).await;
    may(&server, "select milepost.switch_recording('kind')").await;
    for refused in [
        "update milepost.audit set why = 'it was not me'",
        "update milepost.transition set to_state = 'succeeded'",
        "delete from milepost.schema_migration",
        "create table milepost.mine (id int)",
        "drop table milepost.live",
        "alter table milepost.history disable trigger all",
        "truncate milepost.live",
    ] {
        may_not(&server, refused).await;
    }
}

#[tokio::test]
async fn a_reader_sees_all_but_tokens_and_changes_nothing() {
    let (database, owner) = with_roles().await;
    may(&owner, "select milepost.enqueue('mail')").await;
    let reader = seen_by("milepost_reader", &database).await;
    reader.check_schema().await.unwrap();
    may(
        &reader,
        "select payload from milepost.job; select from milepost.attempt; select who from milepost.audit",
    )
    .await;
    for refused in [
        "select from milepost.access_token",
        "select from milepost.console_session",
        "select milepost.enqueue('mail')",
        "select milepost.emit('order', '17', 'order.paid')",
        "select milepost.cancel(id) from milepost.live",
        "delete from milepost.ended",
    ] {
        may_not(&reader, refused).await;
    }
}

#[tokio::test]
async fn the_migrator_migrates_and_grants_again_without_being_a_superuser() {
    let (database, owner) = with_roles().await;
    let migrator = seen_by("milepost_migrator", &database).await;
    may(&owner, "delete from milepost.schema_migration where version > 14; drop table milepost.console_session, milepost.access_token; drop view milepost.running_epoch; drop table milepost.epoch")
        .await;
    assert_eq!(migrator.migrate().await.unwrap().from, 14);
    let server = seen_by("milepost_server", &database).await;
    may(&server, "select from milepost.access_token").await;
    let reader = seen_by("milepost_reader", &database).await;
    may_not(&reader, "select from milepost.access_token").await;
    may(&migrator, ROLES).await;
    may_not(&reader, "select from milepost.access_token").await;
    let others = "select count(*) from pg_class where relnamespace = 'milepost'::regnamespace and relowner <> 'milepost_migrator'::regrole";
    let others: i64 = sqlx::query_scalar(others).fetch_one(owner.pool()).await.unwrap();
    assert_eq!(others, 0, "all is the migrator's");
}

/// A server of its own has none of the roles yet. A superuser's role stands for one that whoever makes them may not grant.
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
            "milepost.{table}: say in ops/postgres/roles.sql who may use it"
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
    run(owner.pool(), ROLES).await.unwrap();
    let granted = "select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'milepost'::regnamespace and p.prosecdef and has_function_privilege('milepost_worker', p.oid, 'execute')";
    let granted: Vec<String> = sqlx::query_scalar(granted).fetch_all(owner.pool()).await.unwrap();
    assert!(granted.is_empty(), "{granted:?}: only the server switches the recording");
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
    // Not even if somebody grants it.
    run(owner.pool(), "grant execute on function milepost.record_job_changes() to milepost_app")
        .await
        .unwrap();
    may(&app, trigger).await;
    may_not(&app, "insert into public.theirs values (gen_random_uuid(), 1)").await;
}

async fn shared(role: &str) -> (Database, Arc<dyn Store>) {
    let (database, _owner) = with_roles().await;
    let store = seen_by(role, &database).await;
    (database, Arc::new(store))
}

async fn by_worker() -> (Database, Arc<dyn Store>) {
    shared("milepost_worker").await
}

async fn by_server() -> (Database, Arc<dyn Store>) {
    shared("milepost_server").await
}

mod as_worker {
    milepost_testkit::conformance! { crate::roles::by_worker:
        fences {
            checkpoints_and_progress_are_kept_for_the_next_attempt
        }
        doctor {
            a_store_with_jobs_in_every_state_has_no_findings
        }
        groups {
            a_slot_is_handed_on_by_priority_then_due_time
        }
    }
}

mod as_server {
    milepost_testkit::conformance! { crate::roles::by_server:
        admin {
            a_running_job_is_asked_to_stop_and_fenced_off_after_its_grace
        }
        audit {
            every_change_by_an_actor_leaves_one_row
        }
        changes {
            a_forgotten_job_leaves_its_events_and_no_damage
            each_subscription_gets_the_changes_that_it_wants
        }
        tokens {
            a_session_ends_with_its_token
            the_id_of_a_session_is_changed_once_and_the_old_one_counts_for_a_moment
        }
    }
}

//! Tests of the schema: a fresh store equals a migrated one, a newer one is refused, and the table of transitions equals the
//! library's.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::port::{IntakeStore, TokenStore};
use milepost_core::state::JobState;
use milepost_core::transition::{Readiness, Verb, transition};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::Scene;
use milepost_testkit::database::Database;
use sqlx::{Connection, Executor};

use crate::settings::set;

async fn connected() -> (Database, PostgresStore) {
    let database = Database::create().await;
    let store = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.unwrap();
    (database, store)
}

#[tokio::test]
async fn an_empty_store_has_to_be_migrated_first() {
    let (_database, store) = connected().await;
    let refused = store.check_schema().await;
    assert!(matches!(refused, Err(StoreError::Schema(SchemaError::TooOld { found: 0, .. }))), "{refused:?}");
    let migrated = store.migrate().await.unwrap();
    assert_eq!(migrated.from, 0);
    store.check_schema().await.unwrap();
    let again = store.migrate().await.unwrap();
    assert_eq!((again.from, again.to), (migrated.to, migrated.to), "a second migration changes nothing");
}

#[tokio::test]
async fn many_processes_may_migrate_at_once() {
    let (_database, store) = connected().await;
    let all = futures::future::join_all((0..6).map(|_| store.migrate())).await;
    assert_eq!(all.iter().filter(|migrated| migrated.as_ref().unwrap().from == 0).count(), 1);
}

/// A migration that waits for another one finds what that has created, although its session had found nothing before.
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_that_waited_knows_what_another_one_created() {
    let (_reference, migrated) = connected().await;
    let known = migrated.migrate().await.unwrap().to;
    let recorded: Vec<(i64, String, String)> =
        sqlx::query_as("select version, name, checksum from milepost.schema_migration")
            .fetch_all(migrated.pool())
            .await
            .unwrap();
    assert_eq!(recorded.len(), usize::try_from(known).unwrap());
    let (database, store) = connected().await;
    let mut other = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    other.execute("begin; select pg_advisory_xact_lock(19792, 3)").await.unwrap();
    other
        .execute(
            "create schema milepost;
             create table milepost.schema_migration (
                 version bigint primary key, name text not null, checksum text not null,
                 applied_at timestamptz not null default now(), compatible_from bigint);
             create table milepost.job ()",
        )
        .await
        .unwrap();
    for (version, name, checksum) in recorded {
        let insert = "insert into milepost.schema_migration (version, name, checksum) values ($1, $2, $3)";
        sqlx::query(insert).bind(version).bind(name).bind(checksum).execute(&mut other).await.unwrap();
    }
    let waiting = tokio::spawn(async move { store.migrate().await });
    let waits =
        "select exists (select from pg_locks where not granted and locktype = 'advisory' and objid = 3)";
    while !sqlx::query_scalar::<_, bool>(waits).fetch_one(migrated.pool()).await.unwrap() {}
    other.execute("commit").await.unwrap();
    // It goes on to the functions, which do not fit this half of a store.
    let failed = waiting.await.unwrap().unwrap_err();
    assert!(matches!(failed, StoreError::Database { .. }), "{failed:?}");
}

#[tokio::test]
async fn a_newer_store_is_used_if_it_allows_this_binary_and_refused_if_not() {
    let (_database, store) = connected().await;
    let known = store.migrate().await.unwrap().to;
    let newer = |compatible_from: i64| {
        sqlx::query("insert into milepost.schema_migration (version, name, checksum, compatible_from) values ($1 + 998 + $2, 'later', 'x', $1 + $2)")
            .bind(known)
            .bind(compatible_from)
            .execute(store.pool())
    };
    newer(0).await.unwrap();
    store.check_schema().await.unwrap();
    let migrated = store.migrate().await.unwrap();
    assert_eq!((migrated.from, migrated.to), (known + 998, known + 998), "an older binary changes nothing");
    assert_eq!(store.plan_migration().await.unwrap().steps, []);
    store.enqueue_many(&[Scene::job()]).await.unwrap();

    newer(1).await.unwrap();
    let planned = store.plan_migration().await.map(drop);
    for refused in [store.check_schema().await, store.migrate().await.map(drop), planned] {
        assert!(matches!(refused, Err(StoreError::Schema(SchemaError::TooNew { .. }))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_store_whose_migrations_do_not_say_what_they_allow_can_be_used_and_migrated() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    let early = "alter table milepost.schema_migration drop column compatible_from";
    store.pool().execute(early).await.unwrap();
    store.check_schema().await.unwrap();
    store.migrate().await.unwrap();
    store.check_schema().await.unwrap();
    store.pool().execute(early).await.unwrap();
    let newer = "insert into milepost.schema_migration (version, name, checksum) values (999, 'later', 'x')";
    store.pool().execute(newer).await.unwrap();
    let refused = store.check_schema().await;
    assert!(
        matches!(refused, Err(StoreError::Schema(SchemaError::TooNew { found: 999, .. }))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_plan_names_the_migrations_and_changes_nothing() {
    let (_database, store) = connected().await;
    let plan = store.plan_migration().await.unwrap();
    assert_eq!((plan.found, plan.steps.len()), (0, usize::try_from(plan.known).unwrap()));
    assert!(matches!(
        store.check_schema().await,
        Err(StoreError::Schema(SchemaError::TooOld { found: 0, .. }))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_waits_for_a_locked_table_without_keeping_others_waiting() {
    let (database, store) = connected().await;
    store.migrate().await.unwrap();
    // The table of an early build: adding its column needs a lock that a reader in a transaction prevents.
    store.pool().execute("alter table milepost.schema_migration drop column compatible_from").await.unwrap();
    let mut reader = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    reader.execute("begin").await.unwrap();
    reader.execute("select from milepost.schema_migration").await.unwrap();
    let mut waiting = Box::pin({
        let store = store.clone();
        async move { store.migrate().await }
    });
    let mut other = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    other.execute("set statement_timeout = '20s'").await.unwrap();
    let reads_go_on = async {
        while !is_waiting_for_lock(&mut other).await {}
        // Behind the waiting migration, and answered when that gives up its lock.
        other.execute("select from milepost.schema_migration").await.unwrap();
    };
    tokio::select! {
        migrated = &mut waiting => panic!("it did not wait: {migrated:?}"),
        () = reads_go_on => {}
    }
    reader.execute("rollback").await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn the_session_that_holds_the_lock_of_migrations_is_named() {
    let (database, store) = connected().await;
    store.migrate().await.unwrap();
    let mut holder = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut holder).await.unwrap();
    holder.execute("set application_name = 'another migration'").await.unwrap();
    let described = async || -> Option<String> {
        let in_the_way = include_str!("../../queries/in_the_way.sql");
        sqlx::query_scalar(in_the_way).fetch_one(store.pool()).await.unwrap()
    };
    let named = format!("session {pid} of ");
    assert!(described().await.is_none_or(|sessions| !sessions.contains(&named)));
    holder.execute("select pg_advisory_lock(19792, 3)").await.unwrap();
    let sessions = described().await.unwrap();
    assert!(sessions.contains(&named) && sessions.contains("(another migration), idle"), "{sessions}");
}

/// Returns whether a session waits for a lock on the table of migrations.
async fn is_waiting_for_lock(connection: &mut sqlx::PgConnection) -> bool {
    let waits = "select exists (select from pg_locks where not granted and relation = to_regclass('milepost.schema_migration'))";
    sqlx::query_scalar(waits).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn a_connection_whose_statement_is_outdated_by_a_migration_is_replaced() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    store.tokens().await.unwrap();
    store.pool().execute("alter table milepost.access_token add column later int").await.unwrap();
    let outdated = store.tokens().await.unwrap_err();
    assert!(outdated.is_transient(), "{outdated:?}");
    store.tokens().await.unwrap();
}

/// Returns a connection as a role that is no superuser and may create schemas, the role's name, and the database's URL for it.
async fn other_role(database: &Database) -> (sqlx::PgConnection, String, String) {
    let role = format!("other_{}", uuid::Uuid::now_v7().simple());
    let mut owner = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(&mut owner).await.unwrap();
    for statement in
        [format!("create role {role} login"), format!("grant create on database {name} to {role}")]
    {
        owner.execute(sqlx::AssertSqlSafe(statement)).await.unwrap();
    }
    let url = database.url().replace("postgres@", &format!("{role}@"));
    (sqlx::PgConnection::connect(&url).await.unwrap(), role, url)
}

#[tokio::test]
async fn a_schema_that_another_role_has_prepared_is_refused_and_nothing_of_it_runs() {
    let (database, store) = connected().await;
    let (mut other, role, url) = other_role(&database).await;
    let trap = "create schema milepost;
        create table milepost.schema_migration (version bigint, name text, checksum text, applied_at timestamptz, compatible_from bigint);
        create table public_ran ();
        create function milepost.trap() returns trigger language plpgsql as $$ begin drop table public_ran; return new; end $$;
        create trigger trap before insert on milepost.schema_migration for each row execute function milepost.trap();";
    let trap = trap.replace("public_ran", "milepost.ran");
    other.execute(sqlx::AssertSqlSafe(trap)).await.unwrap();
    let planned = store.plan_migration().await.map(drop);
    for refused in [store.migrate().await.map(drop), planned] {
        assert!(
            matches!(&refused, Err(StoreError::Schema(SchemaError::ForeignOwner { object, owner }))
                if object == "the schema milepost" && *owner == role),
            "{refused:?}"
        );
    }
    other.execute("select from milepost.ran").await.expect("the trigger did not run");

    let own = PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap();
    let refused = own.migrate().await;
    assert!(
        matches!(&refused, Err(StoreError::Schema(SchemaError::ForeignObject { object })) if object.contains("trigger trap")),
        "{refused:?}"
    );
    other.execute("drop schema milepost cascade").await.unwrap();
    own.migrate().await.expect("a role can migrate what belongs to it");
    assert!(store.plan_migration().await.is_ok(), "nothing is to be done");
}

#[tokio::test]
async fn a_schema_with_tables_but_without_migrations_is_refused() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    store.pool().execute("truncate milepost.schema_migration").await.unwrap();
    let refused = store.migrate().await;
    assert!(matches!(refused, Err(StoreError::Schema(SchemaError::ForeignObject { .. }))), "{refused:?}");
}

#[tokio::test]
async fn a_migration_of_a_complete_store_needs_no_rights() {
    let (database, store) = connected().await;
    let known = store.migrate().await.unwrap().to;
    let (_, role, url) = other_role(&database).await;
    let grant = format!(
        "grant usage on schema milepost to {role}; grant select on milepost.schema_migration to {role}"
    );
    store.pool().execute(sqlx::raw_sql(sqlx::AssertSqlSafe(grant))).await.unwrap();
    let other = PostgresStore::connect(&url, PostgresOptions::default()).await.unwrap();
    let migrated = other.migrate().await.unwrap();
    assert_eq!((migrated.from, migrated.to), (known, known));
}

#[tokio::test]
async fn an_altered_migration_is_noticed() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    store.pool().execute("update milepost.schema_migration set checksum = 'x'").await.unwrap();
    let refused = store.check_schema().await;
    assert!(matches!(refused, Err(StoreError::Schema(SchemaError::Altered { version: 1 }))), "{refused:?}");
}

#[tokio::test]
async fn a_migration_may_take_longer_than_the_statements_of_its_role() {
    let (database, _store) = connected().await;
    let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
    connection.execute(NOTE_TIMEOUTS).await.unwrap();
    let names = "select name from pg_settings where name in ('statement_timeout', 'transaction_timeout')";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
    for name in names {
        set(&database, &format!("{name} = '10min'")).await;
    }
    let store = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    let noted: Vec<String> =
        sqlx::query_scalar("select distinct timeout from noted").fetch_all(&mut connection).await.unwrap();
    assert_eq!(noted, ["0"]);
}

/// Records the timeouts under which each object is created. Older servers have no transaction timeout.
const NOTE_TIMEOUTS: &str = "
    create table noted (timeout text);
    create function note_timeouts() returns event_trigger language plpgsql as $$
    begin
        insert into public.noted
        select unnest(array[current_setting('statement_timeout'), coalesce(current_setting('transaction_timeout', true), '0')]);
    end $$;
    create event trigger note_timeouts on ddl_command_end execute function note_timeouts();";

#[tokio::test]
async fn the_table_of_transitions_is_the_transition_function() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    let rows: Vec<(String, String, String)> =
        sqlx::query_as("select from_state::text, verb::text, to_state::text from milepost.transition")
            .fetch_all(store.pool())
            .await
            .unwrap();
    let mut expected = Vec::new();
    for &state in JobState::ALL {
        for &verb in Verb::ALL {
            if let Ok(next) = transition(Some(state), verb, Readiness::Ready) {
                expected.push((state.to_string(), verb.to_string(), next.to_string()));
            }
        }
    }
    let sorted = |mut rows: Vec<_>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(rows), sorted(expected));
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_the_cause_and_without_the_password() {
    let url = "postgres://ada:s3cret@127.0.0.1:1/app";
    let error = PostgresStore::connect(url, PostgresOptions::default()).await.unwrap_err();
    let text = error.chain();
    assert!(text.contains("127.0.0.1:1/app") && text.to_lowercase().contains("refused"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_migration_adds_the_verbs_and_transitions_that_the_database_does_not_have() {
    let (_database, store) = connected().await;
    store.migrate().await.unwrap();
    // As in a store of an older program, which does not know the verb.
    let forget = "delete from milepost.transition where verb = 'skip'; \
                  alter type milepost.verb rename value 'skip' to 'unknown'";
    store.pool().execute(sqlx::raw_sql(forget)).await.unwrap();
    store.migrate().await.unwrap();
    let skips = "select from_state::text from milepost.transition where verb = 'skip' order by 1";
    let states: Vec<String> = sqlx::query_scalar(skips).fetch_all(store.pool()).await.unwrap();
    assert_eq!(states, ["blocked", "pending"]);
}

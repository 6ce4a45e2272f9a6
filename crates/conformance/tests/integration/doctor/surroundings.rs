//! Checks of the server, its settings, and the database file.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::doctor::Check;
use milepost_core::port::{DoctorStore, IntakeStore};
use milepost_testkit::Scene;
use milepost_testkit::database::Database;
use milepost_testkit::examine::{examine, examined, look};
use milepost_testkit::home::{Home, SqliteHome};
use milepost_testkit::server::Server;
use milepost_testkit::wait;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use crate::doctor::homes;

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_takes_too_long_is_given_up() {
    for home in homes().await {
        let scene = Scene::on(home.store()).await;
        for _ in 0..3 {
            let jobs: Vec<_> = (0..4000).map(|_| Scene::job()).collect();
            scene.store.enqueue_many(&jobs).await.unwrap();
        }
        let look = milepost_core::doctor::Look { time_limit: Duration::from_millis(1), ..look() };
        // On a busy machine, the time limit may be enforced late.
        wait::until("a check exceeds its time limit", || async {
            match scene.store.examine(Check::StateDiffers, &look).await {
                Err(error) => !error.is_transient(),
                Ok(finding) => {
                    assert_eq!(finding, None);
                    false
                }
            }
        })
        .await;
        assert_eq!(examine(&scene.store).await, [], "and the connection is still usable");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_not_completed_is_found() {
    let (database, store) = Database::with_store().await;
    store.enqueue(&Scene::job()).await.unwrap();
    for check in [Check::SequenceBehind, Check::KeyMissing] {
        assert_eq!(store.examine(check, &look()).await.unwrap(), None, "{check}");
    }
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    owner
        .execute(
            "select setval('milepost.history_pos_seq', 1, false);
             alter table milepost.job_key drop constraint job_key_pkey",
        )
        .await
        .unwrap();
    for (check, what) in [(Check::SequenceBehind, "milepost.history_pos_seq"), (Check::KeyMissing, "job_key")]
    {
        let found = store.examine(check, &look()).await.unwrap().expect("found");
        assert_eq!((found.count, found.examples[0].what.as_str()), (1, what), "{check}");
    }
}

/// A restore on a server without the roles of the dump skips their rights.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_with_its_owners_rights_that_everyone_can_execute_is_found() {
    let (database, store) = Database::with_store().await;
    assert_eq!(store.examine(Check::FunctionOpen, &look()).await.unwrap(), None);
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    owner.execute("grant execute on function milepost.prune_audit to public").await.unwrap();
    let found = store.examine(Check::FunctionOpen, &look()).await.unwrap().expect("found");
    let [example] = found.examples.as_slice() else { panic!("{found:?}") };
    assert!(example.what.starts_with("milepost.prune_audit("), "{example:?}");
}

/// New unique indexes are listed in the statement of the check.
#[tokio::test(flavor = "multi_thread")]
async fn each_missing_unique_index_is_found() {
    let (database, store) = Database::with_store().await;
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    let indexes: Vec<String> = sqlx::query_scalar(
        "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid
         where c.relnamespace = 'milepost'::regnamespace and i.indisunique and not i.indisprimary",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(indexes.len() >= 10, "{indexes:?}");
    for index in indexes {
        let rename =
            |from: &str, to: &str| AssertSqlSafe(format!("alter index milepost.{from} rename to {to}"));
        owner.execute(rename(&index, "renamed")).await.unwrap();
        let found = store.examine(Check::KeyMissing, &look()).await.unwrap().expect(&index);
        assert_eq!((found.count, &found.examples[0].what), (1, &index));
        owner.execute(rename("renamed", &index)).await.unwrap();
    }
}

/// Tables that get a sequence are listed in the statement of the check.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_sequences_knows_every_sequence() {
    let (database, _store) = Database::with_store().await;
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    let sequences: Vec<String> = sqlx::query_scalar(
        "select 'milepost.' || s.relname from pg_class s
         join pg_depend d on d.objid = s.oid and d.classid = 'pg_class'::regclass and d.deptype = 'i'
         where s.relkind = 'S' and s.relnamespace = 'milepost'::regnamespace and s.relname <> 'audit_pos_seq'",
    )
    .fetch_all(&mut owner)
    .await
    .unwrap();
    assert!(sequences.len() >= 10, "{sequences:?}");
    for sequence in sequences {
        let quoted = format!("'{sequence}'");
        assert!(
            include_str!("../../../../postgres/queries/doctor/sequence_behind.sql").contains(&quoted),
            "{sequence}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_a_postgres_server_back_is_told() {
    let (database, store) = Database::with_store().await;
    let mut owner = PgConnection::connect(&database.url()).await.unwrap();
    let mut reader = PgConnection::connect(&database.url()).await.unwrap();
    let mut writer = PgConnection::connect(&database.url()).await.unwrap();
    let pid = async |connection: &mut PgConnection| -> i32 {
        sqlx::query_scalar("select pg_backend_pid()").fetch_one(connection).await.unwrap()
    };
    let (reader_pid, writer_pid) = (pid(&mut reader).await, pid(&mut writer).await);
    reader.execute("begin isolation level repeatable read; select 1").await.unwrap();
    writer.execute("begin; select pg_current_xact_id()").await.unwrap();
    owner.execute("alter table milepost.history set (autovacuum_enabled = false)").await.unwrap();
    owner
        .execute(
            "begin;
             insert into milepost.history (job_id, token, attempt, verb, to_state)
             select '0199c6f0-7a1e-7c3b-9d43-0d5f5e0a1b2c', 0, 0, 'create', 'pending' from generate_series(1, 200001);
             rollback;
             select pg_stat_force_next_flush()",
        )
        .await
        .unwrap();
    let impatient = milepost_core::doctor::Look { patience: Duration::from_millis(1), ..look() };
    let expected = [
        (Check::VacuumHeldBack, format!("session {reader_pid}")),
        (Check::LongTransaction, format!("session {writer_pid}")),
        (Check::AutovacuumOff, "history".to_owned()),
        (Check::DeadRows, "history".to_owned()),
    ];
    for (check, what) in expected {
        wait::until(&format!("{check} is found"), || async {
            let finding = store.examine(check, &impatient).await.unwrap();
            finding.is_some_and(|finding| finding.examples.iter().any(|example| example.what == what))
        })
        .await;
    }
    for check in [Check::VacuumHeldBack, Check::LongTransaction] {
        assert_eq!(
            store.examine(check, &look()).await.unwrap(),
            None,
            "{check} is reported only after its time limit"
        );
    }
    let tomorrow = look().now + jiff::SignedDuration::from_hours(24);
    let other_clock = milepost_core::doctor::Look { now: tomorrow, ..look() };
    let finding = store.examine(Check::ClockDifference, &other_clock).await.unwrap().unwrap();
    assert!(finding.examples[0].detail.starts_with("ahead of the database by 86"), "{finding:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn weak_settings_and_missing_privileges_are_told() {
    let server = Server::create().await;
    let store = milepost_testkit::database::open(&server.url()).await;
    assert_eq!(store.examine(Check::WeakDurability, &look()).await.unwrap(), None);
    let mut owner = PgConnection::connect(&server.url()).await.unwrap();
    for statement in [
        "alter system set full_page_writes = off",
        "alter system set synchronous_commit = off",
        "select pg_reload_conf()",
        "create role guest login",
        "grant usage on schema milepost to guest",
        "grant select on all tables in schema milepost to guest",
    ] {
        owner.execute(statement).await.unwrap();
    }
    let url = server.url().replace("postgres@", "guest@");
    let options = milepost_postgres::PostgresOptions::default();
    let guest = milepost_postgres::PostgresStore::connect(&url, options).await.unwrap();
    for check in [Check::WeakDurability, Check::CommitsUnsafe, Check::MissingPrivilege] {
        wait::until(&format!("{check} is found"), || async {
            guest.examine(check, &look()).await.unwrap().is_some()
        })
        .await;
    }
    assert_eq!(store.examine(Check::MissingPrivilege, &look()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_and_a_log_that_grew_are_told() {
    let home = SqliteHome::fresh().await;
    let store: Arc<dyn milepost_core::port::Store> = home.store();
    let scene = Scene::on(Arc::clone(&store)).await;
    scene.enqueue(Scene::job()).await;
    let log = home.address().strip_prefix("sqlite:").unwrap().to_owned() + "-wal";
    let log = std::fs::File::options().write(true).open(log).unwrap();
    log.set_len(200 << 20).unwrap();
    assert!(examined(&store, Check::LogHeldBack).await.is_some());
    // The table definition has a constraint that its rows violate.
    home.tamper(
        "pragma writable_schema = on;
         update sqlite_schema set sql = replace(sql, 'timeout_ms    INTEGER', 'timeout_ms INTEGER NOT NULL')
         where name = 'milepost_job'",
    )
    .await;
    let finding = examined(&store, Check::FileDamaged).await.unwrap();
    assert!(finding.examples[0].detail.contains("timeout_ms"), "{finding:?}");
}

//! The schema: migrations only go forward; newer and altered schemas are refused.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::port::IntakeStore;
use milepost_core::schema::Migrated;
use milepost_sqlite::{SqliteOptions, SqliteStore};

use crate::store::fixture::{Home, job};

fn refused(outcome: Result<(), StoreError>) -> SchemaError {
    match outcome {
        Err(StoreError::Schema(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_empty_file_is_too_old_until_it_is_migrated() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path().join("m.db"), SqliteOptions::default()).unwrap();
    let SchemaError::TooOld { found: 0, known } = refused(store.check_schema().await) else {
        panic!("an empty file has schema version 0");
    };
    assert_eq!(store.migrate().await.unwrap(), Migrated { from: 0, to: known });
    assert_eq!(store.migrate().await.unwrap(), Migrated { from: known, to: known });
    store.check_schema().await.unwrap();
}

#[tokio::test]
async fn an_application_keeps_tables_of_any_name_in_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.db");
    let own = rusqlite::Connection::open(&path).unwrap();
    own.execute_batch(
        "CREATE TABLE job (title TEXT); CREATE TABLE queue (n INTEGER); INSERT INTO job VALUES ('clerk');",
    )
    .unwrap();
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    store.enqueue_many(&[job("a")]).await.unwrap();
    let titles: String = own.query_row("SELECT group_concat(title) FROM job", (), |row| row.get(0)).unwrap();
    assert_eq!(titles, "clerk");
}

#[tokio::test]
async fn a_newer_file_is_used_if_it_allows_this_binary_and_refused_if_not() {
    let home = Home::new().await;
    let known = home.store.plan_migration().await.unwrap().known;
    let newer = "INSERT INTO milepost_schema_migration VALUES (?1 + 98 + ?2, 'later', 'x', 0, ?1 + ?2)";
    home.connection().execute(newer, (known, 0)).unwrap();
    home.store.check_schema().await.unwrap();
    let migrated = home.store.migrate().await.unwrap();
    assert_eq!(migrated, Migrated { from: known + 98, to: known + 98 }, "an older binary changes nothing");
    home.store.enqueue_many(&[job("a")]).await.unwrap();

    home.connection().execute(newer, (known, 1)).unwrap();
    let planned = home.store.plan_migration().await.map(drop);
    for outcome in [home.store.check_schema().await, home.store.migrate().await.map(drop), planned] {
        assert!(matches!(refused(outcome), SchemaError::TooNew { .. }));
    }
}

#[tokio::test]
async fn a_file_whose_migrations_do_not_say_what_they_allow_can_be_used_and_migrated() {
    let home = Home::new().await;
    let early = "ALTER TABLE milepost_schema_migration DROP COLUMN compatible_from";
    home.connection().execute(early, ()).unwrap();
    home.store.check_schema().await.unwrap();
    home.store.migrate().await.unwrap();
    home.store.check_schema().await.unwrap();
    home.connection().execute(early, ()).unwrap();
    let newer = "INSERT INTO milepost_schema_migration VALUES (99, 'later', 'x', 0)";
    home.connection().execute(newer, ()).unwrap();
    assert!(matches!(refused(home.store.check_schema().await), SchemaError::TooNew { found: 99, .. }));
}

#[tokio::test]
async fn an_altered_migration_is_refused() {
    let home = Home::new().await;
    home.connection().execute("UPDATE milepost_schema_migration SET checksum = 'other'", ()).unwrap();
    assert_eq!(refused(home.store.check_schema().await), SchemaError::Altered { version: 1 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_processes_may_open_and_migrate_a_new_file_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let migrators: Vec<_> = (0..6)
        .map(|_| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
                tokio::runtime::Handle::current().block_on(store.migrate()).unwrap()
            })
        })
        .collect();
    let mut made = 0;
    for migrator in migrators {
        made += usize::from(migrator.await.unwrap().from == 0);
    }
    assert_eq!(made, 1);
}

//! Files that cannot be used.

use std::path::Path;
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_sqlite::{SqliteOptions, SqliteStore};

fn refused(path: &Path) -> String {
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let error = SqliteStore::open(path, options).unwrap_err();
    error.chain()
}

#[test]
fn a_path_that_cannot_be_written_is_named_with_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let words = refused(&dir.path().join("missing/m.db"));
    assert!(
        words.contains("missing/m.db") && words.contains("No such file"),
        "{words}"
    );
    let words = refused(dir.path());
    assert!(words.contains("Is a directory"), "{words}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(
        &path,
        "not a database, but long enough to be looked at".repeat(40),
    )
    .unwrap();
    let words = refused(&path);
    assert!(words.contains("not a database"), "{words}");
}

#[test]
fn a_file_that_another_process_locks_as_a_whole_is_told_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let keeper = rusqlite::Connection::open(&path).unwrap();
    keeper
        .execute_batch("CREATE TABLE t (n); BEGIN EXCLUSIVE")
        .unwrap();
    let options = SqliteOptions {
        busy_timeout: Duration::from_millis(50),
        ..SqliteOptions::default()
    };
    let error = SqliteStore::open(&path, options).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    assert!(error.chain().contains("another process keeps the file locked"));
}

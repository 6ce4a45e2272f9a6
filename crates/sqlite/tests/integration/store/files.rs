//! Files that cannot be used.

use std::path::Path;
use std::time::Duration;

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::job::NewJob;
use milepost_core::port::{AdminStore, IntakeStore};
use milepost_core::search::JobFilter;
use milepost_sqlite::{SqliteOptions, SqliteStore};

use crate::store::fixture::{enqueue, job};

fn refused(path: &Path) -> String {
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let error = SqliteStore::open(path, options).unwrap_err();
    error.chain()
}

#[test]
fn a_path_that_cannot_be_written_is_named_with_the_cause() {
    let dir = tempfile::tempdir().unwrap();
    let words = refused(&dir.path().join("missing/m.db"));
    assert!(words.contains("missing/m.db") && words.contains("No such file"), "{words}");
    let words = refused(dir.path());
    assert!(words.contains("Is a directory"), "{words}");
}

#[cfg(unix)]
#[test]
fn a_file_with_two_names_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other] = ["m.db", "other.db"].map(|name| dir.path().join(name));
    SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    std::fs::hard_link(&path, &other).unwrap();
    for name in [&path, &other] {
        let words = refused(name);
        assert!(words.contains("the file has 2 names (hard links)"), "{words}");
    }
    std::fs::remove_file(&other).unwrap();
    SqliteStore::open(&path, SqliteOptions::default()).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_after_the_file_was_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let [path, backup] = ["m.db", "backup.db"].map(|name| dir.path().join(name));
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    std::fs::copy(&path, &backup).unwrap();
    let job = || NewJob::new("k", &()).unwrap();
    store.enqueue_many(&[job()]).await.unwrap();
    std::fs::rename(&backup, &path).unwrap();
    for _ in 0..2 {
        let refused = store.enqueue_many(&[job()]).await.unwrap_err();
        assert!(refused.chain().contains("was replaced or deleted"), "{}", refused.chain());
        let refused = store.check_schema().await.unwrap_err();
        assert!(
            refused.is_transient() && refused.chain().contains("was replaced or deleted"),
            "{}",
            refused.chain()
        );
    }
    // The write-ahead log was not replaced: other processes read it as a part of the new file.
    let other = rusqlite::Connection::open(&path).unwrap();
    let jobs: i64 = other.query_row("SELECT count(*) FROM milepost_job", (), |row| row.get(0)).unwrap();
    assert!(jobs <= 1, "{jobs} jobs: refused jobs were written");
    drop(other);
    std::fs::remove_file(&path).unwrap();
    assert!(store.enqueue_many(&[job()]).await.is_err(), "it was deleted");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_after_a_backup_was_copied_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let [path, log, backup] = ["m.db", "m.db-wal", "backup.db"].map(|name| dir.path().join(name));
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let job = || NewJob::new("k", &()).unwrap();
    store.enqueue_many(&[job()]).await.unwrap();
    std::fs::copy(&path, &backup).unwrap();
    std::fs::remove_file(&log).unwrap();
    std::fs::copy(&backup, &path).unwrap();
    for _ in 0..2 {
        let refused = store.enqueue_many(&[job()]).await.unwrap_err();
        assert!(refused.chain().contains("was replaced or deleted"), "{}", refused.chain());
    }
    assert!(!log.exists(), "a new log would belong to the copy");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_after_a_link_to_its_folder_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let [old, new, link] = ["old", "new", "current"].map(|name| dir.path().join(name));
    for folder in [&old, &new] {
        std::fs::create_dir(folder).unwrap();
    }
    std::os::unix::fs::symlink(&old, &link).unwrap();
    let store = SqliteStore::open(link.join("m.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let job = || NewJob::new("k", &()).unwrap();
    store.enqueue_many(&[job()]).await.unwrap();
    std::fs::copy(old.join("m.db"), new.join("m.db")).unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&new, &link).unwrap();
    let refused = store.enqueue_many(&[job()]).await.unwrap_err();
    assert!(refused.chain().contains("was replaced or deleted"), "{}", refused.chain());
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_acknowledged_after_the_index_of_the_log_was_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let [path, index] = ["m.db", "m.db-shm"].map(|name| dir.path().join(name));
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let job = || NewJob::new("k", &()).unwrap();
    store.enqueue_many(&[job()]).await.unwrap();
    std::fs::remove_file(&index).unwrap();
    let other = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    other.enqueue_many(&[job()]).await.unwrap();
    let refused = store.enqueue_many(&[job()]).await.unwrap_err();
    assert!(refused.chain().contains("its -shm was replaced or deleted"), "{}", refused.chain());
    drop(store);
    let jobs: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM milepost_job", (), |row| row.get(0))
        .unwrap();
    assert_eq!(jobs, 2, "an acknowledged job is missing");
}

#[cfg(unix)]
#[tokio::test]
async fn a_missing_file_with_a_log_is_not_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let [path, log, index] = ["m.db", "m.db-wal", "m.db-shm"].map(|name| dir.path().join(name));
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    store.enqueue_many(&[NewJob::new("k", &()).unwrap()]).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(refused(&path).contains("its write-ahead log (-wal) has data"), "{}", refused(&path));
    assert!(!path.exists(), "it is not even created");
    std::fs::write(&path, "").unwrap();
    assert!(refused(&path).contains("its write-ahead log (-wal) has data"), "also as an empty file");
    drop(store);
    std::fs::remove_file(&log).ok();
    std::fs::remove_file(&index).ok();
    SqliteStore::open(&path, SqliteOptions::default()).unwrap();
}

/// Mounts need a right that not every account has, so that this only runs where it can.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_mounted_by_itself_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other] = ["a b.db", "other.db"].map(|name| dir.path().join(name));
    drop(SqliteStore::open(&path, SqliteOptions::default()).unwrap());
    std::fs::write(&other, "").unwrap();
    let mount = |arguments: &[&std::ffi::OsStr]| {
        let ran =
            std::process::Command::new("mount").args(arguments).stderr(std::process::Stdio::null()).status();
        ran.is_ok_and(|status| status.success())
    };
    if !mount(&["--bind".as_ref(), path.as_ref(), other.as_ref()]) {
        return;
    }
    let words = refused(&other);
    std::process::Command::new("umount").arg(&other).status().unwrap();
    assert!(words.contains("mount its folder"), "{words}");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(&path, "not a database, but long enough to be checked".repeat(40)).unwrap();
    let words = refused(&path);
    assert!(words.contains("not a database"), "{words}");
}

#[test]
fn a_file_that_another_process_locks_as_a_whole_is_told_at_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.db");
    let keeper = rusqlite::Connection::open(&path).unwrap();
    keeper.execute_batch("CREATE TABLE t (n); BEGIN EXCLUSIVE").unwrap();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let error = SqliteStore::open(&path, options).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }));
    assert!(error.chain().contains("another process keeps the file locked"));
}

#[tokio::test]
async fn a_file_of_somebody_else_is_not_changed_by_looking_at_it() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in [("rollback.db", "delete"), ("wal.db", "wal")] {
        let path = folder.path().join(name);
        let theirs = rusqlite::Connection::open(&path).unwrap();
        theirs.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(())).unwrap();
        theirs.execute_batch("CREATE TABLE orders (n); INSERT INTO orders VALUES (7)").unwrap();
        drop(theirs);
        let before = std::fs::read(&path).unwrap();
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        let refused = store.check_schema().await.unwrap_err();
        assert!(matches!(refused, StoreError::Schema(SchemaError::TooOld { found: 0, .. })), "{refused:?}");
        assert!(store.jobs(&JobFilter::default()).await.is_err());
        store.close().await;
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}");
        let left: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|file| !file.to_string_lossy().starts_with(&format!("{name}-"))), "{left:?}");
    }
}

#[tokio::test]
async fn a_migrated_file_writes_ahead_and_keeps_what_else_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (n)").unwrap();
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let theirs = rusqlite::Connection::open(&path).unwrap();
    let mode: String = theirs.query_row("PRAGMA journal_mode", (), |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    assert_eq!(milepost_sqlite::foreign_objects(&theirs).unwrap(), ["table orders"]);
    store.enqueue_many(&[NewJob::new("a", &1).unwrap()]).await.unwrap();
}

#[tokio::test]
async fn a_closed_store_lets_go_of_its_file_so_that_another_can_take_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jobs.db");
    for round in 0..5 {
        let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
        store.migrate().await.unwrap();
        store.enqueue_many(&[NewJob::new("a", &round).unwrap()]).await.unwrap();
        let listed = store.jobs(&JobFilter::default()).await.unwrap();
        assert_eq!(listed.len(), 1, "each round has a new file");
        store.close().await;
        assert!(store.jobs(&JobFilter::default()).await.is_err(), "a closed store refuses reads");
        assert!(!folder.path().join("jobs.db-wal").exists(), "the last connection removed the log");
        std::fs::remove_file(&path).unwrap();
    }
}

#[tokio::test]
async fn a_temporary_store_goes_with_its_last_clone() {
    let store = SqliteStore::temporary().await.unwrap();
    let (path, clone) = (store.path().to_owned(), store.clone());
    enqueue(&store, job("a")).await;
    drop(store);
    assert!(path.exists());
    enqueue(&clone, job("a")).await;
    drop(clone);
    assert!(!path.parent().unwrap().exists());
}

/// Returns how many locks this process has on a file.
#[cfg(target_os = "linux")]
fn locks_on(path: &std::path::Path) -> usize {
    use std::os::unix::fs::MetadataExt;

    let (process, file) =
        (std::process::id().to_string(), format!(":{}", std::fs::metadata(path).unwrap().ino()));
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let of_file = |words: &[&str]| {
        words.get(4) == Some(&&*process) && words.get(5).is_some_and(|its| its.ends_with(&file))
    };
    locks.lines().filter(|line| of_file(&line.split_whitespace().collect::<Vec<_>>())).count()
}

/// Without its locks, the file seems unused to other processes: the last one that closes it would delete the write-ahead log.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_opened_again_keeps_its_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let held = locks_on(&path);
    assert!(held > 0);
    store.migrate().await.unwrap();
    assert_eq!(locks_on(&path), held, "after a second migration");
    drop(SqliteStore::open(&path, SqliteOptions::default()).unwrap());
    assert_eq!(locks_on(&path), held, "after another store of the same file");
}

//! A small disk, and a full disk.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::IntakeStore;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::wait;
use tempfile::TempDir;

use crate::store::fixture::job;

const DISK_MIB: u64 = 24;
const VALUE_BYTES: u32 = 60_000;

/// A file system in memory with a limited size.
struct Disk(TempDir);

impl Disk {
    /// `None` if the test was run again in a namespace where it may mount, and has ended. Without the namespace only root may mount.
    fn mount(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            let mut again = Command::new("unshare");
            again.args(["--user", "--map-root-user", "--mount"]).arg(std::env::current_exe().unwrap());
            again.args(["--exact", &format!("store::disk::{test}"), "--nocapture"]);
            assert!(again.status().expect("unshare is installed").success());
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs"]).arg(folder.path());
        assert!(mount.status().expect("mount is installed").success());
        Some(Self(folder))
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(self.0.path().join("jobs.db"), SqliteOptions::default()).unwrap()
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("jobs.db-wal")
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Fills the disk completely.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        for bytes in [1 << 20, 1 << 12] {
            while ballast.write_all(&vec![1; bytes]).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

async fn with_a_value(store: &SqliteStore) {
    store.migrate().await.unwrap();
    store
        .transaction(|tx| {
            tx.execute_batch("CREATE TABLE t (value BLOB); INSERT INTO t VALUES (zeroblob(10))")
                .map_err(|e| StoreError::Database { verb: "test", cause: e.into() })
        })
        .await
        .unwrap();
}

/// Writes one value to the log, and nothing more to the file.
async fn write(store: &SqliteStore) -> Result<(), StoreError> {
    store
        .transaction(|tx| {
            tx.execute("UPDATE t SET value = randomblob(?1)", [VALUE_BYTES])
                .map(drop)
                .map_err(|e| StoreError::Database { verb: "test", cause: e.into() })
        })
        .await
}

fn large_jobs(count: usize) -> Vec<NewJob> {
    (0..count).map(|_| NewJob::new("k", &"x".repeat(1000)).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_who_write_do_not_fill_a_small_disk_with_their_log() {
    let Some(disk) = Disk::mount("three_who_write_do_not_fill_a_small_disk_with_their_log") else { return };
    // Stays open: SQLite removes the log with the last connection.
    let first = disk.store();
    with_a_value(&first).await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = disk.store();
        writers.spawn(async move {
            for _ in 0..500 {
                write(&store).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let log = std::fs::metadata(disk.log()).unwrap().len() >> 20;
    assert!(log < DISK_MIB / 2, "{log} MiB");
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_disk_was_full_goes_on() {
    let Some(disk) = Disk::mount("a_store_whose_disk_was_full_goes_on") else { return };
    let store = disk.store();
    with_a_value(&store).await;
    // The pages are already in the file, so a checkpoint needs no additional space.
    for _ in 0..100 {
        write(&store).await.unwrap();
    }
    disk.fill();
    // The log restarts before it needs more space.
    for _ in 0..100 {
        write(&store).await.unwrap();
    }
    let full = store.enqueue_many(&large_jobs(5000)).await.map(|_| "all jobs were stored").unwrap_err();
    assert!(format!("{full:?}").contains("full"), "{full:?}");
    wait::until("the log is truncated", || async { std::fs::metadata(disk.log()).unwrap().len() == 0 }).await;
    store.enqueue(&job("k")).await.unwrap();
    while store.enqueue_many(&large_jobs(100)).await.is_ok() {}
    std::fs::remove_file(disk.ballast()).unwrap();
    store.enqueue(&job("k")).await.unwrap();
    write(&store).await.unwrap();
}

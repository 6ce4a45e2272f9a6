//! The conformance suite on SQLite.

#![allow(clippy::unwrap_used, reason = "a failed expectation panics")]

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_sqlite::{SqliteOptions, SqliteStore};
use milepost_testkit::inbox::Desk;
use tempfile::TempDir;

async fn fresh() -> (TempDir, Arc<dyn Store>) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("jobs.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    (folder, Arc::new(store))
}

milepost_conformance::conformance!(crate::fresh);

mod batches {
    milepost_conformance::batch_conformance!(crate::fresh);
}

mod events {
    milepost_conformance::event_conformance!(crate::fresh);
}

async fn desk() -> (TempDir, Desk) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("inbox.db"), SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    (folder, Desk::sqlite(store))
}

mod inbox {
    milepost_conformance::inbox_conformance!(crate::desk);
}

//! The conformance suite on PostgreSQL: on connections of our own, and through a transaction pooler.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use milepost_testkit::inbox::Desk;

async fn migrated(url: &str, wake: WakeMode) -> Arc<dyn Store> {
    let options = PostgresOptions { wake, ..PostgresOptions::default() };
    let store = PostgresStore::connect(url, options).await.unwrap();
    store.migrate().await.unwrap();
    Arc::new(store)
}

async fn direct() -> (Database, Arc<dyn Store>) {
    let database = Database::create().await;
    let store = migrated(&database.url(), WakeMode::Listen).await;
    (database, store)
}

async fn pooled() -> (Database, Arc<dyn Store>) {
    let database = Database::create().await;
    let store = migrated(&database.pooled_url(), WakeMode::Poll).await;
    (database, store)
}

milepost_testkit::conformance!(crate::direct);

mod batches {
    milepost_testkit::batch_conformance!(crate::direct);
}

mod events {
    milepost_testkit::event_conformance!(crate::direct);
}

async fn desk(url: String, wake: WakeMode) -> Desk {
    let options = PostgresOptions { wake, ..PostgresOptions::default() };
    let store = PostgresStore::connect(&url, options).await.unwrap();
    store.migrate().await.unwrap();
    Desk::postgres(store, wake == WakeMode::Poll).await
}

async fn direct_desk() -> (Database, Desk) {
    let database = Database::create().await;
    let desk = desk(database.url(), WakeMode::Listen).await;
    (database, desk)
}

async fn pooled_desk() -> (Database, Desk) {
    let database = Database::create().await;
    let desk = desk(database.pooled_url(), WakeMode::Poll).await;
    (database, desk)
}

mod inbox {
    milepost_testkit::inbox_conformance!(crate::direct_desk);
}

mod through_a_pooler {
    milepost_testkit::conformance!(crate::pooled, poll_only);

    mod batches {
        milepost_testkit::batch_conformance!(crate::pooled);
    }

    mod events {
        milepost_testkit::event_conformance!(crate::pooled);
    }

    mod inbox {
        milepost_testkit::inbox_conformance!(crate::pooled_desk);
    }
}

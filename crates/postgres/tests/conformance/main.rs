//! Conformance suite on PostgreSQL, on direct connections and through a transaction pooler.

#![allow(clippy::unwrap_used, reason = "a failed expectation panics")]

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore, WakeMode};
use milepost_testkit::database::Database;
use milepost_testkit::inbox::Desk;
use milepost_testkit::scene::LONG;

async fn connected(url: &str, wake: WakeMode) -> PostgresStore {
    // With a long sleep_max, work starts immediately only because of a notification, not because a sleeping worker polled.
    let options = PostgresOptions { wake, sleep_max: LONG, ..PostgresOptions::default() };
    PostgresStore::connect(url, options).await.unwrap()
}

async fn direct() -> (Database, Arc<dyn Store>) {
    let database = Database::migrated().await;
    let store = connected(&database.url(), WakeMode::Listen).await;
    (database, Arc::new(store))
}

async fn pooled() -> (Database, Arc<dyn Store>) {
    let database = Database::migrated().await;
    let store = connected(&database.pooled_url(), WakeMode::Poll).await;
    (database, Arc::new(store))
}

milepost_conformance::conformance!(crate::direct);

mod batches {
    milepost_conformance::batch_conformance!(crate::direct);
}

mod events {
    milepost_conformance::event_conformance!(crate::direct);
}

async fn direct_desk() -> (Database, Desk) {
    let database = Database::migrated().await;
    let desk = Desk::postgres(connected(&database.url(), WakeMode::Listen).await, false).await;
    (database, desk)
}

async fn pooled_desk() -> (Database, Desk) {
    let database = Database::migrated().await;
    let desk = Desk::postgres(connected(&database.pooled_url(), WakeMode::Poll).await, true).await;
    (database, desk)
}

mod inbox {
    milepost_conformance::inbox_conformance!(crate::direct_desk);
}

mod through_a_pooler {
    milepost_conformance::conformance!(crate::pooled, poll_only);

    mod batches {
        milepost_conformance::batch_conformance!(crate::pooled);
    }

    mod events {
        milepost_conformance::event_conformance!(crate::pooled);
    }

    mod inbox {
        milepost_conformance::inbox_conformance!(crate::pooled_desk);
    }
}

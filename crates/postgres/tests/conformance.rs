//! The conformance suite on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a failed expectation is meant to panic")]

use std::sync::Arc;

use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_testkit::database::Database;

async fn fresh() -> (Database, Arc<dyn Store>) {
    let database = Database::create().await;
    let store = PostgresStore::connect(&database.url(), PostgresOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    (database, Arc::new(store))
}

milepost_testkit::conformance!(crate::fresh);

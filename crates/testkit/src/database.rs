//! A PostgreSQL database for one test alone.

use std::sync::Arc;

use milepost_postgres::{PostgresOptions, PostgresStore};
use sqlx::{Connection, Executor, PgConnection};

use crate::Scene;

/// A database that is dropped with this value.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Creates one on the server that `scripts/with-services` started.
    pub async fn create() -> Self {
        let server = server();
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let mut connection = PgConnection::connect(&server).await.expect("the test server answers");
        let create = sqlx::AssertSqlSafe(format!("create database {name}"));
        connection.execute(sqlx::raw_sql(create)).await.expect("a database can be created");
        Self { server, name }
    }

    /// Creates one with a migrated store in it.
    pub async fn with_store() -> (Self, PostgresStore) {
        let database = Self::create().await;
        let store = open(&database.url()).await;
        (database, store)
    }

    /// Creates one with a migrated store in it, and a scene on that.
    pub async fn with_scene() -> (Self, PostgresStore, Scene) {
        let (database, store) = Self::with_store().await;
        let scene = Scene::on(Arc::new(store.clone())).await;
        (database, store, scene)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        at(&self.server, &self.name)
    }

    /// Its URL through the transaction pooler: fewer server connections than clients, and nothing prepared or set in one
    /// transaction is there in the next.
    pub fn pooled_url(&self) -> String {
        at(&pooler(), &self.name)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // A thread of its own: the test's runtime may be shutting down.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut connection = PgConnection::connect(&server).await?;
                let drop = sqlx::AssertSqlSafe(format!("drop database if exists {name} with (force)"));
                connection.execute(sqlx::raw_sql(drop)).await
            })?;
            Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("a test database was left behind: {error}");
        }
    }
}

/// A migrated store at this URL.
pub async fn open(url: &str) -> PostgresStore {
    let store = PostgresStore::connect(url, PostgresOptions::default()).await.expect("the store answers");
    store.migrate().await.expect("migrated");
    store
}

/// The URL of the server that tests use.
pub fn server() -> String {
    std::env::var("MILEPOST_TEST_POSTGRES").expect(
        "MILEPOST_TEST_POSTGRES names no server; run `scripts/test`, or `scripts/with-services cargo test`",
    )
}

/// The URL of the transaction pooler in front of it.
fn pooler() -> String {
    std::env::var("MILEPOST_TEST_PGBOUNCER").expect(
        "MILEPOST_TEST_PGBOUNCER names no pooler; run `scripts/test`, or `scripts/with-services cargo test`",
    )
}

/// The same server's URL for another database.
fn at(server: &str, database: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    format!("{base}/{database}")
}

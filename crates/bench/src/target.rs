//! Creation of the measured store, and statistics of its server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use milepost_cli_support::store::StoreAddress;
use milepost_core::port::{BatchStore, Store};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use sqlx::PgPool;

use super::process;

/// The queue of all jobs of a benchmark, by which it recognizes jobs of earlier runs.
pub(super) const QUEUE: &str = "milepost-bench";

/// The maximum number of connections of a benchmark: those of its clients and of the worker.
const CONNECTIONS_MAX: u32 = 48;
/// How long to wait for a file that another process has locked.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An empty, migrated store.
pub(super) struct Target {
    pub(super) store: Arc<dyn Store>,
    pub(super) name: &'static str,
    pub(super) behind: Behind,
}

/// The handling of existing content of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leavings {
    /// Content of earlier benchmarks is removed; any other content is an error.
    Removed,
    /// Any content is an error.
    Refused,
}

impl Leavings {
    /// Returns the queue whose jobs may exist.
    const fn queue(self) -> &'static str {
        match self {
            Self::Removed => QUEUE,
            // No queue has this name.
            Self::Refused => "",
        }
    }
}

/// The database of the store.
pub(super) enum Behind {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl Target {
    /// Creates the store again. Before changing anything, it rejects a store with content that no benchmark created.
    pub(super) async fn prepare(address: &StoreAddress) -> Result<Self> {
        Self::make(address, Leavings::Removed).await
    }

    /// Creates a store in an empty place; nothing is removed.
    pub(super) async fn fresh(address: &StoreAddress) -> Result<Self> {
        Self::make(address, Leavings::Refused).await
    }

    async fn make(address: &StoreAddress, leavings: Leavings) -> Result<Self> {
        let context = || format!("cannot use the store {address}");
        match address {
            StoreAddress::Sqlite(path) => {
                if path.try_exists().with_context(context)? {
                    refuse(found_in_file(path, leavings).with_context(context)?, address, leavings)?;
                    if leavings == Leavings::Removed {
                        remove(path)?;
                    }
                }
                let store = SqliteStore::open(path, SqliteOptions::default()).with_context(context)?;
                store.migrate().await.with_context(context)?;
                Ok(Self { store: Arc::new(store.clone()), name: "sqlite", behind: Behind::Sqlite(store) })
            }
            StoreAddress::Postgres(url) => {
                let options =
                    PostgresOptions { connections_max: CONNECTIONS_MAX, ..PostgresOptions::default() };
                let store = PostgresStore::connect(url, options).await.with_context(context)?;
                refuse(found_in_schema(&store, leavings).await.with_context(context)?, address, leavings)?;
                if leavings == Leavings::Removed {
                    sqlx::raw_sql("drop schema if exists milepost cascade").execute(store.pool()).await?;
                }
                store.migrate().await.with_context(context)?;
                Ok(Self { store: Arc::new(store.clone()), name: "postgres", behind: Behind::Postgres(store) })
            }
        }
    }

    /// Returns the store of its batches.
    pub(super) fn batches(&self) -> Arc<dyn BatchStore> {
        match &self.behind {
            Behind::Postgres(store) => Arc::new(store.clone()),
            Behind::Sqlite(store) => Arc::new(store.clone()),
        }
    }

    /// Closes the store, so that the next benchmark can use it.
    pub(super) async fn close(self) {
        match self.behind {
            Behind::Sqlite(store) => store.close().await,
            Behind::Postgres(store) => store.close().await,
        }
    }

    /// Returns the PostgreSQL server; fails for a SQLite store, which `mode` cannot measure.
    pub(super) fn server(&self, mode: &str) -> Result<&PgPool> {
        match &self.behind {
            Behind::Postgres(store) => Ok(store.pool()),
            Behind::Sqlite(_) => bail!("--mode {mode} measures PostgreSQL; give --store postgres://…"),
        }
    }

    /// Returns the number of bytes logged so far: the server's WAL, or what this process wrote.
    pub(super) async fn logged_bytes(&self) -> Option<f64> {
        let Behind::Postgres(store) = &self.behind else {
            return process::written_bytes();
        };
        sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::float8")
            .fetch_one(store.pool())
            .await
            .ok()
    }
}

/// Rejects a store in which unexpected content was found.
fn refuse(found: Option<String>, address: &StoreAddress, leavings: Leavings) -> Result<()> {
    let Some(found) = found else { return Ok(()) };
    let why = match leavings {
        Leavings::Removed => "which no benchmark created and a benchmark would remove",
        Leavings::Refused => "and this benchmark needs an empty one",
    };
    let remedy = match (address, leavings) {
        (StoreAddress::Sqlite(_), Leavings::Removed) => {
            "give a file that does not exist, or the file of an earlier benchmark"
        }
        (StoreAddress::Sqlite(_), Leavings::Refused) => "give a file that does not exist",
        (StoreAddress::Postgres(_), Leavings::Removed) => "give a separate database (createdb bench)",
        (StoreAddress::Postgres(_), Leavings::Refused) => {
            "give a new database (createdb bench-console); that of an earlier benchmark can be dropped (dropdb)"
        }
    };
    bail!("the store {address} contains {found}, {why}; nothing was changed\n  {remedy}")
}

/// Returns an example of unexpected content of a file. Only reads.
fn found_in_file(path: &Path, leavings: Leavings) -> Result<Option<String>> {
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    file.busy_timeout(BUSY_TIMEOUT)?;
    if let Some(object) = milepost_sqlite::foreign_objects(&file)?.into_iter().next() {
        return Ok(Some(object));
    }
    if !file.table_exists(None, "milepost_job")? {
        return Ok(None);
    }
    let mut others = file.prepare(include_str!("others/sqlite.sql"))?;
    Ok(others.query_row([leavings.queue()], |row| row.get(0)).optional()?)
}

/// Returns an example of unexpected content of the schema `milepost`, or of objects that depend on it. Only reads.
async fn found_in_schema(store: &PostgresStore, leavings: Leavings) -> Result<Option<String>> {
    if let Some(object) = store.foreign_objects().await?.into_iter().next() {
        return Ok(Some(object));
    }
    let laid = "select to_regclass('milepost.job') is not null";
    if !sqlx::query_scalar(laid).fetch_one(store.pool()).await? {
        return Ok(None);
    }
    let others = sqlx::query_scalar(include_str!("others/postgres.sql")).bind(leavings.queue());
    Ok(others.fetch_optional(store.pool()).await?)
}

fn remove(path: &Path) -> Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", Path::new(&file).display()));
            }
            _ => {}
        }
    }
    Ok(())
}

//! The store under measurement: made empty, and what can be asked of its server.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use milepost_core::listing::JobFilter;
use milepost_core::port::Store;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};
use sqlx::PgPool;

use super::process;
use crate::store::StoreAddress;

/// Every job of a bench waits in this queue, so that a bench knows its own leavings.
pub(super) const QUEUE: &str = "milepost-bench";

/// Connections of a bench: its callers' and the worker's.
const CONNECTIONS_MAX: u32 = 48;

/// An empty, migrated store.
pub(super) struct Target {
    pub(super) store: Arc<dyn Store>,
    pub(super) name: &'static str,
    behind: Behind,
}

/// What the store is kept in.
enum Behind {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
}

impl Target {
    /// Opens the store, empty. Refuses one that has jobs which no bench made.
    pub(super) async fn prepare(address: &StoreAddress) -> Result<Self> {
        let context = || format!("cannot use the store {address}");
        match address {
            StoreAddress::Sqlite(path) => {
                if path.exists() {
                    let store = SqliteStore::open(path, SqliteOptions::default()).with_context(context)?;
                    store.migrate().await.with_context(context)?;
                    refuse_foreign(&store, address).await?;
                    store.close().await;
                    remove(path)?;
                }
                let store = SqliteStore::open(path, SqliteOptions::default()).with_context(context)?;
                store.migrate().await.with_context(context)?;
                Ok(Self { store: Arc::new(store.clone()), name: "sqlite", behind: Behind::Sqlite(store) })
            }
            StoreAddress::Postgres(url) => {
                let options =
                    PostgresOptions { connections_max: CONNECTIONS_MAX, ..PostgresOptions::default() };
                let store = PostgresStore::connect(url, options).await.with_context(context)?;
                store.migrate().await.with_context(context)?;
                refuse_foreign(&store, address).await?;
                sqlx::raw_sql("drop schema milepost cascade").execute(store.pool()).await?;
                store.migrate().await.with_context(context)?;
                Ok(Self { store: Arc::new(store.clone()), name: "postgres", behind: Behind::Postgres(store) })
            }
        }
    }

    /// Closes the store, so that the next bench finds it free.
    pub(super) async fn close(self) {
        match self.behind {
            Behind::Sqlite(store) => store.close().await,
            Behind::Postgres(store) => store.close().await,
        }
    }

    /// The server, for modes that only make sense there.
    pub(super) fn server(&self, mode: &str) -> Result<&PgPool> {
        match &self.behind {
            Behind::Postgres(store) => Ok(store.pool()),
            Behind::Sqlite(_) => bail!("--mode {mode} measures PostgreSQL; give --store postgres://…"),
        }
    }

    /// Bytes logged so far: the server's WAL, or what this process wrote.
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

async fn refuse_foreign(store: &dyn Store, address: &StoreAddress) -> Result<()> {
    let newest = store.jobs(&JobFilter { limit: 1, ..JobFilter::default() }).await?;
    if newest.iter().any(|job| job.queue != QUEUE) {
        bail!(
            "the store {address} has jobs that no bench made; a bench wants an empty store, which it may wipe"
        );
    }
    Ok(())
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

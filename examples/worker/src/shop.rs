//! The shop's database, which also contains its jobs.

use std::sync::Arc;

use anyhow::{Context, Result};
use milepost::{JobError, Run, Store};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};

/// The shop's table. A real shop would have migrations.
const TABLES: &str = "create table if not exists confirmation (order_id bigint primary key)";

/// The shop's database. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Shop {
    /// A SQLite file on this machine.
    Sqlite(SqliteStore),
    /// A PostgreSQL server.
    Postgres(PostgresStore),
}

impl Shop {
    /// Opens the database at `sqlite:PATH` or `postgres://…`, and creates missing tables.
    ///
    /// # Errors
    /// When the address has neither form, or the database cannot be used.
    pub async fn open(address: &str) -> Result<Self> {
        if address.starts_with("postgres") {
            let store = PostgresStore::connect(address, PostgresOptions::default()).await?;
            Self::on_postgres(store).await
        } else {
            let path = address.strip_prefix("sqlite:");
            let path = path.context("give the store as sqlite:PATH or as postgres://USER@HOST/DATABASE")?;
            Self::on_sqlite(SqliteStore::open(path, SqliteOptions::default())?).await
        }
    }

    /// Returns the shop in this file.
    ///
    /// # Errors
    /// When its tables cannot be created.
    pub async fn on_sqlite(store: SqliteStore) -> Result<Self> {
        store.migrate().await?;
        store.transaction(|tx| tx.execute_batch(TABLES).map_err(anyhow::Error::from)).await?;
        Ok(Self::Sqlite(store))
    }

    /// Returns the shop in this database.
    ///
    /// # Errors
    /// When its tables cannot be created.
    pub async fn on_postgres(store: PostgresStore) -> Result<Self> {
        store.migrate().await?;
        sqlx::query(TABLES).execute(store.pool()).await?;
        Ok(Self::Postgres(store))
    }

    /// Returns the store of its jobs.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::new(store.clone()),
            Self::Postgres(store) => Arc::new(store.clone()),
        }
    }

    /// Writes an order's confirmation and completes the run of its job in one transaction.
    pub(crate) async fn confirm(&self, order: i64, run: Run) -> Result<(), JobError> {
        match self {
            Self::Postgres(store) => {
                let mut tx = store.pool().begin().await?;
                sqlx::query("insert into confirmation (order_id) values ($1)")
                    .bind(order)
                    .execute(&mut *tx)
                    .await?;
                milepost_postgres::complete(&mut tx, run, None).await?;
                tx.commit().await?;
            }
            Self::Sqlite(store) => {
                let confirm = move |tx: &rusqlite::Transaction<'_>| {
                    tx.execute("insert into confirmation (order_id) values (?1)", [order])?;
                    milepost_sqlite::complete(tx, run, None)?;
                    Ok::<_, JobError>(())
                };
                store.transaction(confirm).await?;
            }
        }
        Ok(())
    }

    /// Returns the number of confirmed orders.
    ///
    /// # Errors
    /// When the database does not respond.
    pub async fn confirmed(&self) -> Result<i64> {
        let count = "select count(*) from confirmation";
        match self {
            Self::Postgres(store) => Ok(sqlx::query_scalar(count).fetch_one(store.pool()).await?),
            Self::Sqlite(store) => {
                store.transaction(move |tx| Ok(tx.query_row(count, (), |row| row.get(0))?)).await
            }
        }
    }
}

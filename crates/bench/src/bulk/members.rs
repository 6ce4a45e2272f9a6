//! The rows of the benchmark: members, and the notes created for them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use milepost::bulk::Definition;
use milepost_cli_support::store::StoreAddress;
use milepost_core::port::BulkWork;
use milepost_postgres::bulk as on_postgres;
use milepost_sqlite::bulk as on_sqlite;
use rusqlite::Connection;
use sqlx::PgPool;

use super::super::target::{Behind, Target};

/// The query of all members.
const SOURCE: &str =
    "select id, place from milepost_bench_member where id > :cursor order by id limit :limit";
/// The statement that creates a note for each member.
const APPLY: &str =
    "insert into milepost_bench_note (run, member, place) select :bulk_id, id, place from chunk";

/// The tables, which are in the store's own database.
pub(super) enum Members {
    Postgres(PgPool),
    Sqlite(PathBuf),
}

impl Members {
    /// Creates the tables with `rows` members.
    pub(super) async fn make(target: &Target, address: &StoreAddress, rows: u64) -> Result<Self> {
        let rows = rows.cast_signed();
        match (&target.behind, address) {
            (Behind::Postgres(store), _) => {
                let pool = store.pool().clone();
                sqlx::raw_sql(include_str!("postgres/drop.sql")).execute(&pool).await?;
                sqlx::raw_sql(include_str!("postgres/create.sql")).execute(&pool).await?;
                sqlx::query(include_str!("postgres/fill.sql")).bind(rows).execute(&pool).await?;
                sqlx::raw_sql("vacuum analyze milepost_bench_member").execute(&pool).await?;
                Ok(Self::Postgres(pool))
            }
            (Behind::Sqlite(_), StoreAddress::Sqlite(path)) => {
                let members = Self::Sqlite(path.clone());
                let file = members.file()?;
                file.execute_batch(include_str!("sqlite/create.sql"))?;
                file.execute(include_str!("sqlite/fill.sql"), [rows])?;
                Ok(members)
            }
            (Behind::Sqlite(_), StoreAddress::Postgres(_)) => {
                anyhow::bail!("the store is not of the type of the address")
            }
        }
    }

    /// Returns the bulk job over the members.
    pub(super) fn work(&self, target: &Target, definition: &Definition) -> Result<Arc<dyn BulkWork>> {
        let key = ["id".to_owned()];
        Ok(match &target.behind {
            Behind::Postgres(store) => {
                let effect = on_postgres::Effect::Sql(APPLY.to_owned());
                Arc::new(on_postgres::SqlBulk::new(store, definition, SOURCE, &key, effect)?)
            }
            Behind::Sqlite(store) => {
                let effect = on_sqlite::Effect::Sql(APPLY.to_owned());
                Arc::new(on_sqlite::SqlBulk::new(store, definition, SOURCE, &key, effect)?)
            }
        })
    }

    /// Checks that every member has exactly one note.
    pub(super) async fn verify(&self, rows: u64) -> Result<()> {
        const COUNT: &str = "select count(*), count(distinct member) from milepost_bench_note";
        let (notes, members): (i64, i64) = match self {
            Self::Postgres(pool) => sqlx::query_as(COUNT).fetch_one(pool).await?,
            Self::Sqlite(_) => self.file()?.query_row(COUNT, (), |row| Ok((row.get(0)?, row.get(1)?)))?,
        };
        ensure!(
            (notes, members) == (rows.cast_signed(), rows.cast_signed()),
            "{notes} notes for {members} members were created; expected {rows} members"
        );
        Ok(())
    }

    /// Deletes the notes.
    pub(super) async fn forget_notes(&self) -> Result<()> {
        match self {
            Self::Postgres(pool) => {
                sqlx::raw_sql("truncate milepost_bench_note; checkpoint").execute(pool).await.map(drop)?;
            }
            Self::Sqlite(_) => self.file()?.execute_batch("delete from milepost_bench_note")?,
        }
        Ok(())
    }

    /// Drops the tables.
    pub(super) async fn remove(&self) -> Result<()> {
        match self {
            Self::Postgres(pool) => {
                sqlx::raw_sql(include_str!("postgres/drop.sql")).execute(pool).await.map(drop)?;
            }
            Self::Sqlite(_) => self.file()?.execute_batch(include_str!("sqlite/drop.sql"))?,
        }
        Ok(())
    }

    /// Opens a separate connection to the file, with the same durability as the store's.
    pub(super) fn file(&self) -> Result<Connection> {
        let Self::Sqlite(path) = self else { anyhow::bail!("there is no file") };
        let file = Connection::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        file.pragma_update(None, "synchronous", "full")?;
        file.busy_timeout(std::time::Duration::from_secs(10))?;
        Ok(file)
    }
}

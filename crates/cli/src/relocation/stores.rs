//! The two stores of a move.

use anyhow::{Context, Result, bail};
use milepost_cli_support::store::{self, Schema, StoreAddress};
use milepost_core::error::{SchemaError, StoreError};
use milepost_core::relocation::{Arrival, Departure, MoveId};
use milepost_core::schema::MigrationPlan;
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};

/// The source and the target of a move.
pub(super) struct Ends {
    pub(super) source: SqliteStore,
    pub(super) target: PostgresStore,
    pub(super) from: StoreAddress,
    pub(super) to: StoreAddress,
}

impl Ends {
    /// Opens both stores and creates the tables of an empty target.
    pub(super) async fn open(from: StoreAddress, to: StoreAddress) -> Result<Self> {
        let source = open_source(&from).await?;
        let StoreAddress::Postgres(url) = &to else { bail!("--to {to} is not PostgreSQL") };
        let target = PostgresStore::connect(url, PostgresOptions::default()).await;
        let target = target.with_context(|| format!("cannot use the store {to}"))?;
        store::fit(&target, &to, Schema::MadeWhenEmpty).await?;
        let ends = Self { source, target, from, to };
        ends.know_all_tables().await?;
        Ok(ends)
    }

    /// Refuses stores of a newer version, even if they allow this one: their new tables and columns would be lost.
    async fn know_all_tables(&self) -> Result<()> {
        let known = |plan: MigrationPlan| plan.knows_all().map_err(StoreError::Schema);
        self.source.plan_migration().await.and_then(known).with_context(|| self.of_source())?;
        self.target.plan_migration().await.and_then(known).with_context(|| self.of_target())
    }

    /// Returns the move marks of both stores.
    pub(super) async fn marks(&self) -> Result<(Option<Departure>, Option<Arrival>)> {
        let departure = self.source.departure().await.with_context(|| self.of_source())?;
        let arrival = self.target.arrival().await.with_context(|| self.of_target())?;
        Ok((departure, arrival))
    }

    /// Marks the target, so that it accepts only rows of this move.
    pub(super) async fn begin_to_fill(&self, id: MoveId) -> Result<()> {
        self.target.begin_move(id, &self.from.to_string()).await.with_context(|| self.of_target())
    }

    /// Returns the error context for operations on the source.
    pub(super) fn of_source(&self) -> String {
        format!("cannot move the store {}", self.from)
    }

    /// Returns the error context for operations on the target.
    pub(super) fn of_target(&self) -> String {
        format!("cannot move to {}", self.to)
    }
}

/// Opens an existing Milepost store.
async fn open_source(from: &StoreAddress) -> Result<SqliteStore> {
    let StoreAddress::Sqlite(path) = from else { bail!("--from {from} is not a SQLite store") };
    if !path.exists() {
        bail!("there is no store at {from}");
    }
    let cannot = || format!("cannot move the store {from}");
    let source = SqliteStore::open(path, SqliteOptions::default()).with_context(cannot)?;
    match source.check_schema().await {
        Ok(()) => Ok(source),
        Err(StoreError::Schema(SchemaError::TooOld { found: 0, .. })) => {
            bail!("{from} is not a Milepost store: it has none of its tables")
        }
        Err(StoreError::Schema(old @ SchemaError::TooOld { .. })) => Err(old)
            .with_context(|| format!("cannot move the store {from}; run `milepost --store {from} migrate`")),
        Err(error) => Err(error).with_context(cannot),
    }
}

//! The two stores of a move.

use anyhow::{Context, Result, bail};
use milepost_core::error::{SchemaError, StoreError};
use milepost_core::relocation::{Arrival, Departure, MoveId};
use milepost_postgres::{PostgresOptions, PostgresStore};
use milepost_sqlite::{SqliteOptions, SqliteStore};

use crate::store::{self, Schema, StoreAddress};

/// Where from and where to.
pub(super) struct Ends {
    pub(super) source: SqliteStore,
    pub(super) target: PostgresStore,
    pub(super) from: StoreAddress,
    pub(super) to: StoreAddress,
}

impl Ends {
    /// Opens both; the tables of the target are made when it has none.
    pub(super) async fn open(from: StoreAddress, to: StoreAddress) -> Result<Self> {
        let source = open_source(&from).await?;
        let StoreAddress::Postgres(url) = &to else { bail!("--to {to} is not PostgreSQL") };
        let target = PostgresStore::connect(url, PostgresOptions::default()).await;
        let target = target.with_context(|| format!("cannot use the store {to}"))?;
        store::fit(&target, &to, Schema::MadeWhenEmpty).await?;
        Ok(Self { source, target, from, to })
    }

    /// What both bear of a move.
    pub(super) async fn marks(&self) -> Result<(Option<Departure>, Option<Arrival>)> {
        let departure = self.source.departure().await.with_context(|| self.of_source())?;
        let arrival = self.target.arrival().await.with_context(|| self.of_target())?;
        Ok((departure, arrival))
    }

    /// Lets the target take nothing but what this move brings.
    pub(super) async fn begin_to_fill(&self, id: MoveId) -> Result<()> {
        self.target.begin_move(id, &self.from.to_string()).await.with_context(|| self.of_target())
    }

    /// What an error is about that the source gave.
    pub(super) fn of_source(&self) -> String {
        format!("cannot move the store {}", self.from)
    }

    /// What an error is about that the target gave.
    pub(super) fn of_target(&self) -> String {
        format!("cannot move to {}", self.to)
    }
}

/// Opens a store that is there already, and is one of ours.
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

//! Bulk jobs written in SQL, with an apply statement in SQL or a chunk handler in Rust.

pub(super) mod run;

use std::fmt;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Position, Rehearsal, Trial};
use milepost_core::bulk::sql::Dialect;
use milepost_core::bulk::statements::Statements;
use milepost_core::port::{BulkRun, BulkWork, StoreResult};
use sqlx::PgConnection;

use self::run::Run;
use super::database::Database;
use super::plan;
use super::spec::{Applied, Effect, Spec};
use super::visit::Visit;
use super::watch::Watched;
use crate::store::PostgresStore;

/// A bulk job whose targets and effects are in the store's own database.
#[derive(Clone)]
pub struct SqlBulk {
    name: String,
    pub(super) fingerprint: String,
    spec: Spec,
}

impl SqlBulk {
    /// Parses a source (`select … where key > :cursor … order by key limit :limit`) with its key columns, and the effect on
    /// its targets. Does not query the database; [`check`](BulkWork::check) does.
    ///
    /// # Errors
    /// Describes what is missing in either.
    pub fn new(
        store: &PostgresStore,
        definition: &Definition,
        source: &str,
        key: &[String],
        effect: Effect,
    ) -> Result<Self, InvalidBulk> {
        let applied = Applied::read(effect, key, Dialect::Postgres)?;
        let spec = Spec::read(Database::of(store), source, key, applied)?;
        Ok(Self { name: definition.name.clone(), fingerprint: definition.fingerprint.clone(), spec })
    }

    async fn connect(&self) -> StoreResult<PgConnection> {
        let name: String = format!("milepost bulk {}", self.name).chars().take(60).collect();
        self.spec.database.connect(&name).await
    }

    /// Opens the session of a run, on a dedicated connection.
    pub(super) async fn visit(&self, order: &Order) -> StoreResult<Visit> {
        Visit::open(&self.spec, self.connect().await?, order).await
    }
}

impl fmt::Debug for SqlBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlBulk")
            .field("name", &self.name)
            .field("source", &self.spec.source)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl BulkWork for SqlBulk {
    fn statements(&self) -> Option<Statements> {
        Some(self.spec.applied.statements(&self.spec.source))
    }

    async fn check(&self) -> StoreResult<()> {
        plan::check_all(&self.spec, self.connect().await?).await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let visit = self.visit(order).await?;
        let watch = visit.watch.clone();
        let (position, run) = watch.over(Run::take(self, visit, order)).await?;
        Ok((position, Watched::new(run, watch)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        let mut visit = self.visit(order).await?;
        visit.watch.clone().over(visit.rehearse(trial)).await
    }
}

//! Bulk jobs written in SQL, with an apply statement in SQL or a chunk handler in Rust.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Position, Rehearsal, Trial};
use milepost_core::bulk::sql::{Apply, Dialect, Source};
use milepost_core::port::{BulkRun, BulkWork, StoreResult};
use sqlx::{Connection, PgConnection};

use super::database::Database;
use super::handler::ChunkHandler;
use super::plan;
use super::run::Run;
use super::sql::Failures;
use super::target::Targets;
use super::visit::Visit;
use crate::store::PostgresStore;

/// The effect on the targets of a chunk.
#[derive(Clone)]
pub enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A chunk handler, which runs in the chunk's transaction.
    Handler(Arc<dyn ChunkHandler>),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(sql) => f.debug_tuple("Sql").field(sql).finish(),
            Self::Handler(_) => f.write_str("Handler"),
        }
    }
}

/// A parsed effect.
#[derive(Clone)]
pub(super) enum Applied {
    Sql(Apply),
    Handler(Arc<dyn ChunkHandler>),
    /// No effect in this database: the targets are only read.
    Elsewhere,
}

/// The targets of a bulk job, their database, and the effect on them.
#[derive(Clone)]
pub(super) struct Spec {
    pub(super) database: Database,
    pub(super) source: Source,
    pub(super) applied: Applied,
    pub(super) failures: Failures,
    /// Columns that the source must select in addition to its key.
    pub(super) columns: Vec<String>,
}

impl Spec {
    /// Parses a source with its key columns.
    pub(super) fn read(
        database: Database,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
        let source = Source::parse(source, key, Dialect::Postgres).map_err(InvalidBulk::Source)?;
        let failures = if database.is_own() { Failures::Stored } else { Failures::Given };
        let columns = match &applied {
            Applied::Handler(handler) => handler.columns().into_iter().map(str::to_owned).collect(),
            Applied::Sql(_) | Applied::Elsewhere => Vec::new(),
        };
        Ok(Self { database, source, applied, failures, columns })
    }

    /// Checks the statements against the database on this connection.
    pub(super) async fn check(&self, mut connection: PgConnection) -> StoreResult<()> {
        let targets = Targets::prepare(self, &mut connection).await?;
        plan::check(self, &targets, &mut connection).await?;
        drop(connection.close().await);
        Ok(())
    }
}

impl Applied {
    /// Parses an effect on targets with these key columns.
    pub(super) fn read(effect: Effect, key: &[String]) -> Result<Self, InvalidBulk> {
        Ok(match effect {
            Effect::Sql(sql) => {
                Self::Sql(Apply::parse(&sql, key, Dialect::Postgres).map_err(InvalidBulk::Apply)?)
            }
            Effect::Handler(handler) => Self::Handler(handler),
        })
    }
}

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
        Self::of(store, definition, source, key, Applied::read(effect, key)?)
    }

    pub(super) fn of(
        store: &PostgresStore,
        definition: &Definition,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
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
    async fn check(&self) -> StoreResult<()> {
        self.spec.check(self.connect().await?).await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, run) = Run::take(self, order).await?;
        Ok((position, Box::new(run)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        self.visit(order).await?.rehearse(trial).await
    }
}

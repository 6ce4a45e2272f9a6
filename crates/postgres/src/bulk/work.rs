//! A bulk job written in SQL, with its apply in SQL or in Rust.

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

/// What is done to the targets of a chunk.
#[derive(Clone)]
pub enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A function, in the chunk's transaction.
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

/// An effect that was read.
#[derive(Clone)]
pub(super) enum Applied {
    Sql(Apply),
    Handler(Arc<dyn ChunkHandler>),
    /// Nothing here: the targets are only read.
    Elsewhere,
}

/// Which targets there are, on which database, and what is done to them there.
#[derive(Clone)]
pub(super) struct Spec {
    pub(super) database: Database,
    pub(super) source: Source,
    pub(super) applied: Applied,
    pub(super) failures: Failures,
    /// Columns that the source has to select besides its key.
    pub(super) columns: Vec<String>,
}

impl Spec {
    /// Reads a source with its key columns, and a statement if there is one.
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

    /// Asks the database about it on this connection.
    pub(super) async fn check(&self, mut connection: PgConnection) -> StoreResult<()> {
        let targets = Targets::prepare(self, &mut connection).await?;
        plan::check(self, &targets, &mut connection).await?;
        drop(connection.close().await);
        Ok(())
    }
}

impl Applied {
    /// Reads a statement for targets with these key columns.
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
    /// Reads a source (`select … where key > :cursor … order by key limit :limit`) with its key columns, and what is
    /// done to its targets. Asks the database nothing; [`check`](BulkWork::check) does.
    ///
    /// # Errors
    /// Says what is missing in either.
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

    /// A session for a run, on a connection of its own.
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

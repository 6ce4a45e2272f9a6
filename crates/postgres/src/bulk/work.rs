//! A bulk job written in SQL, with its apply in SQL or in Rust.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Position, Rehearsal, Trial};
use milepost_core::bulk::sql::{Apply, Dialect, Source};
use milepost_core::port::{BulkRun, BulkWork, StoreResult};
use sqlx::{Connection, Executor, PgConnection};

use super::handler::ChunkHandler;
use super::plan;
use super::run::Run;
use super::target::Targets;
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

/// A bulk job whose targets and effects are in the store's own database.
#[derive(Clone)]
pub struct SqlBulk {
    pub(super) store: PostgresStore,
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) source: Source,
    pub(super) applied: Applied,
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
        let applied = match effect {
            Effect::Sql(sql) => {
                Applied::Sql(Apply::parse(&sql, key, Dialect::Postgres).map_err(InvalidBulk::Apply)?)
            }
            Effect::Handler(handler) => Applied::Handler(handler),
        };
        Self::of(store, definition, source, key, applied)
    }

    pub(super) fn of(
        store: &PostgresStore,
        definition: &Definition,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
        let source = Source::parse(source, key, Dialect::Postgres).map_err(InvalidBulk::Source)?;
        let (name, fingerprint) = (definition.name.clone(), definition.fingerprint.clone());
        Ok(Self { store: store.clone(), name, fingerprint, source, applied })
    }

    /// A connection of its own, that shows what it is for.
    pub(super) async fn connect(&self) -> StoreResult<PgConnection> {
        let name: String = format!("milepost bulk {}", self.name).chars().take(60).collect();
        let direct = self.store.inner.direct.clone().ok_or(InvalidBulk::NoDirect)?;
        let options = direct.application_name(&name);
        let connect = tokio::time::timeout(
            self.store.inner.options.acquire_timeout,
            PgConnection::connect_with(&options),
        );
        let connected = connect.await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        connected.map_err(|e| self.store.fail("bulk", e))
    }
}

impl fmt::Debug for SqlBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlBulk")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl BulkWork for SqlBulk {
    async fn check(&self) -> StoreResult<()> {
        let mut connection = self.connect().await?;
        let targets = Targets::prepare(self, &mut connection).await?;
        plan::check(self, &targets, &mut connection).await?;
        drop(connection.close().await);
        Ok(())
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, run) = Run::take(self, order).await?;
        Ok((position, Box::new(run)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        let mut run = Run::open(self, order).await?;
        let rehearsed = run.rehearse(trial).await;
        drop(run.connection.execute("rollback").await);
        rehearsed
    }
}

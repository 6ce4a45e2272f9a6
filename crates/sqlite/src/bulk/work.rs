//! A bulk job with its source in SQL and its effect in SQL or in Rust.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Position, Rehearsal, Trial};
use milepost_core::bulk::sql::{Apply, Dialect, Source};
use milepost_core::port::{BulkRun, BulkWork, StoreResult};

use super::handler::ChunkHandler;
use super::run::Run;
use super::sql::Statements;
use super::{chunk, plan};
use crate::command::Hint;
use crate::store::SqliteStore;

/// The longest duration of a chunk, because no other process can write during it.
const CHUNK_MAX: Duration = Duration::from_millis(30);

/// The effect on the targets of a chunk.
#[derive(Clone)]
pub enum Effect {
    /// A statement over the relation `chunk`.
    Sql(String),
    /// A handler that runs in the chunk's transaction.
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
    /// No effect in this file: the targets are only read.
    Elsewhere,
}

/// A bulk job whose targets and effects are in the store's own file.
#[derive(Clone)]
pub struct SqlBulk {
    pub(super) store: SqliteStore,
    pub(super) work: Arc<Work>,
}

/// The parts that are the same for all runs.
pub(super) struct Work {
    pub(super) name: String,
    pub(super) fingerprint: String,
    pub(super) source: Source,
    pub(super) applied: Applied,
    pub(super) statements: Statements,
}

impl SqlBulk {
    /// Parses a source (`select … where key > :cursor … order by key limit :limit`) with its key columns, and the effect on its targets.
    /// Does not access the file; [`check`](BulkWork::check) does.
    ///
    /// # Errors
    /// Describes the missing part of either.
    pub fn new(
        store: &SqliteStore,
        definition: &Definition,
        source: &str,
        key: &[String],
        effect: Effect,
    ) -> Result<Self, InvalidBulk> {
        let applied = match effect {
            Effect::Sql(sql) => {
                Applied::Sql(Apply::parse(&sql, key, Dialect::Sqlite).map_err(InvalidBulk::Apply)?)
            }
            Effect::Handler(handler) => Applied::Handler(handler),
        };
        Self::of(store, definition, source, key, applied)
    }

    pub(super) fn of(
        store: &SqliteStore,
        definition: &Definition,
        source: &str,
        key: &[String],
        applied: Applied,
    ) -> Result<Self, InvalidBulk> {
        let source = Source::parse(source, key, Dialect::Sqlite).map_err(InvalidBulk::Source)?;
        let apply = match &applied {
            Applied::Sql(apply) => Some(apply),
            Applied::Handler(_) | Applied::Elsewhere => None,
        };
        let statements = Statements::write(&source, apply);
        let (name, fingerprint) = (definition.name.clone(), definition.fingerprint.clone());
        let work = Work { name, fingerprint, source, applied, statements };
        Ok(Self { store: store.clone(), work: Arc::new(work) })
    }
}

impl fmt::Debug for SqlBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, source) = (&self.work.name, &self.work.source);
        f.debug_struct("SqlBulk").field("name", name).field("source", source).finish_non_exhaustive()
    }
}

#[async_trait]
impl BulkWork for SqlBulk {
    fn chunk_max(&self) -> Option<Duration> {
        Some(CHUNK_MAX)
    }

    async fn check(&self) -> StoreResult<()> {
        let work = self.work.clone();
        self.store.read("bulk", move |conn| plan::check(conn, &work)).await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, run) = Run::take(self, order).await?;
        Ok((position, Box::new(run)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        let (run, trial) = (Run::open(self, order)?, trial.clone());
        // The rows of a file exist only inside the trial, where they are staged and rolled back.
        let survey = if self.work.source.is_staged() { None } else { Some(run.find_targets().await?) };
        let rehearsed = move |tx: &rusqlite::Transaction<'_>| chunk::rehearse(tx, &run.facts, survey, &trial);
        self.store.write("bulk", Hint::NONE, rehearsed).await
    }
}

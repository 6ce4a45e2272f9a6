//! A bulk job with its source in SQL and its effect in SQL or in Rust.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Position, Rehearsal, Trial};
use milepost_core::bulk::sql::Dialect;
use milepost_core::bulk::statements::Statements;
use milepost_core::port::{BulkRun, BulkWork, StoreResult};

use super::run::Run;
use super::spec::{Applied, Effect, Spec};
use super::{chunk, plan};
use crate::command::Hint;
use crate::store::SqliteStore;

/// The longest duration of a chunk, because no other process can write during it.
const CHUNK_MAX: Duration = Duration::from_millis(30);

/// A bulk job whose targets and effects are in the store's own file.
#[derive(Clone)]
pub struct SqlBulk {
    pub(super) store: SqliteStore,
    pub(super) spec: Arc<Spec>,
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
        let applied = Applied::read(effect, key, Dialect::Sqlite)?;
        let spec = Spec::read(definition, source, key, applied)?;
        Ok(Self { store: store.clone(), spec: Arc::new(spec) })
    }
}

impl fmt::Debug for SqlBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, source) = (&self.spec.name, &self.spec.source);
        f.debug_struct("SqlBulk").field("name", name).field("source", source).finish_non_exhaustive()
    }
}

#[async_trait]
impl BulkWork for SqlBulk {
    fn chunk_max(&self) -> Option<Duration> {
        Some(CHUNK_MAX)
    }

    fn statements(&self) -> Option<Statements> {
        Some(self.spec.applied.statements(&self.spec.source))
    }

    async fn check(&self) -> StoreResult<()> {
        let spec = self.spec.clone();
        self.store.read("bulk", move |conn| plan::check(conn, &spec)).await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, run) = Run::take(&self.store, &self.spec, order).await?;
        Ok((position, Box::new(run)))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        let (run, trial) = (Run::open(&self.store, &self.spec, order)?, trial.clone());
        // The rows of a file exist only inside the trial, where they are staged and rolled back.
        let survey = if self.spec.source.is_staged() { None } else { Some(run.find_targets().await?) };
        let rehearsed = move |tx: &rusqlite::Transaction<'_>| chunk::rehearse(tx, &run.facts, survey, &trial);
        self.store.write("bulk", Hint::NONE, rehearsed).await
    }
}

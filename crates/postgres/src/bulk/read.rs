//! Targets that are read from the store's database and applied elsewhere.

use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{ChunkDone, Chunked, Order, Position, Rest, Surveyed, Target};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkReader, BulkRows, BulkRun, BulkWork, StoreResult};
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::progress::{self, Begun};
use super::spec::Applied;
use super::work::SqlBulk;
use super::work::run::Run;
use crate::store::PostgresStore;

/// A bulk job whose targets are in the store's own database and whose effects are elsewhere.
#[derive(Clone, Debug)]
pub struct PostgresRows(SqlBulk);

impl PostgresRows {
    /// Parses a source with its key columns.
    ///
    /// # Errors
    /// Describes what is missing.
    pub fn new(
        store: &PostgresStore,
        definition: &Definition,
        source: &str,
        key: &[String],
    ) -> Result<Self, InvalidBulk> {
        SqlBulk::of(store, definition, source, key, Applied::Elsewhere).map(Self)
    }
}

#[async_trait]
impl BulkRows for PostgresRows {
    async fn check(&self) -> StoreResult<()> {
        self.0.check().await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkReader>)> {
        let (position, run) = Run::take(&self.0, order).await?;
        Ok((position, Box::new(Reader { run, passing: None })))
    }
}

struct Reader {
    run: Run,
    /// The step that was read and not yet acknowledged, and the time of the read.
    passing: Option<(Step, Instant)>,
}

#[async_trait]
impl BulkReader for Reader {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.run.survey().await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let read_at = Instant::now();
        self.run.visit.script(sql!("bulk/begin_chunk")).await?;
        let read = self.next(rows, read_at).await;
        let read = self.run.settle(read, Result::is_ok).await?;
        Ok(read.map(|targets| targets.into_iter().map(|target| target.row).collect()))
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        let (step, read_at) = self.passing.take().ok_or(StoreError::Fenced(self.run.visit.order.run))?;
        self.run.visit.script(sql!("bulk/begin_chunk")).await?;
        let step = Step { took: read_at.elapsed(), ..step };
        let passed = self.advance(&step).await;
        self.run.settle(passed, |_| true).await.map(Chunked::Done)
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.run.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.run.end(then).await
    }
}

impl Reader {
    async fn next(&mut self, rows: u32, read_at: Instant) -> StoreResult<Result<Vec<Target>, Verb>> {
        let run = self.run.visit.order.run;
        let begun = self.run.step(async |session| progress::lock(session, run).await);
        let Begun { cursor, upper, word } = begun.await?;
        if let Err(verb) = word {
            return Ok(Err(verb));
        }
        let (targets, parts) = self.run.visit.read_targets(cursor.as_ref(), upper.as_ref(), rows).await?;
        self.run.step(async |session| progress::keep_size(session, run, rows).await).await?;
        self.passing = Some((Step { from: cursor, parts, rows, took: read_at.elapsed() }, read_at));
        Ok(Ok(targets))
    }

    async fn advance(&mut self, step: &Step) -> StoreResult<ChunkDone> {
        let run = self.run.visit.order.run;
        self.run.step(async |session| progress::pass(session, run, step).await).await
    }
}

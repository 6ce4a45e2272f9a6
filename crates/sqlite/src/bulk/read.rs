//! Targets that are read from this file and applied elsewhere.

use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Chunked, Order, Parts, Position, Rest, Surveyed};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkProgress, BulkReader, BulkRows, BulkRun, BulkWork, StoreResult};
use milepost_core::transition::Verb;
use rusqlite::Connection;

use super::chunk;
use super::progress::{self, Begun};
use super::run::Run;
use super::spec::Applied;
use super::work::SqlBulk;
use crate::command::Hint;
use crate::store::SqliteStore;

/// A bulk job whose targets are in the store's own file, and whose effects are elsewhere.
#[derive(Clone, Debug)]
pub struct SqliteRows(SqlBulk);

impl SqliteRows {
    /// Parses a source with its key columns.
    ///
    /// # Errors
    /// Describes the missing part.
    pub fn new(
        store: &SqliteStore,
        definition: &Definition,
        source: &str,
        key: &[String],
    ) -> Result<Self, InvalidBulk> {
        SqlBulk::of(store, definition, source, key, Applied::Elsewhere).map(Self)
    }
}

#[async_trait]
impl BulkRows for SqliteRows {
    async fn check(&self) -> StoreResult<()> {
        self.0.check().await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkReader>)> {
        let (position, run) = Run::take(&self.0.store, &self.0.spec, order).await?;
        Ok((position, Box::new(Reader { run, passing: None })))
    }
}

struct Reader {
    run: Run,
    /// The chunk that was read and not yet applied, and when it was read.
    passing: Option<(Step, Instant)>,
}

#[async_trait]
impl BulkReader for Reader {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.run.survey().await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let (facts, read_at) = (self.run.facts.clone(), Instant::now());
        let read = move |conn: &Connection| {
            let Begun { cursor, upper, stop, .. } = progress::stand(conn, facts.order.run)?;
            if let Some(verb) = stop {
                return Ok(Err(verb));
            }
            let (targets, parts) = match &upper {
                Some(upper) => chunk::next_targets(conn, &facts, cursor.as_ref(), upper, rows)?,
                None => (Vec::new(), Parts { exhausted: true, ..Parts::default() }),
            };
            Ok(Ok((targets, Step { from: cursor, parts, rows, took: read_at.elapsed() })))
        };
        let (targets, step) = match self.run.store.read("bulk", read).await? {
            Ok(read) => read,
            Err(verb) => return Ok(Err(verb)),
        };
        let run = self.run.facts.order.run;
        self.run.store.write("bulk", Hint::NONE, move |tx| progress::keep_size(tx, run, rows)).await?;
        self.passing = Some((step, read_at));
        Ok(Ok(targets.into_iter().map(|target| target.row).collect()))
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        let run = self.run.facts.order.run;
        let (step, read_at) = self.passing.take().ok_or(StoreError::Fenced(run))?;
        let step = Step { took: read_at.elapsed(), ..step };
        self.run.store.advance_bulk(run, &step).await.map(Chunked::Done)
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.run.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.run.end(then).await
    }
}

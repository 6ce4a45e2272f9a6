//! Targets that are read here and applied elsewhere.

use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::run::{Chunked, Order, Parts, Position, Rest, Surveyed};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkReader, BulkRows, BulkRun, BulkWork, StoreResult};
use milepost_core::transition::Verb;
use rusqlite::{Connection, Transaction};

use super::chunk::{self, Stand};
use super::run::Run;
use super::work::{Applied, SqlBulk};
use crate::command::Hint;
use crate::query;
use crate::row::Id;
use crate::store::SqliteStore;

/// A bulk job whose targets are in the store's own file, and whose effects are not.
#[derive(Clone, Debug)]
pub struct SqliteRows(SqlBulk);

impl SqliteRows {
    /// Reads a source with its key columns.
    ///
    /// # Errors
    /// Says what is missing.
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
        let (position, run) = Run::take(&self.0, order).await?;
        Ok((position, Box::new(Reader { run, passing: None })))
    }
}

struct Reader {
    run: Run,
    /// What was read and not passed yet.
    passing: Option<Passing>,
}

struct Passing {
    /// Where the cursor was.
    from: Option<Key>,
    parts: Parts,
    rows: u32,
    read_at: Instant,
}

impl Reader {
    /// Keeps how many rows the chunk in hand was to have, so that it is the same when it is read again.
    async fn keep_size(&self, rows: u32) -> StoreResult<()> {
        let run = self.run.facts.order.run;
        let keep = move |tx: &Transaction<'_>| {
            tx.prepare_cached(query::BULK_KEEP_SIZE)?.execute((Id(&run.job), run.token.0, rows))?;
            Ok(())
        };
        self.run.store.write("bulk", Hint::NONE, keep).await
    }
}

#[async_trait]
impl BulkReader for Reader {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.run.survey().await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let (facts, read_at) = (self.run.facts.clone(), Instant::now());
        let read = move |conn: &Connection| {
            let Stand { cursor, upper, stop } = chunk::stand(conn, &facts)?;
            if let Some(verb) = stop {
                return Ok(Err(verb));
            }
            let (targets, parts) = match &upper {
                Some(upper) => chunk::next_targets(conn, &facts, cursor.as_ref(), upper, rows)?,
                None => (Vec::new(), Parts { exhausted: true, ..Parts::default() }),
            };
            Ok(Ok((targets, Passing { from: cursor, parts, rows, read_at })))
        };
        match self.run.store.read("bulk", read).await? {
            Ok((targets, passing)) => {
                self.keep_size(rows).await?;
                self.passing = Some(passing);
                Ok(Ok(targets.into_iter().map(|target| target.row).collect()))
            }
            Err(verb) => Ok(Err(verb)),
        }
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        let (facts, run) = (self.run.facts.clone(), self.run.facts.order.run);
        let passing = self.passing.take().ok_or(StoreError::Fenced(run))?;
        // What was done counts, even when the run was told to stop meanwhile.
        let pass = move |tx: &Transaction<'_>| {
            let Passing { from, parts, rows, read_at } = passing;
            if chunk::stand(tx, &facts)?.cursor != from {
                return Err(StoreError::Fenced(run).into());
            }
            chunk::advance(tx, &facts, &parts, rows, read_at)
        };
        self.run.store.write("bulk", Hint::NONE, pass).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.run.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.run.end(then).await
    }
}

//! Targets that are read here and applied elsewhere.

use async_trait::async_trait;
use milepost_core::bulk::definition::Definition;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::run::{Chunked, Order, Parts, Position, Rest, Surveyed};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkReader, BulkRows, BulkRun, BulkWork, StoreResult};
use milepost_core::transition::Verb;
use sqlx::Executor;

use super::chunk::Begun;
use super::run::Run;
use super::work::{Applied, SqlBulk};
use crate::statement;
use crate::store::PostgresStore;

/// A bulk job whose targets are in the store's own database, and whose effects are not.
#[derive(Clone, Debug)]
pub struct PostgresRows(SqlBulk);

impl PostgresRows {
    /// Reads a source with its key columns.
    ///
    /// # Errors
    /// Says what is missing.
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
    /// What was read and not passed yet.
    passing: Option<Passing>,
}

struct Passing {
    /// Where the cursor was.
    from: Option<Key>,
    parts: Parts,
    rows: u32,
    read_at: std::time::Instant,
}

#[async_trait]
impl BulkReader for Reader {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.run.survey().await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let read_at = std::time::Instant::now();
        self.run.script(statement::BULK_BEGIN_CHUNK).await?;
        let read = self.next(rows, read_at).await;
        match &read {
            Ok(Ok(_)) => self.run.script("commit").await?,
            Ok(Err(_)) | Err(_) => drop(self.run.connection.execute("rollback").await),
        }
        read
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        let Some(Passing { from, parts, rows, read_at }) = self.passing.take() else {
            return Err(StoreError::Fenced(self.run.order.run));
        };
        self.run.script(statement::BULK_BEGIN_CHUNK).await?;
        let passed = self.advance(from, &parts, rows, read_at).await;
        match &passed {
            Ok(Chunked::Done(_)) => self.run.script("commit").await?,
            Ok(Chunked::Stopped(_)) | Err(_) => drop(self.run.connection.execute("rollback").await),
        }
        passed
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.run.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.run.end(then).await
    }
}

impl Reader {
    async fn next(
        &mut self,
        rows: u32,
        read_at: std::time::Instant,
    ) -> StoreResult<Result<Vec<String>, Verb>> {
        let Begun { cursor, upper, word } = self.run.lock().await?;
        if let Err(verb) = word {
            return Ok(Err(verb));
        }
        let (targets, read, last) = match &upper {
            Some(upper) => self.run.read_targets(cursor.as_ref(), upper, rows).await?,
            None => (Vec::new(), 0, None),
        };
        let parts = Parts {
            targets: u32::try_from(targets.len()).unwrap_or(u32::MAX),
            exhausted: read < rows,
            ..Parts::behind(last)
        };
        let run = self.run.order.run;
        let keep = sqlx::query(statement::BULK_KEEP_SIZE);
        let keep = keep.bind(run.job.0).bind(run.token.0).bind(rows.cast_signed());
        self.run.execute(keep).await?;
        self.passing = Some(Passing { from: cursor, parts, rows, read_at });
        Ok(Ok(targets.into_iter().map(|target| target.row).collect()))
    }

    /// What was done counts, even when the run was told to stop meanwhile.
    async fn advance(
        &mut self,
        from: Option<Key>,
        parts: &Parts,
        rows: u32,
        read_at: std::time::Instant,
    ) -> StoreResult<Chunked> {
        let Begun { cursor, word, .. } = self.run.lock().await?;
        if cursor != from {
            return Err(StoreError::Fenced(self.run.order.run));
        }
        self.run.advance(parts, rows, read_at.elapsed(), word.unwrap_or_default()).await
    }
}

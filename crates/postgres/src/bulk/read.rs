//! Targets that are read from the store's database and applied elsewhere.

use std::time::Instant;

use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{ChunkDone, Chunked, Target};
use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::progress::{self, Begun};
use super::work::run::Run;

impl Run {
    /// Reads the next targets, or returns the stop request.
    pub(super) async fn read_targets(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let read_at = Instant::now();
        self.visit.script(sql!("bulk/begin_chunk")).await?;
        let read = self.next_targets(rows, read_at).await;
        let read = self.settle(read, Result::is_ok).await?;
        Ok(read.map(|targets| targets.into_iter().map(|target| target.row).collect()))
    }

    /// Moves the cursor after the targets that were read last.
    pub(super) async fn pass_targets(&mut self) -> StoreResult<Chunked> {
        let (step, read_at) = self.passing.take().ok_or(StoreError::Fenced(self.visit.order.run))?;
        self.visit.script(sql!("bulk/begin_chunk")).await?;
        let step = Step { took: read_at.elapsed(), ..step };
        let passed = self.advance(&step).await;
        self.settle(passed, |_| true).await.map(Chunked::Done)
    }

    async fn next_targets(&mut self, rows: u32, read_at: Instant) -> StoreResult<Result<Vec<Target>, Verb>> {
        let run = self.visit.order.run;
        let begun = self.step(async |session| progress::lock(session, run).await);
        let Begun { cursor, upper, word } = begun.await?;
        if let Err(verb) = word {
            return Ok(Err(verb));
        }
        let (targets, parts) = self.visit.read_targets(cursor.as_ref(), upper.as_ref(), rows).await?;
        self.step(async |session| progress::keep_size(session, run, rows).await).await?;
        self.passing = Some((Step { from: cursor, parts, rows, took: read_at.elapsed() }, read_at));
        Ok(Ok(targets))
    }

    async fn advance(&mut self, step: &Step) -> StoreResult<ChunkDone> {
        let run = self.visit.order.run;
        self.step(async |session| progress::pass(session, run, step).await).await
    }
}

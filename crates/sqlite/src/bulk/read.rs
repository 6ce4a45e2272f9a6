//! Targets that are read from this file and applied elsewhere.

use std::time::Instant;

use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Chunked, Parts};
use milepost_core::error::StoreError;
use milepost_core::port::{BulkProgress, StoreResult};
use milepost_core::transition::Verb;
use rusqlite::Connection;

use super::chunk;
use super::progress::{self, Begun};
use super::run::Run;
use crate::command::Hint;

impl Run {
    /// Reads the next targets, or returns the stop request.
    pub(super) async fn read_targets(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        let (facts, read_at) = (self.facts.clone(), Instant::now());
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
        let (targets, step) = match self.store.read("bulk", read).await? {
            Ok(read) => read,
            Err(verb) => return Ok(Err(verb)),
        };
        let run = self.facts.order.run;
        self.store.write("bulk", Hint::NONE, move |tx| progress::keep_size(tx, run, rows)).await?;
        self.passing = Some((step, read_at));
        Ok(Ok(targets.into_iter().map(|target| target.row).collect()))
    }

    /// Moves the cursor after the targets that were read last.
    pub(super) async fn pass_targets(&mut self) -> StoreResult<Chunked> {
        let run = self.facts.order.run;
        let (step, read_at) = self.passing.take().ok_or(StoreError::Fenced(run))?;
        let step = Step { took: read_at.elapsed(), ..step };
        self.store.advance_bulk(run, &step).await.map(Chunked::Done)
    }
}

//! Bulk work whose chunks a witness sees.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::run::{Chunked, Order, Position, Rehearsal, Rest, Surveyed, Trial};
use milepost_core::bulk::statements::Statements;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRun, BulkWork, StoreResult};
use milepost_core::transition::Verb;

use crate::record::Effect;
use crate::witness::Witness;

/// Bulk work that records when each committed chunk began.
pub struct Witnessed {
    inner: Arc<dyn BulkWork>,
    witness: Arc<Witness>,
    pause: Duration,
}

impl Witnessed {
    /// Wraps work, with a pause before each chunk.
    #[must_use]
    pub const fn new(inner: Arc<dyn BulkWork>, witness: Arc<Witness>, pause: Duration) -> Self {
        Self { inner, witness, pause }
    }
}

#[async_trait]
impl BulkWork for Witnessed {
    fn chunk_max(&self) -> Option<Duration> {
        self.inner.chunk_max()
    }

    fn place(&self) -> Option<String> {
        self.inner.place()
    }

    fn statements(&self) -> Option<Statements> {
        self.inner.statements()
    }

    async fn check(&self) -> StoreResult<()> {
        self.inner.check().await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, inner) = self.inner.take(order).await?;
        let (run, witness) = (order.run.job.to_string(), self.witness.clone());
        Ok((position, Box::new(WitnessedRun { inner, run, witness, pause: self.pause })))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        self.inner.rehearse(order, trial).await
    }
}

struct WitnessedRun {
    inner: Box<dyn BulkRun>,
    run: String,
    witness: Arc<Witness>,
    pause: Duration,
}

#[async_trait]
impl BulkRun for WitnessedRun {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.inner.survey().await
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        // The runner has checked for stop requests before this pause. So most aborts are acknowledged after that check, and only the
        // transaction of the chunk can notice them.
        tokio::time::sleep(self.pause).await;
        let at_ms = self.witness.now_ms();
        let chunked = self.inner.chunk(rows).await?;
        if let Chunked::Done(_) = chunked {
            self.witness.saw(Effect::Chunk { run: self.run.clone(), at_ms });
        }
        Ok(chunked)
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        self.inner.read(rows).await
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        self.inner.pass().await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.inner.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.inner.end(then).await
    }
}

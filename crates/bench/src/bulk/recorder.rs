//! Recording of the chunks of a run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use milepost::NewJob;
use milepost::bulk::{Order, Rehearsal, Trial};
use milepost_core::bulk::run::{Chunked, Position, Rest, Surveyed};
use milepost_core::port::{BulkRun, BulkWork, StoreResult};
use milepost_core::transition::Verb;

/// A recorded chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Played {
    rows: u32,
    pub(super) took: Duration,
}

/// The chunks of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    pub(super) chunks: Vec<Played>,
    began: Option<Instant>,
    ended: Option<Instant>,
}

impl Tape {
    /// Returns the time from the start of the first chunk to the end of the run.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.zip(self.ended).map(|(began, ended)| ended - began).unwrap_or_default()
    }

    /// Returns the number of rows of each chunk.
    pub(super) fn sizes(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.rows).filter(|&rows| rows > 0).collect()
    }
}

/// The recording in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Tapes(Arc<Mutex<Tape>>);

impl Tapes {
    /// Takes the recording.
    pub(super) fn take(&self) -> Tape {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Tape> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work whose chunks are recorded.
pub(super) struct Recorder {
    inner: Arc<dyn BulkWork>,
    tapes: Tapes,
}

impl Recorder {
    pub(super) fn new(inner: Arc<dyn BulkWork>) -> (Self, Tapes) {
        let tapes = Tapes::default();
        (Self { inner, tapes: tapes.clone() }, tapes)
    }
}

#[async_trait]
impl BulkWork for Recorder {
    fn chunk_max(&self) -> Option<Duration> {
        self.inner.chunk_max()
    }

    async fn check(&self) -> StoreResult<()> {
        self.inner.check().await
    }

    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let (position, inner) = self.inner.take(order).await?;
        Ok((position, Box::new(Recording { inner, tapes: self.tapes.clone() })))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        self.inner.rehearse(order, trial).await
    }
}

struct Recording {
    inner: Box<dyn BulkRun>,
    tapes: Tapes,
}

#[async_trait]
impl BulkRun for Recording {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.inner.survey().await
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let began = Instant::now();
        let chunked = self.inner.chunk(rows).await?;
        let mut tape = self.tapes.lock();
        tape.began.get_or_insert(began);
        if let Chunked::Done(done) = &chunked {
            tape.chunks.push(Played { rows: done.rows, took: began.elapsed() });
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
        self.inner.end(then).await?;
        self.tapes.lock().ended = Some(Instant::now());
        Ok(())
    }
}

//! A run whose targets are in the store's own database, in the hands of this process: taken over, surveyed, done chunk by
//! chunk, ended. Its targets and its progress meet in one transaction.

use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::run::{Chunked, Order, Parts, Position, Rest, Survey, Surveyed};
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::{BulkRun, StoreResult};
use sqlx::Executor;

use super::progress::{self, Begun, told};
use super::visit::Visit;
use super::work::SqlBulk;
use crate::enqueue;
use crate::error::enqueue_error;
use crate::row::Decoded;
use crate::session::Session;
use crate::statement;

/// A run, and its session on the store's database.
pub(super) struct Run {
    pub(super) visit: Visit,
    /// Who was writing when it began.
    since: String,
    /// Of a run over the failures of another: which those are.
    failures: Option<Survey>,
}

impl Run {
    /// Takes it from whoever had it.
    pub(super) async fn take(bulk: &SqlBulk, order: &Order) -> StoreResult<(Position, Self)> {
        let visit = bulk.visit(order).await?;
        let mut run = Self { visit, since: String::new(), failures: None };
        // One that has stopped in the middle of a chunk would hold it until the server ends it.
        let unseat = sqlx::query(statement::BULK_UNSEAT).bind(order.run.job.0).bind(order.run.token.0);
        run.visit.execute(unseat).await?;
        run.visit.script(statement::BULK_TAKE_BEGIN).await?;
        let taken =
            run.step(async |session| progress::take(session, order.run, &bulk.fingerprint, None).await);
        let taken = taken.await??;
        run.visit.script("commit").await?;
        (run.visit.origin, run.visit.over_failures) = (taken.position.origin, taken.failures.is_some());
        Ok((taken.position, Self { since: taken.since, failures: taken.failures, ..run }))
    }

    /// Does a step of the run's progress, in the transaction that is open.
    pub(super) async fn step<T>(
        &mut self,
        step: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T>,
    ) -> StoreResult<T> {
        let done = step(&mut Session::lasting(&mut self.visit.connection)).await;
        done.map_err(|error| told(self.visit.order.run, error, |error| self.visit.fail(error)))
    }

    /// Ends the transaction that is open as its end says.
    pub(super) async fn settle<T>(
        &mut self,
        done: StoreResult<T>,
        commits: impl Fn(&T) -> bool,
    ) -> StoreResult<T> {
        match &done {
            Ok(done) if commits(done) => self.visit.script("commit").await?,
            // What it said counts; a connection that broke is found out at its next use.
            Ok(_) | Err(_) => drop(self.visit.connection.execute("rollback").await),
        }
        done
    }

    async fn do_chunk(&mut self, rows: u32, began: Instant) -> StoreResult<Chunked> {
        let run = self.visit.order.run;
        let Begun { cursor, upper, word } =
            self.step(async |session| progress::lock(session, run).await).await?;
        let settings = match word {
            Ok(settings) => settings,
            Err(verb) => return Ok(Chunked::Stopped(verb)),
        };
        let parts = match &upper {
            Some(upper) => self.visit.apply_parts(cursor, upper, rows).await?,
            None => Parts { exhausted: true, ..Parts::behind(cursor) },
        };
        let counts = self.step(async |session| {
            progress::keep_failures(session, run, &parts.failures).await?;
            progress::advance(session, run, &parts, rows, began.elapsed()).await
        });
        Ok(Chunked::Done(parts.done(counts.await?, settings)))
    }
}

#[async_trait]
impl BulkRun for Run {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        let surveyed = match &self.failures {
            Some(failures) => {
                let failures = failures.clone();
                self.visit.script(statement::BULK_BEGIN_CHUNK).await?;
                Surveyed::Frozen(failures)
            }
            None => self.visit.survey(&self.since).await?,
        };
        if let Surveyed::Frozen(survey) = &surveyed {
            let run = self.visit.order.run;
            self.step(async |session| progress::freeze(session, run, survey).await).await?;
            self.visit.script("commit").await?;
        }
        Ok(surveyed)
    }

    /// One transaction: the progress row is locked with the run's token; in a statement of its own the run is asked
    /// whether it is to go on; the next targets are applied; the cursor moves behind them.
    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let began = Instant::now();
        self.visit.script(statement::BULK_BEGIN_CHUNK).await?;
        let done = self.do_chunk(rows, began).await;
        self.settle(done, |done| matches!(done, Chunked::Done(_))).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        let run = self.visit.order.run;
        self.step(async |session| progress::rest(session, run, rest).await).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        if let Some(job) = then {
            enqueue::check(std::slice::from_ref(job), PAYLOAD_BYTES_MAX)?;
        }
        self.visit.script(statement::BULK_BEGIN_CHUNK).await?;
        let run = self.visit.order.run;
        let ended = progress::end(&mut Session::lasting(&mut self.visit.connection), run, then).await;
        let place = self.visit.spec.database.place();
        let ended = ended.map_err(|error| told(run, error, |error| enqueue_error(place, error)));
        self.settle(ended, |()| true).await
    }
}

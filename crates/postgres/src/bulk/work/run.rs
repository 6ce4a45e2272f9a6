//! Run whose targets are in the store's own database: takeover, survey, chunks and end. Its targets and its progress change
//! in one transaction.

use std::time::Instant;

use async_trait::async_trait;
use milepost_core::bulk::progress::Step;
use milepost_core::bulk::run::{Chunked, Order, Parts, Position, Rest, Survey, Surveyed};
use milepost_core::job::{NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::{BulkRun, StoreResult};
use milepost_core::sql;
use milepost_core::transition::Verb;
use sqlx::Executor;

use super::SqlBulk;
use crate::bulk::progress::{self, Begun, told};
use crate::bulk::visit::Visit;
use crate::enqueue;
use crate::error::enqueue_error;
use crate::row::Decoded;
use crate::session::Session;

/// A run and its session on the store's database.
pub(in crate::bulk) struct Run {
    pub(in crate::bulk) visit: Visit,
    /// Transactions that were writing when the run began.
    since: String,
    /// The failures that the run retries, if it does.
    failures: Option<Survey>,
    /// The chunk that was read and not yet acknowledged, and the time of the read.
    pub(in crate::bulk) passing: Option<(Step, Instant)>,
}

impl Run {
    /// Takes the run over from its previous holder.
    pub(in crate::bulk) async fn take(
        bulk: &SqlBulk,
        visit: Visit,
        order: &Order,
    ) -> StoreResult<(Position, Self)> {
        let mut run = Self { visit, since: String::new(), failures: None, passing: None };
        // A previous process that hangs in the middle of a chunk would hold the run's lock until the server ends its
        // session.
        let unseat = sqlx::query(sql!("bulk/end_session")).bind(order.run.job.0).bind(order.run.token.0);
        run.visit.execute(unseat).await?;
        run.visit.script(sql!("bulk/take_begin")).await?;
        let taken =
            run.step(async |session| progress::take(session, order.run, &bulk.fingerprint, None).await);
        let taken = taken.await??;
        run.visit.script("commit").await?;
        (run.visit.origin, run.visit.over_failures) = (taken.position.origin, taken.failures.is_some());
        Ok((taken.position, Self { since: taken.since, failures: taken.failures, ..run }))
    }

    /// Runs a step of the run's progress in the open transaction.
    pub(in crate::bulk) async fn step<T>(
        &mut self,
        step: impl AsyncFnOnce(&mut Session<'_>) -> Decoded<T>,
    ) -> StoreResult<T> {
        let done = step(&mut Session::lasting(&mut self.visit.connection)).await;
        done.map_err(|error| told(self.visit.order.run, error, |error| self.visit.fail(error)))
    }

    /// Commits or rolls back the open transaction, depending on the result.
    pub(in crate::bulk) async fn settle<T>(
        &mut self,
        done: StoreResult<T>,
        commits: impl Fn(&T) -> bool,
    ) -> StoreResult<T> {
        match &done {
            Ok(done) if commits(done) => self.visit.script("commit").await?,
            // The result counts, not the rollback; a broken connection is detected at its next use.
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
                self.visit.script(sql!("bulk/begin_chunk")).await?;
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

    /// Runs one chunk in one transaction: locks the progress row with the run's token, reads stop requests in a separate
    /// statement, applies the next targets, and moves the cursor past them.
    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let began = Instant::now();
        self.visit.script(sql!("bulk/begin_chunk")).await?;
        let done = self.do_chunk(rows, began).await;
        self.settle(done, |done| matches!(done, Chunked::Done(_))).await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        self.read_targets(rows).await
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        self.pass_targets().await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        let run = self.visit.order.run;
        self.step(async |session| progress::rest(session, run, rest).await).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        if let Some(job) = then {
            enqueue::check(std::slice::from_ref(job), PAYLOAD_BYTES_MAX)?;
        }
        self.visit.script(sql!("bulk/begin_chunk")).await?;
        let run = self.visit.order.run;
        let ended = progress::end(&mut Session::lasting(&mut self.visit.connection), run, then).await;
        let place = self.visit.spec.database.place();
        let ended = ended.map_err(|error| told(run, error, |error| enqueue_error(place, error)));
        self.settle(ended, |()| true).await
    }
}

//! The run of a bulk job: take over → survey → chunks → end.

use std::sync::Arc;
use std::time::Duration;

use milepost_core::bulk::chunk::{ChunkSizer, FIRST_ROWS, FIRST_ROWS_SHORT, Load, Sizing};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::parameters::Parameters;
use milepost_core::bulk::run::{ChunkDone, Chunked, Counts, Order, Position, Rest, Surveyed, Total};
use milepost_core::bulk::settings::Settings;
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRun, Operation, Store, StoreResult};
use milepost_core::transition::Verb;
use serde_json::value::to_raw_value;
use tokio::time::Instant;

use super::Bulk;
use super::elsewhere::Elsewhere;
use super::hold::{Clock, Hold, Spacing};
use crate::attempt::HANDED_BACK;
use crate::context::Context;
use crate::outcome::{JobError, Outcome};

/// The interval at which a paused run checks whether it can continue.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A run that is paused for longer releases its worker.
const HOLD_HERE: Duration = Duration::from_secs(10);
/// The delay after which a released run is started again.
const HOLD_AWAY: Duration = Duration::from_secs(15);
/// How many consecutive database failures make the attempt fail.
const FAILURES_IN_A_ROW: u32 = 6;
/// The interval at which throttles are checked while chunks run.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Runs one attempt, and logs why it fails.
pub(super) async fn run(
    bulk: Arc<Bulk>,
    store: Arc<dyn Store>,
    context: Context,
) -> Result<Outcome, JobError> {
    let (job, attempt, name) = (context.run().job, context.attempt(), bulk.definition.name.clone());
    let outcome = attempted(bulk, store, context).await;
    if let Err(error) = &outcome {
        // The message is only stored with the job: it may contain the response of a server.
        tracing::warn!(%job, name, attempt, retryable = error.retryable,
            "the run of a bulk job failed: {}; `milepost jobs show {job}` shows the message", error.code);
    }
    outcome
}

async fn attempted(bulk: Arc<Bulk>, store: Arc<dyn Store>, context: Context) -> Result<Outcome, JobError> {
    let definition = &bulk.definition;
    if context.job().group.as_ref() != Some(&definition.group) {
        let (job, group) = (context.run().job, definition.group.clone());
        return Err(fatal("out_of_group", &InvalidBulk::OutOfGroup { job, group }));
    }
    let sizer = match bulk.chunk_max() {
        Some(max) => ChunkSizer::new(definition.sizing.within(max), FIRST_ROWS_SHORT),
        None => ChunkSizer::new(definition.sizing, FIRST_ROWS),
    };
    let mut runner = Runner {
        store,
        context,
        sizer,
        settings: Settings::default(),
        counts: Counts::default(),
        total: None,
        spacing: Spacing::new(),
        bulk: bulk.clone(),
    };
    let mut failures = 0;
    loop {
        let before = runner.counts.chunks;
        let error = match runner.attend().await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        failures = if runner.counts.chunks > before { 1 } else { failures + 1 };
        if !error.is_transient() || failures >= FAILURES_IN_A_ROW {
            return Err(job_error(error));
        }
        tracing::warn!(job = %runner.context.run().job, error = error.chain(),
            "a chunk failed; continuing from the cursor");
        let pause = Duration::from_millis(100 << failures).mul_f64(0.5 + fastrand::f64());
        if runner.pause(pause).await {
            return Ok(Outcome::Stopped);
        }
    }
}

struct Runner {
    bulk: Arc<Bulk>,
    store: Arc<dyn Store>,
    context: Context,
    sizer: ChunkSizer,
    settings: Settings,
    counts: Counts,
    total: Option<Total>,
    spacing: Spacing,
}

/// The result of a pause.
enum Held {
    /// The pause has ended.
    Over,
    /// The run ends for now.
    Leave(Outcome),
}

impl Runner {
    /// Takes the run over and processes chunks until it ends or the database fails.
    async fn attend(&mut self) -> StoreResult<Outcome> {
        let clock = Clock::read(self.store.as_ref()).await?;
        let (position, mut run) = self.take().await?;
        self.begin_at(&position);
        self.say("the run of a bulk job begins or continues");
        if !position.surveyed
            && let Some(outcome) = self.survey(run.as_mut()).await?
        {
            return Ok(outcome);
        }
        let mut asked_at: Option<Instant> = None;
        loop {
            if self.is_to_stop() {
                return Ok(self.stopped());
            }
            if asked_at.is_none_or(|at| at.elapsed() >= ASK_EVERY) {
                if let Held::Leave(outcome) = self.hold(run.as_mut(), clock).await? {
                    return Ok(outcome);
                }
                asked_at = Some(Instant::now());
            }
            let begun = Instant::now();
            let done = match self.chunk(run.as_mut()).await? {
                Chunked::Done(done) => done,
                Chunked::Stopped(_) => return Ok(Outcome::Stopped),
            };
            if self.learn(&done, begun.elapsed()) {
                return self.abort().await;
            }
            if done.exhausted {
                run.end(self.next().as_ref()).await?;
                self.say("the run of a bulk job is complete");
                return Ok(Outcome::Completed);
            }
            let next = self.spacing.next(self.load(), done.rows, begun, Instant::now());
            if self.pause(next.saturating_duration_since(Instant::now())).await {
                return Ok(self.stopped());
            }
        }
    }

    async fn take(&self) -> StoreResult<(Position, Box<dyn BulkRun>)> {
        let job = self.context.job();
        let order = Order { run: job.run, payload: job.payload.clone(), nominal_at: job.nominal_at };
        self.bulk.work.take(&order).await
    }

    /// Runs the next chunk.
    async fn chunk(&self, run: &mut dyn BulkRun) -> StoreResult<Chunked> {
        match self.bulk.perform.as_deref() {
            None => run.chunk(self.rows()).await,
            Some(perform) => {
                let elsewhere = Elsewhere { perform, context: &self.context, chunks: self.counts.chunks };
                elsewhere.chunk(run, self.rows()).await
            }
        }
    }

    fn begin_at(&mut self, position: &Position) {
        self.counts = position.counts;
        self.total = position.total;
        self.set(position.settings);
        if let Some(rows) = position.chunk_rows {
            self.sizer = ChunkSizer::new(self.sizing(), rows);
        }
    }

    fn set(&mut self, settings: Settings) {
        self.settings = settings;
        self.sizer.resize(self.sizing());
    }

    fn sizing(&self) -> Sizing {
        let sizing = self.settings.sizing(self.bulk.definition.sizing);
        self.bulk.chunk_max().map_or(sizing, |max| sizing.within(max))
    }

    fn load(&self) -> Load {
        self.settings.load(self.bulk.definition.load)
    }

    /// Returns the number of rows of the next chunk.
    fn rows(&self) -> u32 {
        self.sizer.rows().min(self.load().rows_max(self.sizing().target))
    }

    /// Finds the last target, once all transactions that were open at the start have ended. Returns the outcome with which the run ends for
    /// now, if it does.
    async fn survey(&mut self, run: &mut dyn BulkRun) -> StoreResult<Option<Outcome>> {
        let begun = Instant::now();
        let mut told = None;
        loop {
            let reason = match run.survey().await? {
                Surveyed::Frozen(survey) => {
                    self.total = survey.total;
                    return Ok(None);
                }
                Surveyed::Held(reason) => reason,
            };
            // Most of these transactions end shortly.
            let pause = if begun.elapsed() < LOOK_EVERY { LOOK_EVERY / 20 } else { LOOK_EVERY };
            if told.as_ref() != Some(&reason) && begun.elapsed() >= LOOK_EVERY {
                run.rest(&Rest { throttle: Some(reason.clone()), held: Duration::ZERO }).await?;
                told = Some(reason.clone());
            }
            if self.pause(pause).await {
                return Ok(Some(self.stopped()));
            }
            if begun.elapsed() >= HOLD_HERE {
                run.rest(&Rest { throttle: Some(reason.clone()), held: begun.elapsed() }).await?;
                return Ok(Some(Outcome::Yield { after: HOLD_AWAY, note: format!("held by {reason}") }));
            }
        }
    }

    /// Waits while the run is paused for a short time, and releases the worker if the pause takes longer.
    async fn hold(&mut self, run: &mut dyn BulkRun, clock: Clock) -> StoreResult<Held> {
        let begun = Instant::now();
        let mut told: Option<Hold> = None;
        while let Some(hold) = self.bulk.hold(clock).await {
            if told.as_ref() != Some(&hold) {
                tracing::info!(job = %self.context.run().job, reason = hold.reason, "held");
                run.rest(&Rest { throttle: Some(hold.reason.clone()), held: Duration::ZERO }).await?;
            }
            let over = hold.at_least.is_some_and(|wait| wait > HOLD_HERE) || begun.elapsed() >= HOLD_HERE;
            if over {
                run.rest(&Rest { throttle: Some(hold.reason.clone()), held: begun.elapsed() }).await?;
                let note = format!("held by {}", hold.reason);
                let after = hold.at_least.unwrap_or(HOLD_AWAY);
                return Ok(Held::Leave(Outcome::Yield { after, note }));
            }
            if self.pause(hold.at_least.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)).await {
                return Ok(Held::Leave(self.stopped()));
            }
            told = Some(hold);
        }
        if told.is_some() {
            run.rest(&Rest { throttle: None, held: begun.elapsed() }).await?;
        }
        Ok(Held::Over)
    }

    /// Updates the state from a finished chunk. Returns whether more targets have failed than allowed.
    fn learn(&mut self, done: &ChunkDone, took: Duration) -> bool {
        self.sizer.learn(done.rows, took);
        self.set(done.settings);
        self.counts = done.counts;
        let passed = i64::try_from(done.counts.done + done.counts.failed).unwrap_or(i64::MAX);
        let total = self.total.and_then(|total| i64::try_from(total.rows).ok());
        self.context.progress(passed, total.map(|total| total.max(passed)), None);
        done.failed > 0 && done.counts.failed > self.bulk.definition.failures_max
    }

    /// Aborts the run, so that an operator can examine the failures and resume it.
    async fn abort(&self) -> StoreResult<Outcome> {
        let (failed, max) = (self.counts.failed, self.bulk.definition.failures_max);
        let note = format!("failed targets: {failed}, more than error_budget = {max} allows");
        let (job, name) = (self.context.run().job, &self.bulk.definition.name);
        tracing::warn!(%job, name, "the run is aborted: {note}; `milepost bulk failures {job}` lists them");
        let operation = Operation::new(Verb::Abort).grace(HOLD_HERE).note(note);
        self.store.operate(self.context.run().job, &operation).await?;
        Ok(Outcome::Stopped)
    }

    /// Returns the run that follows this one.
    fn next(&self) -> Option<NewJob> {
        let definition = self.bulk.then.as_ref()?;
        let job = self.context.run().job;
        let mut parameters = Parameters::read(&self.context.job().payload)?;
        parameters.add("previous".to_owned(), to_raw_value(&job.to_string()).ok()?);
        let next = NewJob::new(definition.name.clone(), &parameters).ok()?;
        Some(definition.direct(next.key(format!("after {job}"))))
    }

    /// Logs the progress of the run.
    fn say(&self, what: &str) {
        let (job, name) = (self.context.run().job, &self.bulk.definition.name);
        let Counts { done, failed, chunks } = self.counts;
        tracing::info!(%job, name, done, failed, chunks, "{what}");
    }

    /// Sleeps until the time has passed or the run is to stop; returns whether it is to stop.
    async fn pause(&self, time: Duration) -> bool {
        if time.is_zero() {
            return self.is_to_stop();
        }
        tokio::select! {
            () = tokio::time::sleep(time) => false,
            () = self.context.cancellation().cancelled() => true,
            () = self.context.shutdown().cancelled() => true,
        }
    }

    /// Returns whether no further chunk is to begin. A worker that shuts down hands the run back after the current chunk, for another worker
    /// continues from the cursor.
    fn is_to_stop(&self) -> bool {
        self.context.cancellation().is_cancelled() || self.context.shutdown().is_cancelled()
    }

    /// Returns the outcome of a run that was stopped between two chunks.
    fn stopped(&self) -> Outcome {
        if self.context.cancellation().is_cancelled() {
            Outcome::Stopped
        } else {
            Outcome::Yield { after: Duration::ZERO, note: HANDED_BACK.to_owned() }
        }
    }
}

pub(super) fn job_error(error: StoreError) -> JobError {
    match error {
        StoreError::Bulk(InvalidBulk::NotApplied { code, message, retryable, retry_after }) => {
            JobError { code, message, retryable, retry_after }
        }
        StoreError::Bulk(invalid) => fatal("bulk", &invalid),
        StoreError::Fenced(_) => JobError::retryable("fenced", error.to_string()),
        error => JobError::retryable("bulk", error.chain()),
    }
}

fn fatal(code: &str, invalid: &InvalidBulk) -> JobError {
    JobError::fatal(code, invalid.to_string())
}

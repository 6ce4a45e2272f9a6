//! What runs bulk jobs, and what operators do to them.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::bulk::definition::Definition;
use crate::bulk::listing::{BulkFilter, BulkView};
use crate::bulk::progress::{Stand, Step, Stretch, Taken};
use crate::bulk::run::{
    ChunkDone, Chunked, Order, Parts, Position, Rehearsal, Rest, Settings, Survey, Surveyed, Target,
    TargetFailure, Trial,
};
use crate::ident::{JobId, Run};
use crate::job::{Enqueued, NewJob, Priority};
use crate::ownership::{Put, Synced};
use crate::schedule::Source;

/// What a bulk job does to its targets, on one store.
#[async_trait]
pub trait BulkWork: Send + Sync {
    /// How long a chunk may take at most, whatever was asked for: where a chunk keeps everybody else from writing.
    fn chunk_max(&self) -> Option<Duration> {
        None
    }

    /// Where its targets are, when that is another database than the store's: chunk and cursor are two commits then.
    fn place(&self) -> Option<String> {
        None
    }

    /// Asks the database whether it can be done: prepares it and looks at its plan. Changes nothing.
    async fn check(&self) -> StoreResult<()>;

    /// Takes a run over from whoever had it: their chunks can no longer commit.
    /// [`Fenced`](crate::error::StoreError::Fenced) when the job has moved on.
    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)>;

    /// Does a few chunks and rolls them back, with what was staged for them.
    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal>;
}

/// A run in the hands of one worker. Dropping it leaves it where its last chunk left it.
#[async_trait]
pub trait BulkRun: Send {
    /// Finds the last target and keeps it, once all that was written at the start can be seen.
    async fn survey(&mut self) -> StoreResult<Surveyed>;

    /// Does the next chunk: effects, cursor and counters in one commit, unless it was told to stop.
    /// [`Fenced`](crate::error::StoreError::Fenced) when another worker has taken the run over.
    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked>;

    /// Says what holds the run, for people.
    async fn rest(&mut self, rest: &Rest) -> StoreResult<()>;

    /// Ends the run and its job with success, and starts the next one if there is one: one commit.
    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()>;
}

/// Targets for work that is done elsewhere: read, done by the caller, then passed.
#[async_trait]
pub trait BulkRows: Send + Sync {
    /// As [`BulkWork::place`].
    fn place(&self) -> Option<String> {
        None
    }

    /// As [`BulkWork::check`].
    async fn check(&self) -> StoreResult<()>;

    /// As [`BulkWork::take`].
    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkReader>)>;
}

/// A run whose targets are read and passed.
#[async_trait]
pub trait BulkReader: Send {
    /// As [`BulkRun::survey`].
    async fn survey(&mut self) -> StoreResult<Surveyed>;

    /// The next targets, each a JSON object, unless the run was told to stop.
    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, crate::transition::Verb>>;

    /// Passes what was read last: moves the cursor behind it.
    async fn pass(&mut self) -> StoreResult<Chunked>;

    /// As [`BulkRun::rest`].
    async fn rest(&mut self, rest: &Rest) -> StoreResult<()>;

    /// As [`BulkRun::end`].
    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()>;
}

/// Targets on their way into a store. Nobody sees them before the run is started; dropping it leaves nothing that
/// could run, and what it wrote is removed by retention.
#[async_trait]
pub trait BulkStaging: Send {
    /// Adds rows behind those before, each a JSON object as [`Columns::row`](crate::bulk::staged::Columns::row) makes
    /// them.
    async fn add(&mut self, rows: Vec<String>) -> StoreResult<()>;

    /// Starts the run over all that was added: one commit. Where the job's key was there before, nothing is kept.
    async fn start(self: Box<Self>, job: &NewJob) -> StoreResult<Enqueued>;

    /// Removes what was added.
    async fn give_up(self: Box<Self>) -> StoreResult<()>;
}

/// The targets of a bulk job on another database than the store's, and what is done to them there.
#[async_trait]
pub trait BulkTargets: Send + Sync {
    /// Which database that is, for people: its name and address, without secrets.
    fn place(&self) -> String;

    /// As [`BulkWork::check`].
    async fn check(&self) -> StoreResult<()>;

    /// A session there for one run, with what the run asks for looked at.
    async fn visit(&self, order: &Order) -> StoreResult<Box<dyn BulkVisit>>;

    /// As [`BulkWork::rehearse`].
    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal>;
}

/// A session of one run on the database of its targets. Dropping it rolls back what is not committed.
#[async_trait]
pub trait BulkVisit: Send {
    /// Who was writing there when it came, in the database's words.
    fn since(&self) -> &str;

    /// Makes it the only session of its run, once the store has said that the run is its worker's: ends those of
    /// earlier workers, if it may.
    async fn settle(&mut self, taken: &Taken) -> StoreResult<()>;

    /// Finds the last target, once all that was written at the start can be seen.
    async fn survey(&mut self, since: &str) -> StoreResult<Surveyed>;

    /// Applies the next targets and commits that. Bad ones are found and told, not kept.
    async fn apply(&mut self, stretch: &Stretch, rows: u32) -> StoreResult<Parts>;

    /// Reads the next targets; whether they count is for others to say.
    async fn read(&mut self, stretch: &Stretch, rows: u32) -> StoreResult<(Vec<Target>, Parts)>;
}

/// How far runs are whose targets are on another database. Every verb but the first carries the token of
/// [`take_bulk`](Self::take_bulk), and answers [`Fenced`](crate::error::StoreError::Fenced) when another worker has taken
/// the run over, or the job has moved on.
#[async_trait]
pub trait BulkProgress: Send + Sync {
    /// Takes a run over from whoever had it. What it remembers of who was writing at its start is `since`, unless it
    /// remembers that already.
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken>;

    /// Keeps which targets a run has.
    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()>;

    /// Where a run stands before a chunk of so many rows, and what it was told. Keeps the number, so that the chunk is
    /// the same when it is done again.
    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<Stand>;

    /// Moves the cursor behind a chunk and keeps its failures and counts: one commit. What was done counts, even when
    /// the run was told to stop meanwhile.
    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone>;

    /// As [`BulkRun::rest`].
    async fn rest_bulk(&self, run: Run, rest: &Rest) -> StoreResult<()>;

    /// As [`BulkRun::end`].
    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()>;
}

/// Looking at bulk jobs and steering them. What stops and resumes them is what stops and resumes every job.
#[async_trait]
pub trait BulkStore: Send + Sync {
    /// Stores a definition, for lists and for those who start it in SQL.
    async fn put_bulk(&self, definition: &Definition, source: Source) -> StoreResult<Put>;

    /// Removes the definitions of a configuration that it no longer names.
    async fn sync_bulks(&self, configured: &[Definition]) -> StoreResult<Synced>;

    /// A definition.
    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>>;

    /// All definitions, by name.
    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>>;

    /// Starts a run: a job of the definition's kind, in its group.
    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued>;

    /// Begins to stage the targets of a run that is started when all are there. `name`: where they come from, for
    /// people.
    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>>;

    /// Bulk jobs: those under way and those that wait first, in the order in which they will run, then the others,
    /// newest first.
    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>>;

    /// Targets of a run that failed, after this place.
    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>>;

    /// Changes what a run may take; counts from its next chunk on.
    async fn set_bulk(&self, job: JobId, settings: &Settings, priority: Option<Priority>) -> StoreResult<()>;

    /// Starts a run over the failures of another, with the same parameters.
    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued>;

    /// Stops the statement that a run is in, so that its chunk rolls back. Answers whether there was one.
    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool>;
}

/// Something that can hold bulk jobs: a replica that lags, locks that are waited for, a probe of the user's.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Why no chunk may start now, in words that begin with its name; `None`: one may. What cannot be found out holds
    /// too.
    async fn holds(&self) -> Option<String>;
}

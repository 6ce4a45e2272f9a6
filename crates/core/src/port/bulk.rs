//! Store ports for bulk jobs.
//!
//! | port | session | used by |
//! |---|---|---|
//! | [`BulkStore`] | [`BulkStaging`], rows of a file | operators |
//! | [`BulkProgress`] | | a worker whose targets are on another database: cursor and fence |
//! | [`BulkTargets`] | [`BulkVisit`], the targets there | the same worker: reads and applies targets |
//! | [`BulkWork`] | [`BulkRun`], one run | every worker: a run of a bulk job, wherever its targets are |
//!
//! [`Throttle`] is not a part of a store: it decides when a run has to wait.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::bulk::definition::Definition;
use crate::bulk::listing::{BulkFilter, BulkView};
use crate::bulk::progress::{BeforeChunk, Step, Taken, TargetRange};
use crate::bulk::run::{
    ChunkDone, Chunked, Order, Parts, Position, Rehearsal, Rest, Survey, Surveyed, Target, TargetFailure,
    Trial,
};
use crate::bulk::settings::SettingsChange;
use crate::bulk::statements::Statements;
use crate::ident::{JobId, Run};
use crate::job::{Enqueued, NewJob};
use crate::precedence::{Put, Scope, Synced};
use crate::schedule::Source;
use crate::state::JobState;
use crate::transition::Verb;

/// The work of a bulk job on one store.
#[async_trait]
pub trait BulkWork: Send + Sync {
    /// Returns the maximum duration of a chunk, whatever was configured, for stores where a chunk blocks all other writers.
    fn chunk_max(&self) -> Option<Duration> {
        None
    }

    /// Returns the database of its targets, if it is not the store's. Chunk and cursor are then two commits.
    fn place(&self) -> Option<String> {
        None
    }

    /// Returns its statements for those who examine the bulk job or start it, if it has some.
    fn statements(&self) -> Option<Statements> {
        None
    }

    /// Checks against the database that the statements are valid: prepares them and inspects their plans. Changes nothing.
    async fn check(&self) -> StoreResult<()>;

    /// Takes over a run; chunks of its previous worker can no longer commit.
    /// [`Fenced`](crate::error::StoreError::Fenced) when the run token is outdated.
    async fn take(&self, order: &Order) -> StoreResult<(Position, Box<dyn BulkRun>)>;

    /// Applies a few chunks and rolls them back, along with the rows staged for them.
    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal>;
}

/// A run held by one worker. After a drop, the run continues from its last chunk.
#[async_trait]
pub trait BulkRun: Send {
    /// Determines and stores the last target, once everything written before the start is visible.
    async fn survey(&mut self) -> StoreResult<Surveyed>;

    /// Applies the next chunk: effects, cursor and counters in one commit, unless the run was asked to stop.
    /// [`Fenced`](crate::error::StoreError::Fenced) when another worker has taken over the run.
    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked>;

    /// Reads the next targets, each a JSON object, for a caller that applies them and then calls [`pass`](Self::pass); returns the request if the
    /// run was asked to stop.
    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>>;

    /// Acknowledges the targets that were read last: moves the cursor after them.
    async fn pass(&mut self) -> StoreResult<Chunked>;

    /// Records for operators what pauses the run.
    async fn rest(&mut self, rest: &Rest) -> StoreResult<()>;

    /// Ends the run and its job successfully, and starts the next run if there is one, in one commit.
    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()>;
}

/// Targets that are being uploaded to a store. They are invisible until the run is started. After a drop nothing can
/// run, and the uploaded rows are removed by retention.
#[async_trait]
pub trait BulkStaging: Send {
    /// Appends rows, each a JSON object as returned by [`Columns::row`](crate::bulk::staged::Columns::row).
    async fn add(&mut self, rows: Vec<String>) -> StoreResult<()>;

    /// Starts the run over all rows that were added, in one commit. If the job's key already exists, the rows are discarded.
    async fn start(self: Box<Self>, job: &NewJob) -> StoreResult<Enqueued>;

    /// Removes the added rows.
    async fn give_up(self: Box<Self>) -> StoreResult<()>;
}

/// The targets of a bulk job on another database than the store's, and the statements applied to them there.
#[async_trait]
pub trait BulkTargets: Send + Sync {
    /// Returns the name and address of that database for operators, without secrets.
    fn place(&self) -> String;

    /// As [`BulkWork::statements`].
    fn statements(&self) -> Option<Statements>;

    /// As [`BulkWork::check`].
    async fn check(&self) -> StoreResult<()>;

    /// Opens a session there for one run, and checks the run's parameters.
    async fn visit(&self, order: &Order) -> StoreResult<Box<dyn BulkVisit>>;

    /// As [`BulkWork::rehearse`].
    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal>;
}

/// A session of one run on the database of its targets. A drop rolls back uncommitted changes.
#[async_trait]
pub trait BulkVisit: Send {
    /// Returns the transactions that were writing there when the session began, in the database's format.
    fn since(&self) -> &str;

    /// Makes this the only session of its run, after the store has confirmed that the run belongs to this worker.
    /// Terminates the sessions of earlier workers, if permissions allow it.
    async fn settle(&mut self, taken: &Taken) -> StoreResult<()>;

    /// Determines the last target, once everything written before the start is visible.
    async fn survey(&mut self, since: &str) -> StoreResult<Surveyed>;

    /// Applies the next targets and commits. Failed targets are returned, not stored.
    async fn apply(&mut self, range: &TargetRange, rows: u32) -> StoreResult<Parts>;

    /// Reads the next targets without applying them; the caller does that.
    async fn read(&mut self, range: &TargetRange, rows: u32) -> StoreResult<(Vec<Target>, Parts)>;
}

/// Progress of runs whose targets are in another database. Every method except the first carries the run token of
/// [`take_bulk`](Self::take_bulk), and returns [`Fenced`](crate::error::StoreError::Fenced) when another worker has taken
/// over the run, or the token is outdated.
#[async_trait]
pub trait BulkProgress: Send + Sync {
    /// Takes over a run. Stores `since`, the transactions that were writing when the run began, unless a value is already stored.
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken>;

    /// Stores the set of targets of a run.
    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()>;

    /// Returns the position of a run before a chunk of this many rows, and stop requests. Stores the number of rows, so
    /// that a repeated chunk has the same size.
    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<BeforeChunk>;

    /// Moves the cursor after a chunk, and stores its failures and counts, in one commit. A chunk that was applied
    /// counts even if a stop was requested in the meantime.
    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone>;

    /// As [`BulkRun::rest`].
    async fn rest_bulk(&self, run: Run, rest: &Rest) -> StoreResult<()>;

    /// As [`BulkRun::end`].
    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()>;
}

/// Inspection and control of bulk jobs. They are stopped and resumed with the operations for jobs.
#[async_trait]
pub trait BulkStore: Send + Sync {
    /// Stores a definition, for lists and for starts in SQL.
    async fn put_bulk(&self, definition: &Definition, source: Source) -> StoreResult<Put>;

    /// Stores the definitions of a configuration, and removes those of its scope that it no longer contains.
    async fn sync_bulks(&self, configured: &[Definition], scope: &Scope) -> StoreResult<Synced>;

    /// Returns a definition.
    async fn bulk_definition(&self, name: &str) -> StoreResult<Option<Definition>>;

    /// Lists all definitions, by name.
    async fn bulk_definitions(&self) -> StoreResult<Vec<Definition>>;

    /// Starts a run: a job of the definition's kind, in its group.
    async fn start_bulk(&self, job: &NewJob) -> StoreResult<Enqueued>;

    /// Begins an upload of the targets of a run, which is started when all of them are staged. `name`: the source of
    /// the targets, for operators.
    async fn stage_bulk(&self, name: &str) -> StoreResult<Box<dyn BulkStaging>>;

    /// Lists bulk jobs: first those that run or wait, in the order in which they will run, then the others, newest first.
    async fn bulks(&self, filter: &BulkFilter) -> StoreResult<Vec<BulkView>>;

    /// Lists failed targets of a run, after this position.
    async fn bulk_failures(&self, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<TargetFailure>>;

    /// Returns how many of the jobs that a run of [`operation`](crate::bulk::operation) changes are in each state now: of the first
    /// [`COUNTED_MAX`](crate::bulk::operation::COUNTED_MAX) that still exist.
    async fn operated_jobs(&self, run: JobId) -> StoreResult<Vec<(JobState, i64)>>;

    /// Changes the settings of a run, from its next chunk on.
    async fn set_bulk(&self, job: JobId, change: &SettingsChange) -> StoreResult<()>;

    /// Starts a run over the failures of another run, with the same parameters.
    async fn retry_bulk_failures(&self, job: JobId) -> StoreResult<Enqueued>;

    /// Cancels the statement that a run is executing, so that its chunk rolls back. Returns whether there was one.
    async fn interrupt_bulk(&self, job: JobId) -> StoreResult<bool>;
}

/// A condition that can pause bulk jobs: a lagging replica, lock waits, or a user's probe.
#[async_trait]
pub trait Throttle: Send + Sync {
    /// Checks that it can be evaluated: the database prepares a query. A throttle that cannot would pause its runs for ever.
    async fn check(&self) -> StoreResult<()> {
        Ok(())
    }

    /// Returns why no chunk may start now, as a text that begins with the throttle's name; `None` when one may start.
    /// When the state cannot be determined, it also pauses the run.
    async fn holds(&self) -> Option<String>;
}

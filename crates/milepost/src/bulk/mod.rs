//! Bulk jobs: work on many targets in chunks. A run can be stopped and resumes where it stopped.
//!
//! A [`Bulk`] consists of a definition, the work on a chunk, and the conditions under which a chunk may start. A worker that gets it
//! through [`WorkerBuilder::bulk`](crate::WorkerBuilder::bulk) runs jobs with the definition's name. Each run holds a slot of its group, so
//! one run at a time is active in a group.

mod children;
pub(crate) mod dry_run;
mod elsewhere;
mod hold;
mod remote;
mod runner;
mod staging;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::port::{BulkWork, Store};

use crate::context::Context;
use crate::outcome::{JobError, Outcome};

#[doc(inline)]
pub use milepost_core::bulk::chunk::{Load, Sizing};
#[doc(inline)]
pub use milepost_core::bulk::definition::{Definition, Effects, Labels};
#[doc(inline)]
pub use milepost_core::bulk::error::InvalidBulk;
#[doc(inline)]
pub use milepost_core::bulk::event_template::EventTemplate;
#[doc(inline)]
pub use milepost_core::bulk::key::Key;
#[doc(inline)]
pub use milepost_core::bulk::listing::{BulkFilter, BulkView, StagedFile};
#[doc(inline)]
pub use milepost_core::bulk::run::{
    BadTarget, Chunk, Counts, Order, Rehearsal, Target, TargetFailure, Total, Trial,
};
pub use milepost_core::bulk::settings::{Settings, SettingsChange};
#[doc(inline)]
pub use milepost_core::bulk::sql::{Dialect, InvalidSql};
#[doc(inline)]
pub use milepost_core::bulk::staged::{BadRow, ColumnType, Columns, InvalidColumns};
#[doc(inline)]
pub use milepost_core::bulk::statements::Statements;
#[doc(inline)]
pub use milepost_core::bulk::window::{InvalidWindow, Window, Windows};
#[doc(inline)]
pub use milepost_core::port::{BulkTargets, Throttle};
pub use remote::Remote;
pub use staging::Staging;

/// A function that is called for each chunk.
pub(crate) type Perform = dyn Fn(Context) -> BoxFuture<'static, Result<Outcome, JobError>> + Send + Sync;

/// A bulk job for a worker.
#[derive(Clone)]
pub struct Bulk {
    definition: Definition,
    work: Arc<dyn BulkWork>,
    /// The function that applies the chunks, if their effects are elsewhere.
    perform: Option<Arc<Perform>>,
    windows: Option<Windows>,
    throttles: Vec<Arc<dyn Throttle>>,
    then: Option<Definition>,
}

impl Bulk {
    /// Creates a bulk job whose chunks are transactions: `SqlBulk` of the store's crate, or [`Remote`] for a database other than the
    /// store's.
    #[must_use]
    pub fn new(mut definition: Definition, work: Arc<dyn BulkWork>) -> Self {
        if work.place().is_some() {
            definition.effects = Effects::AtLeastOncePerChunk;
        }
        Self::of(definition, work, None)
    }

    /// Creates a bulk job whose chunks are passed to a function with effects elsewhere. `work` reads them: `SqlBulk` of the store's crate with
    /// `Effect::Elsewhere`, or a [`Remote`] whose targets have no effect. After a crash in between, the same chunk is passed again. The function's
    /// payload is `{"bulk_id", "params", "rows"}`, and [`Context::idempotency_key`] identifies the chunk.
    #[must_use]
    pub fn elsewhere<F, Fut>(mut definition: Definition, work: Arc<dyn BulkWork>, perform: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        definition.effects = Effects::AtLeastOncePerChunk;
        let perform = move |context| -> BoxFuture<'static, _> { perform(context).boxed() };
        Self::of(definition, work, Some(Arc::new(perform)))
    }

    fn of(mut definition: Definition, work: Arc<dyn BulkWork>, perform: Option<Arc<Perform>>) -> Self {
        definition.place = work.place();
        // An effect that is not SQL is known from the definition only.
        let effect = definition.statements.take().and_then(|it| it.effect);
        definition.statements =
            work.statements().map(|its| Statements { effect: its.effect.or(effect), ..its });
        Self { definition, work, perform, windows: None, throttles: Vec::new(), then: None }
    }

    /// Restricts the start of chunks to these times of day.
    #[must_use]
    pub fn windows(mut self, windows: Windows) -> Self {
        self.windows = Some(windows);
        self
    }

    /// Adds a throttle, which pauses the run while it reports a reason.
    #[must_use]
    pub fn throttle(mut self, throttle: Arc<dyn Throttle>) -> Self {
        self.throttles.push(throttle);
        self
    }

    /// Starts a run of this definition when a run ends, in the same commit, with the same parameters and the ended run's id as `previous`.
    #[must_use]
    pub fn then(mut self, next: Definition) -> Self {
        self.definition.then = Some(next.name.clone());
        self.then = Some(next);
        self
    }

    /// Returns the definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Checks against the database whether the work can be done.
    ///
    /// # Errors
    /// Describes the problem with source or apply.
    pub async fn check(&self) -> milepost_core::port::StoreResult<()> {
        self.work.check().await?;
        for throttle in &self.throttles {
            throttle.check().await?;
        }
        Ok(())
    }

    /// Returns the maximum duration of a chunk. A chunk that is passed to a function holds no transaction open, so that it has none.
    fn chunk_max(&self) -> Option<Duration> {
        self.work.chunk_max().filter(|_| self.perform.is_none())
    }

    /// Returns the handler that runs it.
    pub(crate) fn perform(self, store: Arc<dyn Store>) -> Arc<Perform> {
        let bulk = Arc::new(self);
        Arc::new(move |context| runner::run(bulk.clone(), store.clone(), context).boxed())
    }
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulk").field("definition", &self.definition).finish_non_exhaustive()
    }
}

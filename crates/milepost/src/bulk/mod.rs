//! Bulk jobs: many targets, a chunk at a time, that can be stopped and go on from where they were.
//!
//! A [`Bulk`] is a definition, what is done to a chunk, and when a chunk may start. Given to
//! [`WorkerBuilder::bulk`](crate::WorkerBuilder::bulk) the worker runs jobs of the definition's name. Each run of a group
//! has the group's slot, so one runs at a time.

mod elsewhere;
mod hold;
mod made;
mod remote;
mod runner;
mod staging;

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::port::{BulkRows, BulkWork, Store};

use crate::context::Context;
use crate::handler::{JobError, Outcome};

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
    BadTarget, Chunk, Counts, Order, Rehearsal, Settings, Target, TargetFailure, Total, Trial,
};
#[doc(inline)]
pub use milepost_core::bulk::sql::{Dialect, InvalidSql};
#[doc(inline)]
pub use milepost_core::bulk::staged::{BadRow, ColumnType, Columns, InvalidColumns};
#[doc(inline)]
pub use milepost_core::bulk::window::{InvalidWindow, Window, Windows};
#[doc(inline)]
pub use milepost_core::port::{BulkTargets, Throttle};
pub use remote::Remote;
pub use staging::Staging;

/// A function that is called for each chunk.
pub(crate) type Perform = dyn Fn(Context) -> BoxFuture<'static, Result<Outcome, JobError>> + Send + Sync;

/// What is done to a chunk, and where.
#[derive(Clone)]
enum Work {
    /// In the store's own transaction.
    Here(Arc<dyn BulkWork>),
    /// By a function, between two transactions.
    Elsewhere { rows: Arc<dyn BulkRows>, perform: Arc<Perform> },
}

/// A bulk job for a worker.
#[derive(Clone)]
pub struct Bulk {
    definition: Definition,
    work: Work,
    windows: Option<Windows>,
    throttles: Vec<Arc<dyn Throttle>>,
    then: Option<Definition>,
}

impl Bulk {
    /// One whose chunks are transactions: `SqlBulk` of the store's crate, or [`Remote`] on another database than the
    /// store's.
    #[must_use]
    pub fn new(mut definition: Definition, work: Arc<dyn BulkWork>) -> Self {
        definition.place = work.place();
        if definition.place.is_some() {
            definition.effects = Effects::AtLeastOncePerChunk;
        }
        Self::of(definition, Work::Here(work))
    }

    /// One whose chunks are handed to a function, whose effects are elsewhere: a crash in between hands the chunk out
    /// again. The function's payload is `{"bulk_id", "params", "rows"}`, and
    /// [`Context::idempotency_key`] tells one chunk from another.
    #[must_use]
    pub fn elsewhere<F, Fut>(mut definition: Definition, rows: Arc<dyn BulkRows>, perform: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, JobError>> + Send + 'static,
    {
        definition.effects = Effects::AtLeastOncePerChunk;
        definition.place = rows.place();
        let perform = move |context| -> BoxFuture<'static, _> { perform(context).boxed() };
        Self::of(definition, Work::Elsewhere { rows, perform: Arc::new(perform) })
    }

    fn of(definition: Definition, work: Work) -> Self {
        Self { definition, work, windows: None, throttles: Vec::new(), then: None }
    }

    /// Lets chunks start at these times of day only.
    #[must_use]
    pub fn windows(mut self, windows: Windows) -> Self {
        self.windows = Some(windows);
        self
    }

    /// Holds the run as long as this says so.
    #[must_use]
    pub fn throttle(mut self, throttle: Arc<dyn Throttle>) -> Self {
        self.throttles.push(throttle);
        self
    }

    /// Starts a run of this definition with the end of each run, in one commit: same parameters, and the run's id as
    /// `previous`.
    #[must_use]
    pub fn then(mut self, next: Definition) -> Self {
        self.definition.then = Some(next.name.clone());
        self.then = Some(next);
        self
    }

    /// What it is.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Asks the database whether it can be done.
    ///
    /// # Errors
    /// Says what is wrong with source or apply.
    pub async fn check(&self) -> milepost_core::port::StoreResult<()> {
        match &self.work {
            Work::Here(work) => work.check().await,
            Work::Elsewhere { rows, .. } => rows.check().await,
        }
    }

    /// How it is run.
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

//! Handlers that apply chunks in Rust.

use milepost_core::bulk::child_jobs::check_children;
use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::run::Chunk;
use milepost_core::error::Cause;
use milepost_core::job::NewJob;
use rusqlite::Transaction;

use crate::{enqueue, event};

/// Applies a chunk in Rust, in the chunk's own transaction: effects in the same file happen exactly once.
///
/// After an SQLite error about the data (a constraint, a trigger, a type), or a [`BadTarget`](milepost_core::bulk::run::BadTarget), the
/// chunk is retried in smaller parts until the bad targets are found. Those are stored as failures and the others are applied. Any other
/// error fails the attempt.
pub trait ChunkHandler: Send + Sync {
    /// Returns the target columns that it reads. A source that does not select all of them is refused before the first chunk.
    fn columns(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Applies the chunk on the store's writer thread. It must not end the transaction.
    ///
    /// # Errors
    /// The reason why the chunk could not be applied.
    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause>;
}

/// Enqueues a job for every target. The job key is derived from the run and the target, so that no job is created twice.
#[derive(Clone, Debug)]
pub struct ChildJobs {
    /// The options of the jobs; the payload is the target as the source selects it.
    pub template: NewJob,
}

impl ChunkHandler for ChildJobs {
    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause> {
        let jobs = chunk.child_jobs(&self.template)?;
        let made = enqueue::enqueue_many(tx, &jobs)?;
        Ok(check_children(&made)?)
    }
}

/// Emits an event for every target. The event id is derived from the run and the target, so that no event is emitted twice.
#[derive(Clone, Debug)]
pub struct ChildEvents {
    /// The template of the events.
    pub template: EventTemplate,
}

impl ChunkHandler for ChildEvents {
    fn columns(&self) -> Vec<&str> {
        self.template.columns().collect()
    }

    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause> {
        event::emit_many(tx, &chunk.child_events(&self.template)?)?;
        Ok(())
    }
}

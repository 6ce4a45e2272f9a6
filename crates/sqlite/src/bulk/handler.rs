//! Chunks in Rust.

use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::run::Chunk;
use milepost_core::error::Cause;
use milepost_core::job::NewJob;
use rusqlite::Transaction;

use crate::{enqueue, event};

/// What is done to a chunk in Rust, in the chunk's own transaction: effects in the same file happen exactly once.
///
/// An error of SQLite about the data (a constraint, a trigger's, a type's), or a
/// [`BadTarget`](milepost_core::bulk::run::BadTarget), makes the chunk be tried again in smaller parts, until the
/// targets to blame are found; those are kept as failures and the others applied. Any other error fails the attempt.
pub trait ChunkHandler: Send + Sync {
    /// The columns that it reads of each target: a source that does not select them all is refused before any chunk.
    fn columns(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Does it, on the store's writer thread. The transaction is not the handler's to end.
    ///
    /// # Errors
    /// Why it could not be done.
    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause>;
}

/// Makes a job of every target, keyed by the run and the target, so that none is made twice.
#[derive(Clone, Debug)]
pub struct ChildJobs {
    /// What the jobs are like; their payload is the target, as the source selects it.
    pub template: NewJob,
}

impl ChunkHandler for ChildJobs {
    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause> {
        let jobs = chunk.child_jobs(&self.template)?;
        enqueue::enqueue_many(tx, &jobs)?;
        Ok(())
    }
}

/// Emits an event for every target, whose id comes of the run and the target, so that none is emitted twice.
#[derive(Clone, Debug)]
pub struct ChildEvents {
    /// What the events are like.
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

//! Chunk handlers in Rust.

use async_trait::async_trait;
use milepost_core::bulk::child_jobs::check_children;
use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::run::Chunk;
use milepost_core::error::Cause;
use milepost_core::job::NewJob;
use sqlx::PgConnection;

use crate::{enqueue, event};

/// Processes a chunk in Rust, in the chunk's transaction, so that effects in the same database happen exactly once.
///
/// If it returns a database error about the data (class 22 or 23, or one raised by a trigger) or a
/// [`BadTarget`](milepost_core::bulk::run::BadTarget), the chunk is retried in smaller parts until the bad targets are
/// found. Those are stored as failures, and the others are applied. Any other error fails the attempt.
#[async_trait]
pub trait ChunkHandler: Send + Sync {
    /// Returns the columns that the handler reads of each target. A source that does not select all of them is refused
    /// before the first chunk.
    fn columns(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Processes the chunk. The handler must not end the transaction.
    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause>;
}

/// Enqueues one job for each target. Its key is made of the run and the target, so that no job is enqueued twice.
#[derive(Clone, Debug)]
pub struct ChildJobs {
    /// Template of the jobs; their payload is the target, as the source selects it.
    pub template: NewJob,
}

#[async_trait]
impl ChunkHandler for ChildJobs {
    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause> {
        let jobs = chunk.child_jobs(&self.template)?;
        let made = enqueue::enqueue_many(connection, &jobs).await?;
        Ok(check_children(&made)?)
    }
}

/// Emits one event for each target. Its ID is derived from the run and the target, so that no event is emitted twice.
#[derive(Clone, Debug)]
pub struct ChildEvents {
    /// Template of the events.
    pub template: EventTemplate,
}

#[async_trait]
impl ChunkHandler for ChildEvents {
    fn columns(&self) -> Vec<&str> {
        self.template.columns().collect()
    }

    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause> {
        event::emit_many(connection, &chunk.child_events(&self.template)?).await?;
        Ok(())
    }
}

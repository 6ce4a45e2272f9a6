//! Chunks in Rust.

use async_trait::async_trait;
use milepost_core::bulk::event_template::EventTemplate;
use milepost_core::bulk::run::Chunk;
use milepost_core::error::Cause;
use milepost_core::job::NewJob;
use sqlx::PgConnection;

use crate::{enqueue, event};

/// What is done to a chunk in Rust, in the chunk's own transaction: effects in the same database happen exactly once.
///
/// An error of the database about the data (class 22 or 23, or one that a trigger raised), or a
/// [`BadTarget`](milepost_core::bulk::run::BadTarget), makes the chunk be tried again in smaller parts, until the
/// targets to blame are found; those are kept as failures and the others applied. Any other error fails the attempt.
#[async_trait]
pub trait ChunkHandler: Send + Sync {
    /// The columns that it reads of each target: a source that does not select them all is refused before any chunk.
    fn columns(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Does it. The transaction is not the handler's to end.
    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause>;
}

/// Makes a job of every target, keyed by the run and the target, so that none is made twice.
#[derive(Clone, Debug)]
pub struct ChildJobs {
    /// What the jobs are like; their payload is the target, as the source selects it.
    pub template: NewJob,
}

#[async_trait]
impl ChunkHandler for ChildJobs {
    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause> {
        let jobs = chunk.child_jobs(&self.template)?;
        enqueue::enqueue_many(connection, &jobs).await?;
        Ok(())
    }
}

/// Emits an event for every target, whose id comes of the run and the target, so that none is emitted twice.
#[derive(Clone, Debug)]
pub struct ChildEvents {
    /// What the events are like.
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

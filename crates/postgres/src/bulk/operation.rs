//! Operator actions on many jobs.

use async_trait::async_trait;
use milepost_core::bulk::operation::{OperateJobs, OperateTarget, blame};
use milepost_core::bulk::run::Chunk;
use milepost_core::error::{Cause, StoreError};
use sqlx::PgConnection;

use super::handler::ChunkHandler;
use crate::admin;
use crate::error::change_error;
use crate::store::PostgresStore;

/// Applies the operation in the run's [parameters](OperateJobs) to each job of a chunk, in the chunk's transaction. It is
/// the handler of the bulk job [`milepost.operate`](milepost_core::bulk::operation::definition).
#[derive(Clone, Debug)]
pub struct Operations {
    /// Place that errors name.
    place: String,
}

impl Operations {
    /// Creates the handler for jobs of this store.
    #[must_use]
    pub fn new(store: &PostgresStore) -> Self {
        Self { place: store.inner.place.clone() }
    }
}

#[async_trait]
impl ChunkHandler for Operations {
    fn columns(&self) -> Vec<&str> {
        vec!["job"]
    }

    async fn apply(&self, chunk: &Chunk<'_>, connection: &mut PgConnection) -> Result<(), Cause> {
        let operation = serde_json::from_str::<OperateJobs>(chunk.payload)?.operation();
        let mut targets = chunk.rows::<OperateTarget>()?;
        // In the order in which all other statements lock jobs.
        targets.sort_unstable();
        for OperateTarget { job } in targets {
            let changed = admin::change(job, &operation).execute(&mut *connection).await;
            if let Err(error) = changed {
                return Err(blamed(change_error(&self.place, job, operation.verb, error)));
            }
        }
        Ok(())
    }
}

fn blamed(error: StoreError) -> Cause {
    match blame(error) {
        Ok(bad) => bad.into(),
        Err(StoreError::Database { cause, .. } | StoreError::Unavailable { cause, .. }) => cause,
        Err(error) => error.into(),
    }
}

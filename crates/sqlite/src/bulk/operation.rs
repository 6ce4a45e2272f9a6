//! Operators' verbs on many jobs, as a bulk job.

use milepost_core::bulk::operation::{OperateJobs, OperateTarget, blame};
use milepost_core::bulk::run::Chunk;
use milepost_core::error::Cause;
use rusqlite::Transaction;

use super::handler::ChunkHandler;
use crate::error::Failure;
use crate::operate::operate;

/// Applies the operation in the run's [parameters](OperateJobs) to each job of a chunk, in the chunk's transaction; for the bulk job
/// [`milepost.operate`](milepost_core::bulk::operation::definition).
#[derive(Clone, Copy, Debug)]
pub struct Operations;

impl ChunkHandler for Operations {
    fn columns(&self) -> Vec<&str> {
        vec!["job"]
    }

    fn apply(&self, chunk: &Chunk<'_>, tx: &Transaction<'_>) -> Result<(), Cause> {
        let operation = serde_json::from_str::<OperateJobs>(chunk.payload)?.operation();
        for OperateTarget { job } in chunk.rows::<OperateTarget>()? {
            operate(tx, job, &operation).map_err(blamed)?;
        }
        Ok(())
    }
}

fn blamed(failure: Failure) -> Cause {
    match failure {
        Failure::Sql(error) => error.into(),
        Failure::Told(error) => match blame(error) {
            Ok(bad) => bad.into(),
            Err(error) => error.into(),
        },
    }
}

//! Bulk jobs whose chunks are passed to a function: a chunk is read, passed to the function, then marked as done.

use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::Chunked;
use milepost_core::port::{BulkRun, StoreResult};
use serde_json::value::RawValue;

use super::Perform;
use crate::context::Context;
use crate::outcome::{JobError, Outcome};

/// A function that applies chunks, for one run.
pub(super) struct Elsewhere<'a> {
    pub(super) perform: &'a Perform,
    pub(super) context: &'a Context,
    /// How many chunks were done before.
    pub(super) chunks: u64,
}

/// The payload of the function.
#[derive(serde::Serialize)]
struct Payload<'a> {
    bulk_id: String,
    params: &'a RawValue,
    rows: Vec<Box<RawValue>>,
}

impl Elsewhere<'_> {
    /// Reads the next chunk, passes it to the function, and marks it as done.
    pub(super) async fn chunk(&self, run: &mut dyn BulkRun, rows: u32) -> StoreResult<Chunked> {
        let rows = match run.read(rows).await? {
            Ok(rows) => rows,
            Err(verb) => return Ok(Chunked::Stopped(verb)),
        };
        if !rows.is_empty() {
            match self.hand_out(rows).await {
                Ok(Outcome::Done | Outcome::Result(_) | Outcome::Completed) => {}
                Ok(Outcome::Snooze(after)) => {
                    return Err(not_applied(JobError::retryable("snoozed", "not now").after(after)));
                }
                Ok(Outcome::Yield { after, note }) => {
                    return Err(not_applied(JobError::retryable("yielded", note).after(after)));
                }
                Ok(Outcome::Stopped) => {
                    return Err(not_applied(JobError::retryable("stopped", "stopped by its handler")));
                }
                Err(error) => return Err(not_applied(error)),
            }
        }
        run.pass().await
    }

    /// Calls the function with a chunk and returns its answer.
    fn hand_out(&self, rows: Vec<String>) -> BoxFuture<'static, Result<Outcome, JobError>> {
        match self.payload(rows) {
            Ok(payload) => (self.perform)(self.context.for_chunk(self.chunks, payload)),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn payload(&self, rows: Vec<String>) -> Result<String, JobError> {
        let rows: Result<Vec<_>, _> = rows.into_iter().map(RawValue::from_string).collect();
        let params: &RawValue = serde_json::from_str(&self.context.job().payload)?;
        let bulk_id = self.context.run().job.to_string();
        Ok(serde_json::to_string(&Payload { bulk_id, params, rows: rows? })?)
    }
}

fn not_applied(error: JobError) -> milepost_core::error::StoreError {
    let JobError { code, message, retryable, retry_after } = error;
    InvalidBulk::NotApplied { code, message, retryable, retry_after }.into()
}

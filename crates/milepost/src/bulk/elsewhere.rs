//! Bulk jobs whose chunks are passed to a function: a chunk is read, passed to the function, then marked as done.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Chunked, Rest, Surveyed};
use milepost_core::job::NewJob;
use milepost_core::port::{BulkReader, BulkRun, StoreResult};
use serde_json::value::RawValue;

use super::Perform;
use crate::context::Context;
use crate::outcome::{JobError, Outcome};

/// A run whose chunks are passed to a function.
pub(super) struct Elsewhere {
    pub(super) reader: Box<dyn BulkReader>,
    pub(super) perform: Arc<Perform>,
    pub(super) context: Context,
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

impl Elsewhere {
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

#[async_trait]
impl BulkRun for Elsewhere {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.reader.survey().await
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        let rows = match self.reader.read(rows).await? {
            Ok(rows) => rows,
            Err(verb) => return Ok(Chunked::Stopped(verb)),
        };
        if !rows.is_empty() {
            let handed_out = self.hand_out(rows);
            match handed_out.await {
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
        let passed = self.reader.pass().await;
        self.chunks += u64::from(passed.is_ok());
        passed
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.reader.rest(rest).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.reader.end(then).await
    }
}

fn not_applied(error: JobError) -> milepost_core::error::StoreError {
    let JobError { code, message, retryable, retry_after } = error;
    InvalidBulk::NotApplied { code, message, retryable, retry_after }.into()
}

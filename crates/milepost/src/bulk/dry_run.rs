//! Dry runs, as jobs of a kind for each bulk job, which its workers run.

use std::sync::Arc;

use futures::FutureExt;
use milepost_core::bulk::dry_run::{Bill, DryRun};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Rehearsal, Total};
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::port::StoreResult;

use super::runner::job_error;
use super::{Bulk, Perform};
use crate::context::Context;
use crate::outcome::{JobError, Outcome};

/// Returns the handler of the dry runs of a bulk job.
pub(crate) fn perform(bulk: Bulk) -> Arc<Perform> {
    let bulk = Arc::new(bulk);
    Arc::new(move |context| run(bulk.clone(), context).boxed())
}

async fn run(bulk: Arc<Bulk>, context: Context) -> Result<Outcome, JobError> {
    let dry_run: DryRun = serde_json::from_str(&context.job().payload)
        .map_err(|error| JobError::fatal("payload", format!("the payload is no dry run: {error}")))?;
    if dry_run.bulk != bulk.definition.name {
        let message = format!("the payload is of the bulk job {}, and the kind is not", dry_run.bulk);
        return Err(JobError::fatal("payload", message));
    }
    tokio::select! {
        rehearsal = bulk.rehearse(&dry_run) => {
            let rehearsal = rehearsal.map_err(job_error)?;
            Outcome::result(&Bill::of(&rehearsal, bulk.definition.load))
        }
        () = context.cancellation().cancelled() => Ok(Outcome::Stopped),
    }
}

impl Bulk {
    /// Applies a few chunks and rolls them back.
    async fn rehearse(&self, dry_run: &DryRun) -> StoreResult<Rehearsal> {
        let refuse = StoreError::Bulk;
        dry_run.check(&self.definition).map_err(refuse)?;
        self.definition.check_parameters(&dry_run.parameters).map_err(refuse)?;
        if self.perform.is_some() {
            let why = "a function applies its chunks, and cannot be rolled back";
            return Err(refuse(InvalidBulk::NoDryRun { why }));
        }
        let payload =
            serde_json::to_string(&dry_run.parameters).map_err(|_| refuse(InvalidBulk::NotAnObject))?;
        let run = Run { job: JobId::new(), token: RunToken(0) };
        let order = Order { run, payload, nominal_at: None };
        let mut rehearsal = self.work.rehearse(&order, &dry_run.trial()).await?;
        if let Some(file) = &dry_run.file {
            // Only the first rows of the file are here.
            rehearsal.total = Some(Total { rows: file.total, exact: true });
        }
        Ok(rehearsal)
    }
}

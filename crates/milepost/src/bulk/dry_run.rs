//! Dry runs, as jobs of the built-in kind that every worker with bulk jobs runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use milepost_core::bulk::dry_run::{Bill, DryRun, SEARCH_MAX};
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::{Order, Rehearsal, Total};
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, Run, RunToken};
use milepost_core::port::{Store, StoreResult};

use super::runner::job_error;
use super::{Bulk, Perform};
use crate::context::Context;
use crate::outcome::{JobError, Outcome};

/// The delay after which a dry run that another worker must perform can be claimed again.
const PASS_ON: Duration = Duration::from_secs(2);

/// Returns the handler of the dry runs of these bulk jobs.
pub(crate) fn perform(bulks: Arc<BTreeMap<String, Bulk>>, store: Arc<dyn Store>) -> Arc<Perform> {
    Arc::new(move |context| run(bulks.clone(), store.clone(), context).boxed())
}

async fn run(
    bulks: Arc<BTreeMap<String, Bulk>>,
    store: Arc<dyn Store>,
    context: Context,
) -> Result<Outcome, JobError> {
    let dry_run: DryRun = serde_json::from_str(&context.job().payload)
        .map_err(|error| JobError::fatal("payload", format!("the payload is no dry run: {error}")))?;
    let Some(bulk) = bulks.get(&dry_run.bulk) else {
        return pass_on(&dry_run.bulk, store.as_ref(), &context).await;
    };
    tokio::select! {
        rehearsal = bulk.rehearse(&dry_run) => {
            let rehearsal = rehearsal.map_err(job_error)?;
            Outcome::result(&Bill::of(&rehearsal, bulk.definition.load))
        }
        () = context.cancellation().cancelled() => Ok(Outcome::Stopped),
    }
}

/// Leaves the dry run to a worker that runs its bulk job, if one is found in time.
async fn pass_on(name: &str, store: &dyn Store, context: &Context) -> Result<Outcome, JobError> {
    let waited = store.clock().await?.now.duration_since(context.job().created_at).unsigned_abs();
    if waited > SEARCH_MAX {
        let message = format!("no worker was found that runs the bulk job {name}");
        return Err(JobError::fatal("no_such_bulk_job", message));
    }
    Ok(Outcome::Yield { after: PASS_ON, note: format!("this worker does not run the bulk job {name}") })
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

//! Operations on many jobs: the bulk job that changes each of them. Used by the API and the console.

use milepost_core::bulk::operation::{self, OperateJobs, OperateTarget};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::transition::Verb;

use crate::problem::{Code, Problem};

/// Number of jobs that are staged at a time.
const PAGE: usize = 1000;

/// Builds the bulk job that applies the operation.
pub(crate) fn job(operation: &OperateJobs) -> Result<NewJob, Problem> {
    let definition = operation::definition().map_err(|e| failed(&e))?;
    Ok(definition.direct(NewJob::new(operation::NAME, operation).map_err(|e| failed(&e))?))
}

fn failed(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::InvalidBody, error.to_string())
}

/// Stages these jobs as targets and starts the bulk job. Returns its id, or that of an existing bulk job with the same key.
pub(crate) async fn start(
    store: &dyn Store,
    verb: Verb,
    job: &NewJob,
    jobs: &[JobId],
) -> Result<JobId, Problem> {
    let mut staging = store.stage_bulk(&operation::title(verb, jobs.len())).await?;
    for some in jobs.chunks(PAGE) {
        let row = |&job: &JobId| serde_json::to_string(&OperateTarget { job });
        let rows: Result<Vec<String>, _> = some.iter().map(row).collect();
        staging.add(rows.map_err(|e| failed(&e))?).await?;
    }
    Ok(staging.start(job).await?.job)
}

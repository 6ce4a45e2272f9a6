//! Operations on many jobs: finds the jobs and starts a bulk job that changes each of them. Used by the API and the console.

use milepost_core::bulk::operation::{self, OperateJobs, OperateTarget};
use milepost_core::ident::JobId;
use milepost_core::job::NewJob;
use milepost_core::port::Store;
use milepost_core::search::JobSearch;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;

use crate::problem::Problem;

/// Maximum number of jobs of one operation.
pub(crate) const JOBS_MAX: usize = 100_000;
/// Number of jobs read by one query.
const PAGE: u32 = 1000;

/// Returns all matching jobs with their states, oldest first.
pub(crate) async fn find(store: &dyn Store, search: JobSearch) -> Result<Vec<(JobId, JobState)>, Problem> {
    let (mut search, mut jobs) = (JobSearch { limit: PAGE, ..search }, Vec::new());
    loop {
        let found = store.search_jobs(&search).await?;
        jobs.extend(found.rows.iter().map(|row| (row.id, row.state)));
        if jobs.len() > JOBS_MAX {
            let words = format!("more than {JOBS_MAX} jobs match; narrow the filter, for example by a time");
            return Err(Problem::unprocessable("too_many_jobs", words).at("filter"));
        }
        match found.next {
            Some(next) => search.before = Some(next),
            None => break,
        }
    }
    jobs.reverse();
    Ok(jobs)
}

/// Builds the bulk job that applies the operation.
pub(crate) fn job(operation: &OperateJobs) -> Result<NewJob, Problem> {
    let definition = operation::definition().map_err(|e| failed(&e))?;
    Ok(definition.direct(NewJob::new(operation::NAME, operation).map_err(|e| failed(&e))?))
}

fn failed(error: &dyn std::fmt::Display) -> Problem {
    Problem::unprocessable("invalid_body", error.to_string())
}

/// Stages these jobs as targets and starts the bulk job. Returns its id, or that of an existing bulk job with the same key.
pub(crate) async fn start(
    store: &dyn Store,
    verb: Verb,
    job: &NewJob,
    jobs: &[JobId],
) -> Result<JobId, Problem> {
    let name = format!("{verb} of {} jobs", jobs.len());
    let mut staging = store.stage_bulk(&name).await?;
    for some in jobs.chunks(PAGE as usize) {
        let row = |&job: &JobId| serde_json::to_string(&OperateTarget { job });
        let rows: Result<Vec<String>, _> = some.iter().map(row).collect();
        staging.add(rows.map_err(|e| failed(&e))?).await?;
    }
    Ok(staging.start(job).await?.job)
}

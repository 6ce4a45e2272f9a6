//! The state of a job, for clients that have its id.

use axum::Json;
use axum::extract::{Path, State};
use milepost::{AdminStore, JobId, JobState};
use milepost_postgres::PostgresStore;
use serde::{Deserialize, Serialize};

use crate::error::ServiceError;

/// The state of a job.
#[derive(Debug, Serialize, Deserialize)]
pub struct Standing {
    /// The id of the job.
    pub job: JobId,
    /// `pending`, `running`, `succeeded`, …
    pub state: JobState,
    /// The number of attempts so far.
    pub attempt: u32,
}

/// `GET /jobs/{id}`
pub(crate) async fn show(
    State(store): State<PostgresStore>,
    Path(job): Path<JobId>,
) -> Result<Json<Standing>, ServiceError> {
    let row = store.job(job).await?.ok_or(ServiceError::NoSuchJob(job))?.row;
    Ok(Json(Standing { job, state: row.state, attempt: row.attempt }))
}

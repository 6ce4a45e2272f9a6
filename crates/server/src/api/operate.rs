//! Doing something to one job.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Operation, Store};
use milepost_core::transition::Verb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(operate_job))
}

/// What is to be done, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperateRequest {
    /// What.
    operation: JobOperation,
    /// How long a running job gets to stop by itself, in milliseconds (cancel, abort). The default is 10 seconds.
    grace_ms: Option<u64>,
    /// Not to be claimed before so many milliseconds have passed (snooze, which needs it; retry, resume, rerun).
    delay_ms: Option<u64>,
    /// Why; stands in the job's history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum JobOperation {
    /// It ends as canceled; one that runs is asked to stop.
    Cancel,
    /// It stops and can be resumed; one that runs is asked to stop.
    Abort,
    /// An aborted job goes on.
    Resume,
    /// A failed job, one that waits for its next attempt or an aborted one runs as soon as a worker is free.
    Retry,
    /// A job that ended begins anew.
    Rerun,
    /// A waiting job waits longer.
    Snooze,
    /// A waiting job ends as skipped.
    Skip,
    /// A job that waits or has failed ends as succeeded.
    Mark,
    /// A blocked job is not blocked any more.
    Release,
}

/// How long a running job gets to stop by itself when nobody says.
const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct OperateAnswer {
    /// The job's state now, or `stop_requested`: its worker was asked to stop it.
    #[schema(examples("canceled", "stop_requested"))]
    outcome: String,
}

/// Do something to a job
///
/// Cancel, abort, resume, retry, rerun, snooze, skip, mark or release it. 409 when its state does not allow it.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/operate", tag = "jobs", params(("id" = JobId, Path, description = "The job")),
    request_body = OperateRequest, responses((status = 200, body = OperateAnswer)), security(("token" = ["operator"]))
)]
async fn operate_job(
    State(app): State<App>,
    Path(id): Path<JobId>,
    Body(request): Body<OperateRequest>,
) -> Result<Json<OperateAnswer>, Problem> {
    let operation = Operation {
        verb: verb(app.store.as_ref(), id, request.operation).await?,
        grace: request.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis),
        delay: delay(&request)?,
        note: request.reason,
    };
    let outcome = match app.store.operate(id, &operation).await? {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "stop_requested".to_owned(),
    };
    Ok(Json(OperateAnswer { outcome }))
}

fn delay(request: &OperateRequest) -> Result<Duration, Problem> {
    match request.delay_ms {
        Some(delay_ms) => Ok(Duration::from_millis(delay_ms)),
        None if request.operation == JobOperation::Snooze => {
            Err(Problem::unprocessable("invalid_body", "a snooze needs delay_ms: for how long")
                .at("delay_ms"))
        }
        None => Ok(Duration::ZERO),
    }
}

async fn verb(store: &dyn Store, id: JobId, operation: JobOperation) -> Result<Verb, Problem> {
    Ok(match operation {
        JobOperation::Cancel => Verb::Cancel,
        JobOperation::Abort => Verb::Abort,
        JobOperation::Resume => Verb::Resume,
        JobOperation::Retry => {
            let view = store.job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
            // Where none fits, the store says that it cannot be.
            Verb::that_retries(view.row.state).unwrap_or(Verb::RetryNow)
        }
        JobOperation::Rerun => Verb::Rerun,
        JobOperation::Snooze => Verb::Snooze,
        JobOperation::Skip => Verb::Skip,
        JobOperation::Mark => Verb::Mark,
        JobOperation::Release => Verb::Release,
    })
}

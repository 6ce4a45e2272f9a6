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

use crate::actor::RequestActor;
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
#[schema(as = OperateRequest)]
pub(super) struct Settings {
    /// What.
    pub(super) operation: JobOperation,
    /// How long a running job gets to stop by itself, in milliseconds (cancel, abort). The default is 10 seconds.
    pub(super) grace_ms: Option<u64>,
    /// Not to be claimed before so many milliseconds have passed (snooze, which needs it; retry, resume, rerun).
    pub(super) delay_ms: Option<u64>,
    /// Why; stands in the job's history and in the audit.
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// What can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobOperation {
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
pub(super) const GRACE_DEFAULT: Duration = Duration::from_secs(10);

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
    request_body = Settings, responses((status = 200, body = OperateAnswer)), security(("token" = ["operator"]))
)]
async fn operate_job(
    State(app): State<App>,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<Settings>,
) -> Result<Json<OperateAnswer>, Problem> {
    let actor = actor.because(request.reason.as_deref())?;
    let operation = request.operation(verb(app.store.as_ref(), id, request.operation).await?)?;
    Ok(Json(OperateAnswer { outcome: outcome(app.acting(actor).operate(id, &operation).await?) }))
}

/// What became of an operation, as answers say it.
pub(super) fn outcome(operated: Operated) -> String {
    match operated {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "stop_requested".to_owned(),
    }
}

impl Settings {
    /// The operation, as this verb.
    pub(super) fn operation(&self, verb: Verb) -> Result<Operation, Problem> {
        Ok(Operation {
            verb,
            grace: self.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis),
            delay: self.delay()?,
            note: self.reason.clone(),
        })
    }

    fn delay(&self) -> Result<Duration, Problem> {
        match self.delay_ms {
            Some(delay_ms) => Ok(Duration::from_millis(delay_ms)),
            None if self.operation == JobOperation::Snooze => {
                Err(Problem::unprocessable("invalid_body", "a snooze needs delay_ms: for how long")
                    .at("delay_ms"))
            }
            None => Ok(Duration::ZERO),
        }
    }
}

impl JobOperation {
    /// What it is to a job; a retry depends on the job's state.
    pub(super) const fn verb(self) -> Verb {
        match self {
            Self::Cancel => Verb::Cancel,
            Self::Abort => Verb::Abort,
            Self::Resume => Verb::Resume,
            Self::Retry => Verb::RetryNow,
            Self::Rerun => Verb::Rerun,
            Self::Snooze => Verb::Snooze,
            Self::Skip => Verb::Skip,
            Self::Mark => Verb::Mark,
            Self::Release => Verb::Release,
        }
    }
}

async fn verb(store: &dyn Store, id: JobId, operation: JobOperation) -> Result<Verb, Problem> {
    if operation != JobOperation::Retry {
        return Ok(operation.verb());
    }
    let view = store.job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
    // Where none fits, the store says that it cannot be.
    Ok(Verb::that_retries(view.row.state).unwrap_or(Verb::RetryNow))
}

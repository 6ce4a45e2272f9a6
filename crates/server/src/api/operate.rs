//! Operations on one job.

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

/// The operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OperateRequest)]
pub(super) struct Settings {
    /// The operation.
    pub(super) operation: JobOperation,
    /// Grace period for a running job to stop, in milliseconds (cancel, abort). The default is 10 seconds.
    pub(super) grace_ms: Option<u64>,
    /// Delay before the job can be claimed, in milliseconds (required for snooze; optional for retry, resume, rerun).
    pub(super) delay_ms: Option<u64>,
    /// The reason, for the job's history and the audit log.
    #[schema(max_length = 1000)]
    pub(super) reason: Option<String>,
}

/// An operation on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum JobOperation {
    /// Ends the job as canceled. A running job is asked to stop.
    Cancel,
    /// Stops the job, which can be resumed. A running job is asked to stop.
    Abort,
    /// Resumes an aborted job.
    Resume,
    /// Makes a failed or aborted job, or one that waits for its next attempt, run as soon as a worker is free.
    Retry,
    /// Runs an ended job again from the beginning.
    Rerun,
    /// Delays a waiting job.
    Snooze,
    /// Ends a waiting job as skipped.
    Skip,
    /// Ends a waiting or failed job as succeeded.
    Mark,
    /// Unblocks a blocked job.
    Release,
}

/// Default grace period in which a running job may stop.
pub(super) const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct OperateAnswer {
    /// The new state of the job, or `stop_requested`: its worker was asked to stop it.
    #[schema(examples("canceled", "stop_requested"))]
    outcome: String,
}

/// Operate on a job
///
/// Cancel, abort, resume, retry, rerun, snooze, skip, mark or release it. 409 when its state does not allow the operation.
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

/// Returns the result of an operation as text.
pub(super) fn outcome(operated: Operated) -> String {
    match operated {
        Operated::Done(state) => state.to_string(),
        Operated::StopRequested => "stop_requested".to_owned(),
    }
}

impl Settings {
    /// Returns the operation with this verb.
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
                Err(Problem::unprocessable("invalid_body", "a snooze needs delay_ms, its duration")
                    .at("delay_ms"))
            }
            None => Ok(Duration::ZERO),
        }
    }
}

impl JobOperation {
    /// Returns the verb of the operation. For a retry, the verb depends on the job's state.
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
    // If no verb fits the state, the store refuses the operation.
    Ok(Verb::that_retries(view.row.state).unwrap_or(Verb::RetryNow))
}

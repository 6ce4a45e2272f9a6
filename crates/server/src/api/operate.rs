//! Operations on one job.

use std::time::Duration;

use axum::Json;
use milepost_core::actions::GRACE_DEFAULT;
use milepost_core::actions::job::{Inputs, JobAction};
use milepost_core::duration::whole_ms;
use milepost_core::ident::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(operate_job))
}

/// The operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperateRequest {
    /// The operation.
    operation: JobAction,
    /// Grace period for a running job to stop, in milliseconds (cancel, abort).
    #[schema(default = grace_default_ms)]
    grace_ms: Option<u64>,
    /// Delay before the job can be claimed, in milliseconds (required for snooze; optional for retry, resume, rerun).
    delay_ms: Option<u64>,
    /// The reason, for the job's history and the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Returns the default grace period, for the OpenAPI document.
pub(super) fn grace_default_ms() -> i64 {
    whole_ms(GRACE_DEFAULT)
}

/// Returns the inputs of an action on a job that a request contains.
pub(super) fn inputs(grace_ms: Option<u64>, delay_ms: Option<u64>, reason: Option<String>) -> Inputs {
    Inputs { grace: grace_ms.map(Duration::from_millis), delay: delay_ms.map(Duration::from_millis), reason }
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct OperateAnswer {
    /// The new state of the job, or `stop_requested`: its worker was asked to stop it.
    #[schema(examples("canceled", "stop_requested"))]
    outcome: &'static str,
}

/// Operate on a job
///
/// 409 when the state of the job does not allow the operation; `detail` names the states that do.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/operate", tag = "jobs", params(("id" = JobId, Path, description = "The job")),
    request_body = OperateRequest, responses((status = 200, body = OperateAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn operate_job(
    app: App,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<OperateRequest>,
) -> Result<Json<OperateAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let inputs = inputs(request.grace_ms, request.delay_ms, request.reason);
    let operated = app.perform(request.operation, id, &inputs, store.as_ref()).await?;
    Ok(Json(OperateAnswer { outcome: operated.as_str() }))
}

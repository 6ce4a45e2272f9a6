//! Aborting, resuming and canceling runs of bulk jobs; retrying failed targets.

use axum::Json;
use milepost_core::actions::bulk_run::RunAction;
use milepost_core::ident::JobId;
use milepost_core::port::Operated;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::run;
use crate::actor::{RequestActor, Why};
use crate::api::operate::{grace_default_ms, inputs};
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(operate_bulk_run)).routes(routes!(retry_bulk_failures))
}

/// The operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunOperateRequest {
    /// The operation.
    operation: RunAction,
    /// Grace period for the current chunk before its worker loses the run, in milliseconds (abort, cancel).
    #[schema(default = grace_default_ms)]
    grace_ms: Option<u64>,
    /// Whether to stop the statement of the current chunk, which is then rolled back (abort).
    #[serde(default)]
    hard: bool,
    /// The reason, for the job's history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct RunOperated {
    /// The new state of the run, or `stop_requested`: no further chunk starts.
    #[schema(examples("aborted", "stop_requested"))]
    outcome: &'static str,
    /// Whether a statement was stopped (abort with `hard`).
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
}

/// Operate on a run of a bulk job
///
/// Abort, resume or cancel it. 409 when its state does not allow the operation.
#[utoipa::path(
    post, path = "/v1/bulk-runs/{id}/operate", tag = "bulk jobs", params(("id" = JobId, Path, description = "The run")),
    request_body = RunOperateRequest, responses((status = 200, body = RunOperated)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn operate_bulk_run(
    app: App,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<RunOperateRequest>,
) -> Result<Json<RunOperated>, Problem> {
    if request.hard && request.operation != RunAction::Abort {
        return Err(Problem::new(Code::InvalidBody, "only an abort can be hard; omit it").at("hard"));
    }
    let store = app.acting(actor.because(request.reason.as_deref())?);
    run(id, app.store.as_ref()).await?;
    let inputs = inputs(request.grace_ms, None, request.reason);
    let operated = app.perform(request.operation.of_job(), id, &inputs, store.as_ref()).await?;
    // Request the stop before the interruption: otherwise the run could begin another chunk in between.
    let interrupted = match operated {
        Operated::StopRequested if request.hard => Some(store.interrupt_bulk(id).await?),
        _ => request.hard.then_some(false),
    };
    Ok(Json(RunOperated { outcome: operated.as_str(), interrupted }))
}

/// The run over the failed targets.
#[derive(Debug, Serialize, ToSchema)]
struct RetryRun {
    /// Its id.
    id: JobId,
}

/// Retry failed targets
///
/// Starts a run in the same group and with the same parameters, over the failed targets that no other run retries.
#[utoipa::path(
    post, path = "/v1/bulk-runs/{id}/retry-failures", tag = "bulk jobs",
    params(("id" = JobId, Path, description = "The run"), Why),
    responses((status = 200, body = RetryRun)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn retry_bulk_failures(
    app: App,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Query(why): Query<Why>,
) -> Result<Json<RetryRun>, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    let started = store.retry_bulk_failures(id).await?;
    Ok(Json(RetryRun { id: started.job }))
}

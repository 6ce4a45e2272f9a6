//! Stopping runs of bulk jobs, and letting them go on.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Operation};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::run;
use crate::actor::{RequestActor, Why};
use crate::api::operate::{GRACE_DEFAULT, outcome};
use crate::app::App;
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(operate_bulk_run)).routes(routes!(retry_bulk_failures))
}

/// What is to be done, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunOperateRequest {
    /// What.
    operation: RunOperation,
    /// How long the chunk in hand may take before its worker loses the run, in milliseconds (abort, cancel). The default is 10 seconds.
    grace_ms: Option<u64>,
    /// Whether its statement is stopped, so that it rolls back (abort).
    #[serde(default)]
    hard: bool,
    /// Why; stands in the job's history.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done to a run of a bulk job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RunOperation {
    /// No further chunk starts; it can be resumed.
    Abort,
    /// One that was aborted or has failed goes on after the last target that is done.
    Resume,
    /// What is done stays; the rest is never done.
    Cancel,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct RunOperated {
    /// The run's state now, or `stop_requested`: no further chunk starts.
    #[schema(examples("aborted", "stop_requested"))]
    outcome: String,
    /// Whether a statement was stopped (abort with `hard`).
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
}

/// Do something to a run of a bulk job
///
/// Abort, resume or cancel it. 409 when its state does not allow it.
#[utoipa::path(
    post, path = "/v1/bulk-runs/{id}/operate", tag = "bulk jobs", params(("id" = JobId, Path, description = "The run")),
    request_body = RunOperateRequest, responses((status = 200, body = RunOperated)), security(("token" = ["operator"]))
)]
async fn operate_bulk_run(
    State(app): State<App>,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<RunOperateRequest>,
) -> Result<Json<RunOperated>, Problem> {
    if request.hard && request.operation != RunOperation::Abort {
        return Err(Problem::unprocessable("invalid_body", "only an abort is hard").at("hard"));
    }
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let view = run(id, app.store.as_ref()).await?;
    let verb = match (request.operation, view.state) {
        (RunOperation::Abort, _) => Verb::Abort,
        (RunOperation::Cancel, _) => Verb::Cancel,
        (RunOperation::Resume, JobState::Failed) => Verb::RetryNow,
        (RunOperation::Resume, _) => Verb::Resume,
    };
    let grace = request.grace_ms.map_or(GRACE_DEFAULT, Duration::from_millis);
    let operation = Operation { note: request.reason, ..Operation::new(verb) }.grace(grace);
    let operated = store.operate(id, &operation).await?;
    // Asked first, interrupted afterwards: the run may not begin a chunk in between.
    let interrupted = match operated {
        Operated::StopRequested if request.hard => Some(store.interrupt_bulk(id).await?),
        _ => request.hard.then_some(false),
    };
    Ok(Json(RunOperated { outcome: outcome(operated), interrupted }))
}

/// The run over what failed.
#[derive(Debug, Serialize, ToSchema)]
struct RetryRun {
    /// Its id.
    id: JobId,
}

/// Try failed targets again
///
/// A new run, in the same group and with the same parameters, over those that are not tried again already.
#[utoipa::path(
    post, path = "/v1/bulk-runs/{id}/retry-failures", tag = "bulk jobs",
    params(("id" = JobId, Path, description = "The run"), Why),
    responses((status = 200, body = RetryRun)), security(("token" = ["operator"]))
)]
async fn retry_bulk_failures(
    State(app): State<App>,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Query(why): Query<Why>,
) -> Result<Json<RetryRun>, Problem> {
    let store = app.acting(actor.because_in_query(why.reason.as_deref())?);
    let started = store.retry_bulk_failures(id).await?;
    Ok(Json(RetryRun { id: started.job }))
}

//! Operations on a schedule.

use axum::Json;
use milepost_core::actions::schedule::ScheduleAction;
use milepost_core::error::StoreError;
use milepost_core::schedule::Made;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::idempotency::IdempotencyKey;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(operate_schedule))
}

/// The operation and its parameters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleOperateRequest {
    /// The operation.
    operation: ScheduleAction,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct ScheduleOperated {
    /// Whether anything changed.
    changed: bool,
    /// The job or batch that was created (run_now), or that already existed under the key of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<Made>,
}

/// Operate on a schedule
///
/// Pause it, resume it, or run it now. With the header `Idempotency-Key`, `run_now` can be repeated safely: it creates one job or one
/// batch, from the schedule as it was at the first request.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/operate", tag = "schedules",
    params(("name" = String, Path, description = "The schedule"), IdempotencyKey), request_body = ScheduleOperateRequest, responses((status = 200, body = ScheduleOperated)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn operate_schedule(
    app: App,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Path(name): Path<String>,
    Body(request): Body<ScheduleOperateRequest>,
) -> Result<Json<ScheduleOperated>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let (changed, made) = match request.operation {
        ScheduleAction::Pause => {
            let changed = store.pause_schedule(&name).await?;
            if !changed && store.schedule(&name).await?.is_none() {
                return Err(StoreError::NoSuchSchedule(name).into());
            }
            (changed, None)
        }
        ScheduleAction::Resume => (store.resume_schedule(&name).await?, None),
        ScheduleAction::RunNow => {
            let made = store.run_schedule_now(&name, idempotency.id(0)).await?;
            (!made.is_duplicate(), Some(made))
        }
    };
    Ok(Json(ScheduleOperated { changed, made }))
}

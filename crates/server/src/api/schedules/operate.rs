//! Doing something to a schedule.

use axum::Json;
use axum::extract::State;
use milepost_core::error::StoreError;
use milepost_core::schedule::Made;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::idempotency::IdempotencyKey;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(operate_schedule))
}

/// What is to be done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleOperateRequest {
    /// What.
    operation: ScheduleOperation,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// What can be done to a schedule.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ScheduleOperation {
    /// It does not tick until it goes on.
    Pause,
    /// It goes on with its next tick from now; those that came meanwhile are dropped.
    Resume,
    /// Its job or batch is made at once, beside its ticks and even while it is paused.
    RunNow,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
struct ScheduleOperated {
    /// Whether that changed anything.
    changed: bool,
    /// What was made (run_now), or was there before under the key of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    made: Option<Made>,
}

/// Do something to a schedule
///
/// Pause it, let it go on, or run it now. With the header `Idempotency-Key` the last can be repeated: it makes one job, or one
/// batch, as the schedule was when it was asked for first.
#[utoipa::path(
    post, path = "/v1/schedules/{name}/operate", tag = "schedules",
    params(("name" = String, Path, description = "The schedule"), IdempotencyKey), request_body = ScheduleOperateRequest, responses((status = 200, body = ScheduleOperated)), security(("token" = ["operator"]))
)]
async fn operate_schedule(
    State(app): State<App>,
    actor: RequestActor,
    idempotency: IdempotencyKey,
    Path(name): Path<String>,
    Body(request): Body<ScheduleOperateRequest>,
) -> Result<Json<ScheduleOperated>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let (changed, made) = match request.operation {
        ScheduleOperation::Pause => {
            let changed = store.pause_schedule(&name).await?;
            if !changed && store.schedule(&name).await?.is_none() {
                return Err(StoreError::NoSuchSchedule(name).into());
            }
            (changed, None)
        }
        ScheduleOperation::Resume => (store.resume_schedule(&name).await?, None),
        ScheduleOperation::RunNow => {
            let made = store.run_schedule_now(&name, idempotency.id(0)).await?;
            (!made.is_duplicate(), Some(made))
        }
    };
    Ok(Json(ScheduleOperated { changed, made }))
}

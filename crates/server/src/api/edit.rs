//! Edits of existing jobs.

use axum::Json;
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::{Priority, StartAt};
use milepost_core::port::JobEdit;
use milepost_core::state::JobState;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::create::{invalid, start};
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(edit_job))
}

/// The fields to change; others stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EditRequest {
    /// The new input: any JSON except null.
    #[serde(default)]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// The new priority within the queue: from 1 (first) to 4 (last).
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// The new maximum number of attempts. A job that waits always has one attempt left.
    #[schema(minimum = 1, maximum = 1_000_000)]
    max_attempts: Option<u32>,
    /// The new delay before the start, in milliseconds from now, of a job that waits. Cannot be combined with `start_at`.
    delay_ms: Option<u64>,
    /// The new earliest start time of a job that waits.
    start_at: Option<Timestamp>,
    /// The reason, for the job's history and the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct EditAnswer {
    /// The state of the job, which the edit did not change. A blocked job whose time has come may have become `pending`.
    state: JobState,
}

/// Edit a job
///
/// Changes the payload or the options of a job that waits, has failed or was aborted. 409 when it runs or has ended.
#[utoipa::path(
    patch, path = "/v1/jobs/{id}", tag = "jobs", params(("id" = JobId, Path, description = "The job")),
    request_body = EditRequest, responses((status = 200, body = EditAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn edit_job(
    app: App,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<EditRequest>,
) -> Result<Json<EditAnswer>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let start = match start(request.delay_ms, request.start_at)? {
        StartAt::Now => None,
        start => Some(start),
    };
    let edit = JobEdit {
        payload: request.payload,
        priority: request.priority,
        start,
        max_attempts: request.max_attempts,
        note: request.reason,
    };
    let state = store.edit_job(id, &edit).await.map_err(|error| match error {
        StoreError::Invalid { invalid: why, .. } => invalid(why),
        other => other.into(),
    })?;
    Ok(Json(EditAnswer { state }))
}

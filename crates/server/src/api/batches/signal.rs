//! Signals for batches.

use axum::Json;
use milepost_core::batch::wait::{NewSignal, Signaled};
use milepost_core::ident::BatchId;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(signal_batch))
}

/// A signal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SignalRequest {
    /// The name that a task of the batch waits for.
    name: String,
    /// The output of that task. The default is `null`.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// The id of the signal: a repeated request with the same id changes nothing. The default is a new id.
    #[schema(min_length = 1, max_length = 200)]
    id: Option<String>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Send a signal to a batch
///
/// The task that waits for the signal succeeds within about a second, with the payload as its output. A signal that comes before the task
/// waits is kept. 404 when no task of the batch waits for a signal with this name. With an `id`, the request can be repeated safely.
#[utoipa::path(
    post, path = "/v1/batches/{id}/signals", tag = "batches", params(("id" = BatchId, Path, description = "The batch")),
    request_body = SignalRequest, responses((status = 200, body = Signaled)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn signal_batch(
    app: App,
    actor: RequestActor,
    Path(id): Path<BatchId>,
    Body(request): Body<SignalRequest>,
) -> Result<Json<Signaled>, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let mut signal = NewSignal::new(id, request.name);
    signal.payload = request.payload.unwrap_or(signal.payload);
    signal.id = request.id.unwrap_or(signal.id);
    let result = store.signal_batch(&signal).await?;
    Ok(Json(Signaled { result }))
}

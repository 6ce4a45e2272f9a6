//! Queues.

use axum::Json;
use milepost_core::job::check_queue;
use milepost_core::listing::QueueView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_queues)).routes(routes!(set_queue))
}

/// List queues
///
/// Every queue that has unfinished jobs, is served or is paused. If counting takes longer than 100 ms, the response is cached for 20 times
/// that time, or until a queue is paused or resumed through this server.
#[utoipa::path(
    get, path = "/v1/queues", tag = "queues", responses((status = 200, body = Vec<QueueView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_queues(app: App) -> Result<Json<Vec<QueueView>>, Problem> {
    Ok(Json(app.queues.get(app.store.queues()).await?))
}

/// The new state of a queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QueueRequest {
    /// Whether the queue is paused.
    paused: bool,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// The result.
#[derive(Debug, Serialize, ToSchema)]
struct QueueAnswer {
    /// Whether anything changed.
    changed: bool,
}

/// Pause or resume a queue
///
/// Running jobs are not affected.
#[utoipa::path(
    put, path = "/v1/queues/{name}", tag = "queues", params(("name" = String, Path, description = "The queue")),
    request_body = QueueRequest, responses((status = 200, body = QueueAnswer)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn set_queue(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<QueueRequest>,
) -> Result<Json<QueueAnswer>, Problem> {
    check_queue(&name)
        .map_err(|invalid| Problem::new(Code::InvalidQueue, invalid.to_string()).at("path name"))?;
    let actor = actor.because(request.reason.as_deref())?;
    let changed = app.acting(actor).pause_queue(&name, request.paused).await;
    app.queues.forget();
    Ok(Json(QueueAnswer { changed: changed? }))
}

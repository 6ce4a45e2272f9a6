//! The list of workers.

use axum::Json;
use milepost_core::worker::WorkerView;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Server};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_workers))
}

/// List workers
///
/// Active workers, and those that stopped within the last day.
#[utoipa::path(
    get, path = "/v1/workers", tag = "workers", responses((status = 200, body = Vec<WorkerView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_workers(app: App) -> Result<Json<Vec<WorkerView>>, Problem> {
    Ok(Json(app.store.workers().await?))
}

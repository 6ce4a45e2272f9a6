//! The current problems of the store.

use axum::Json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Server};
use crate::console::status;
use crate::problem::Problem;
use crate::status_entry::StatusEntry;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(show_status))
}

/// Show the current problems
///
/// The problems that the overview of the console shows, errors first, then the bulk runs and batches in progress. If they take longer than 100 ms
/// to find, the response is cached for 20 times that time.
#[utoipa::path(
    get, path = "/v1/status", tag = "status", responses((status = 200, body = Vec<StatusEntry>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn show_status(app: App) -> Result<Json<Vec<StatusEntry>>, Problem> {
    Ok(Json(app.status.get(status(&app.store)).await?))
}

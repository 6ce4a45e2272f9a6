//! Listing and reading schedules.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::schedule::ScheduleView;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ticks::next_ticks;
use crate::app::App;
use crate::params::Path;
use crate::problem::Problem;

/// Number of upcoming ticks in the response.
const TICKS_SHOWN: usize = 5;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_schedules)).routes(routes!(get_schedule))
}

/// List schedules
///
/// All schedules, ordered by name.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", responses((status = 200, body = Vec<ScheduleView>)),
    security(("token" = ["viewer"]))
)]
async fn list_schedules(State(app): State<App>) -> Result<Response, Problem> {
    let _permit = app.large.permit().await;
    Ok(Json(app.store.schedules().await?).into_response())
}

/// A schedule with its next ticks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScheduleDetail {
    #[serde(flatten)]
    view: ScheduleView,
    /// The next ticks, even if it is paused.
    ticks: Vec<Timestamp>,
}

impl ScheduleDetail {
    pub(super) async fn read(name: &str, store: &dyn Store) -> Result<Self, Problem> {
        let view = store.schedule(name).await?.ok_or_else(|| StoreError::NoSuchSchedule(name.to_owned()))?;
        let now = store.clock().await?.now;
        let ticks = next_ticks(&view.schedule.spec, now, TICKS_SHOWN);
        Ok(Self { view, ticks })
    }
}

/// Get a schedule
///
/// With its next ticks.
#[utoipa::path(
    get, path = "/v1/schedules/{name}", tag = "schedules", params(("name" = String, Path, description = "The schedule")),
    responses((status = 200, body = ScheduleDetail)), security(("token" = ["viewer"]))
)]
async fn get_schedule(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<ScheduleDetail>, Problem> {
    ScheduleDetail::read(&name, app.store.as_ref()).await.map(Json)
}

//! Listing and reading schedules.

use axum::Json;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::port::Store;
use milepost_core::schedule::{Schedule, ScheduleView};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::page;
use crate::app::{App, Server};
use crate::params::{Path, Query, encoded};
use crate::problem::Problem;

/// Number of upcoming ticks in the response.
const TICKS_SHOWN: usize = 5;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_schedules)).routes(routes!(get_schedule))
}

/// List schedules
///
/// Ordered by name. If there are more than `limit`, or more than 4 MiB, the header `Link` has the URL of the next page.
#[utoipa::path(
    get, path = "/v1/schedules", tag = "schedules", params(SchedulesParams),
    responses((status = 200, body = Vec<ScheduleView>, headers(("Link", description = "The next page, with `rel=\"next\"`")))),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_schedules(app: App, Query(params): Query<SchedulesParams>) -> Result<Response, Problem> {
    let limit = page::limit(params.limit.or(Some(page::ROWS_MAX)))?;
    let permit = app.large.permit().await;
    let store = app.store.as_ref();
    let read =
        |after: Option<String>, limit| async move { store.schedules_after(after.as_deref(), limit).await };
    let name = |view: &ScheduleView| view.schedule.name.clone();
    let (views, next) = page::large_rows(&permit, params.after, limit, name, read).await?;
    let next = next.map(|name| encoded(&name));
    Ok((page::next_page("/v1/schedules", next, params.limit), Json(views)).into_response())
}

/// The requested part of the schedules.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SchedulesParams {
    /// Only schedules that follow this name.
    after: Option<String>,
    /// Maximum number of schedules. The default is 1,000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
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
    async fn read(name: &str, store: &dyn Store) -> Result<Self, Problem> {
        let view = store.schedule(name).await?.ok_or_else(|| StoreError::NoSuchSchedule(name.to_owned()))?;
        Ok(Self::of(view, store.clock().await?.now))
    }

    /// Reads a schedule that was stored just now. If somebody else has removed it since, it is as it was stored.
    pub(super) async fn read_stored(schedule: Schedule, store: &dyn Store) -> Result<Self, Problem> {
        let (view, now) = (store.schedule(&schedule.name).await?, store.clock().await?.now);
        Ok(Self::of(view.unwrap_or_else(|| ScheduleView::stored(schedule, now)), now))
    }

    fn of(view: ScheduleView, now: Timestamp) -> Self {
        let ticks = view.schedule.spec.ticks_after(now).take(TICKS_SHOWN).collect();
        Self { view, ticks }
    }
}

/// Get a schedule
///
/// With its next ticks.
#[utoipa::path(
    get, path = "/v1/schedules/{name}", tag = "schedules", params(("name" = String, Path, description = "The schedule")),
    responses((status = 200, body = ScheduleDetail)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_schedule(app: App, Path(name): Path<String>) -> Result<Json<ScheduleDetail>, Problem> {
    ScheduleDetail::read(&name, app.store.as_ref()).await.map(Json)
}

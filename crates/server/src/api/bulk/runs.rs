//! Listing and reading runs of bulk jobs.

use axum::Json;
use axum::response::Response;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::listing::{BulkFilter, BulkView};
use milepost_core::bulk::run::TargetFailure;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::Store;
use milepost_core::state::JobState;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::page::{self, Page, ROWS_MAX};
use crate::app::{App, Server};
use crate::params::{Path, Query};
use crate::problem::Problem;

/// The maximum id: the cursor at which the finished runs begin.
const NEWEST: JobId = JobId(uuid::Uuid::max());

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_bulk_runs))
        .routes(routes!(get_bulk_run))
        .routes(routes!(list_bulk_failures))
}

/// Filter of the runs.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsParams {
    /// Only runs of this bulk job.
    name: Option<String>,
    /// Only this state.
    state: Option<JobState>,
    /// Only this group.
    group: Option<String>,
    /// Only runs with this label.
    r#type: Option<String>,
    /// Only runs with this label.
    category: Option<String>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<JobId>,
}

/// List runs of bulk jobs
///
/// Running and waiting runs first, in the order in which they will run: all on the first page regardless of its limit, at most 1,000.
/// Then finished runs, newest first.
#[utoipa::path(
    get, path = "/v1/bulk-runs", tag = "bulk jobs", params(RunsParams), responses((status = 200, body = Page<BulkView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_bulk_runs(app: App, Query(params): Query<RunsParams>) -> Result<Json<Page<BulkView>>, Problem> {
    let limit = page::limit(params.limit)?;
    let filter = BulkFilter {
        job: None,
        name: params.name,
        state: params.state,
        group: params.group,
        r#type: params.r#type,
        category: params.category,
        before: params.cursor,
        limit: limit + 1,
    };
    let found = app.store.bulks(&filter).await?;
    let is_cut = found.len() > limit as usize;
    if !is_cut || found[limit as usize - 1].is_over() {
        return Ok(Json(Page::of(found, limit, |run| run.id.to_string())));
    }
    // Unfinished runs are not ordered by id, so no cursor can point into them: return them in one page.
    let mut items = app.store.bulks(&BulkFilter { limit: ROWS_MAX + 1, ..filter }).await?;
    let more = items.iter().any(BulkView::is_over);
    items.retain(|run| !run.is_over());
    items.truncate(ROWS_MAX as usize);
    Ok(Json(Page { items, next_cursor: more.then(|| NEWEST.to_string()) }))
}

/// Returns a run of a bulk job; an error if the job is not one.
pub(super) async fn run(id: JobId, store: &dyn Store) -> Result<BulkView, Problem> {
    let filter = BulkFilter { job: Some(id), limit: 1, ..BulkFilter::default() };
    let found = store.bulks(&filter).await?.pop();
    Ok(found.ok_or_else(|| StoreError::from(InvalidBulk::NotBulk { job: id }))?)
}

/// Get a run of a bulk job
///
/// Its progress, the reason why it is throttled, and the settings by operators.
#[utoipa::path(
    get, path = "/v1/bulk-runs/{id}", tag = "bulk jobs", params(("id" = JobId, Path, description = "The run")),
    responses((status = 200, body = BulkView)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_bulk_run(app: App, Path(id): Path<JobId>) -> Result<Json<BulkView>, Problem> {
    run(id, app.store.as_ref()).await.map(Json)
}

/// The requested page of failures.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FailuresParams {
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// List the failed targets of a run
///
/// In the order of the failures. A page also ends when it has 4 MiB.
#[utoipa::path(
    get, path = "/v1/bulk-runs/{id}/failures", tag = "bulk jobs",
    params(("id" = JobId, Path, description = "The run"), FailuresParams),
    responses((status = 200, body = Page<TargetFailure>)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_bulk_failures(
    app: App,
    Path(id): Path<JobId>,
    Query(params): Query<FailuresParams>,
) -> Result<Response, Problem> {
    let limit = page::limit(params.limit)?;
    run(id, app.store.as_ref()).await?;
    let store = app.store.as_ref();
    let read = |after: Option<i64>, limit| store.bulk_failures(id, after.unwrap_or_default(), limit);
    page::of_large_rows(&app, params.cursor, limit, |failure: &TargetFailure| failure.pos, read).await
}

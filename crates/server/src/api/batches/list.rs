//! Listing and reading batches.

use axum::Json;
use milepost_core::batch::listing::{BatchDetail, BatchEntry, BatchFilter, BatchView, TaskFilter, TaskView};
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::subject::batch;
use crate::api::page::{self, Page};
use crate::app::{App, Server};
use crate::params::{Path, Query};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_batches))
        .routes(routes!(get_batch))
        .routes(routes!(list_batch_tasks))
        .routes(routes!(get_batch_history))
}

/// Filter of the batches.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BatchesParams {
    /// Only batches of this DAG.
    dag: Option<String>,
    /// Only this state.
    state: Option<BatchState>,
    /// Only batches with this key.
    key: Option<String>,
    /// Whether to include batches that are tasks of other batches.
    #[serde(default)]
    inner: bool,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<BatchId>,
}

/// List batches
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/batches", tag = "batches", params(BatchesParams), responses((status = 200, body = Page<BatchView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_batches(
    app: App,
    Query(params): Query<BatchesParams>,
) -> Result<Json<Page<BatchView>>, Problem> {
    let limit = page::limit(params.limit)?;
    let filter = BatchFilter {
        dag: params.dag,
        state: params.state,
        key: params.key,
        inner: params.inner,
        before: params.cursor,
        limit: limit + 1,
    };
    let found = app.store.batches(&filter).await?;
    Ok(Json(Page::of(found, limit, |batch| batch.id.to_string())))
}

/// Get a batch
///
/// Its state, the number of its tasks in each state, and its input.
#[utoipa::path(
    get, path = "/v1/batches/{id}", tag = "batches", params(("id" = BatchId, Path, description = "The batch")),
    responses((status = 200, body = BatchDetail)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_batch(app: App, Path(id): Path<BatchId>) -> Result<Json<BatchDetail>, Problem> {
    batch(id, app.store.as_ref()).await.map(Json)
}

/// Filter of the tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TasksParams {
    /// Only this state.
    state: Option<TaskState>,
    /// Maximum number of rows. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<u32>,
}

/// List the tasks of a batch
///
/// Ordered by number, which is the order of their keys.
#[utoipa::path(
    get, path = "/v1/batches/{id}/tasks", tag = "batches",
    params(("id" = BatchId, Path, description = "The batch"), TasksParams),
    responses((status = 200, body = Page<TaskView>)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_batch_tasks(
    app: App,
    Path(id): Path<BatchId>,
    Query(params): Query<TasksParams>,
) -> Result<Json<Page<TaskView>>, Problem> {
    let limit = page::limit(params.limit)?;
    batch(id, app.store.as_ref()).await?;
    let filter = TaskFilter {
        states: params.state.into_iter().collect(),
        tasks: Vec::new(),
        after: params.cursor,
        limit: limit + 1,
    };
    let found = app.store.batch_tasks(id, &filter).await?;
    Ok(Json(Page::of(found, limit, |task| task.task.to_string())))
}

/// The requested part of a history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct HistoryParams {
    /// Maximum number of entries. The default is 50.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// The `next_cursor` of the previous page.
    #[param(value_type = Option<String>)]
    cursor: Option<i64>,
}

/// Get a batch's history
///
/// Changes of the batch, and of its tasks without jobs. Oldest first.
#[utoipa::path(
    get, path = "/v1/batches/{id}/history", tag = "batches",
    params(("id" = BatchId, Path, description = "The batch"), HistoryParams),
    responses((status = 200, body = Page<BatchEntry>)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_batch_history(
    app: App,
    Path(id): Path<BatchId>,
    Query(params): Query<HistoryParams>,
) -> Result<Json<Page<BatchEntry>>, Problem> {
    let limit = page::limit(params.limit)?;
    batch(id, app.store.as_ref()).await?;
    let found = app.store.batch_history(id, params.cursor.unwrap_or_default(), limit + 1).await?;
    Ok(Json(Page::of(found, limit, |entry| entry.pos.to_string())))
}

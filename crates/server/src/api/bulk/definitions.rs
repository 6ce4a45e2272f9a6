//! What bulk jobs there are.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use milepost_core::bulk::definition::{Definition, Effects};
use milepost_core::bulk::staged::ColumnType;
use milepost_core::port::Store;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_bulk_definitions)).routes(routes!(get_bulk_definition))
}

/// A bulk job before anybody starts it.
#[derive(Debug, Serialize, ToSchema)]
struct BulkDefinition {
    /// Its name, and the kind of its jobs.
    name: String,
    /// What comes out of it.
    r#type: Option<String>,
    /// What it is for.
    category: Option<String>,
    /// Of all bulk jobs of a group one runs at a time.
    group: String,
    /// Where its jobs wait.
    queue: String,
    /// Which of a group goes first.
    priority: u8,
    /// How many attempts a run gets.
    max_attempts: u32,
    /// How long a chunk shall take.
    chunk_ms: u64,
    /// The fewest rows of a chunk.
    chunk_rows_min: u32,
    /// The most rows of a chunk.
    chunk_rows_max: u32,
    /// Rows a second at most.
    rows_per_s: Option<f64>,
    /// The part of the time that chunks may take.
    duty: f64,
    /// How many targets may fail before it is aborted.
    failures_max: u64,
    /// The bulk job that is started by its end.
    then: Option<String>,
    /// What a crash means for its targets.
    effects: Effects,
    /// The columns of the file that each run is started with. Missing: its targets are in tables of a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<BTreeMap<String, ColumnType>>,
    /// Where its targets are, when that is another database than the store's.
    place: Option<String>,
}

impl From<Definition> for BulkDefinition {
    fn from(definition: Definition) -> Self {
        Self {
            name: definition.name,
            r#type: definition.labels.r#type,
            category: definition.labels.category,
            group: definition.group,
            queue: definition.queue,
            priority: definition.priority.get(),
            max_attempts: definition.max_attempts,
            chunk_ms: u64::try_from(definition.sizing.target.as_millis()).unwrap_or(u64::MAX),
            chunk_rows_min: definition.sizing.rows_min,
            chunk_rows_max: definition.sizing.rows_max,
            rows_per_s: definition.load.rows_per_s,
            duty: definition.load.duty,
            failures_max: definition.failures_max,
            then: definition.then,
            effects: definition.effects,
            columns: definition.columns.map(BTreeMap::from),
            place: definition.place,
        }
    }
}

/// The definition of this name.
pub(super) async fn definition(name: &str, store: &dyn Store) -> Result<Definition, Problem> {
    store.bulk_definition(name).await?.ok_or_else(|| {
        let words =
            format!("there is no bulk job {name:?}; workers tell the store of theirs when they start");
        Problem::not_found("no_such_bulk", words)
    })
}

/// List bulk jobs
///
/// Those that a worker told the store of, by name.
#[utoipa::path(
    get, path = "/v1/bulk-definitions", tag = "bulk jobs", responses((status = 200, body = Vec<BulkDefinition>)),
    security(("token" = ["viewer"]))
)]
async fn list_bulk_definitions(State(app): State<App>) -> Result<Json<Vec<BulkDefinition>>, Problem> {
    Ok(Json(app.store.bulk_definitions().await?.into_iter().map(BulkDefinition::from).collect()))
}

/// Get a bulk job
#[utoipa::path(
    get, path = "/v1/bulk-definitions/{name}", tag = "bulk jobs", params(("name" = String, Path, description = "The bulk job")),
    responses((status = 200, body = BulkDefinition)), security(("token" = ["viewer"]))
)]
async fn get_bulk_definition(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<BulkDefinition>, Problem> {
    Ok(Json(definition(&name, app.store.as_ref()).await?.into()))
}

//! Definitions of bulk jobs.

use std::collections::BTreeMap;

use axum::Json;
use milepost_core::bulk::definition::{Definition, Effects};
use milepost_core::bulk::staged::ColumnType;
use milepost_core::port::Store;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Server};
use crate::params::Path;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_bulk_definitions)).routes(routes!(get_bulk_definition))
}

/// A bulk job definition.
#[derive(Debug, Serialize, ToSchema)]
struct BulkDefinition {
    /// Its name, which is also the kind of its jobs.
    name: String,
    /// The label for its result.
    r#type: Option<String>,
    /// The label for its purpose.
    category: Option<String>,
    /// Its group. Of all bulk jobs in a group, one runs at a time.
    group: String,
    /// The queue of its jobs.
    queue: String,
    /// Its priority within the group.
    priority: u8,
    /// Maximum number of attempts of a run.
    max_attempts: u32,
    /// Target duration of a chunk.
    chunk_ms: u64,
    /// Minimum number of rows of a chunk.
    chunk_rows_min: u32,
    /// Maximum number of rows of a chunk.
    chunk_rows_max: u32,
    /// Maximum rate, in rows per second.
    rows_per_s: Option<f64>,
    /// Maximum share of the time that chunks take.
    duty: f64,
    /// Maximum number of failed targets before it is aborted.
    failures_max: u64,
    /// The bulk job that starts when this one has ended.
    then: Option<String>,
    /// The effect of a crash on its targets.
    effects: Effects,
    /// The columns of the file that each run starts with. Missing if its targets are in tables of a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<BTreeMap<String, ColumnType>>,
    /// The location of its targets, if they are in another database than the store's.
    place: Option<String>,
    /// The query of its targets. Missing if they come from a file, or if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    /// The statement that is applied to each chunk, or a sentence about another effect. Missing if it is a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    /// The parameters that each run must have, and their types where the SQL shows them. Missing if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ParameterView>>,
}

/// A parameter that the SQL of a bulk job uses.
#[derive(Debug, Serialize, ToSchema)]
struct ParameterView {
    /// Its name.
    name: String,
    /// The type of its value. Missing if the SQL does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<ColumnType>,
}

impl From<Definition> for BulkDefinition {
    fn from(definition: Definition) -> Self {
        let (parameters, statements) = match definition.statements {
            Some(its) => {
                let all = its.parameters.into_iter();
                let all = all.map(|(name, r#type)| ParameterView { name, r#type }).collect();
                (Some(all), (its.source, its.effect))
            }
            None => (None, (None, None)),
        };
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
            query: statements.0,
            effect: statements.1,
            parameters,
        }
    }
}

/// Returns the definition with this name.
pub(crate) async fn definition(name: &str, store: &dyn Store) -> Result<Definition, Problem> {
    store.bulk_definition(name).await?.ok_or_else(|| {
        let words = format!("there is no bulk job {name:?}; workers register theirs when they start");
        Problem::new(Code::NoSuchBulk, words)
    })
}

/// List bulk jobs
///
/// Bulk jobs that workers have registered, ordered by name.
#[utoipa::path(
    get, path = "/v1/bulk-definitions", tag = "bulk jobs", responses((status = 200, body = Vec<BulkDefinition>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn list_bulk_definitions(app: App) -> Result<Json<Vec<BulkDefinition>>, Problem> {
    Ok(Json(app.store.bulk_definitions().await?.into_iter().map(BulkDefinition::from).collect()))
}

/// Get a bulk job
#[utoipa::path(
    get, path = "/v1/bulk-definitions/{name}", tag = "bulk jobs", params(("name" = String, Path, description = "The bulk job")),
    responses((status = 200, body = BulkDefinition)), security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_bulk_definition(app: App, Path(name): Path<String>) -> Result<Json<BulkDefinition>, Problem> {
    Ok(Json(definition(&name, app.store.as_ref()).await?.into()))
}

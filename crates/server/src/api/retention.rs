//! Retention periods that operators set.

use axum::Json;
use axum::http::StatusCode;
use milepost_core::retention::{Keep, Retained, RetentionPeriod, RetentionPolicy};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::{Path, Query};
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list_retention)).routes(routes!(put_retention, delete_retention))
}

/// The retention period of something.
#[derive(Debug, Serialize, ToSchema)]
struct RetentionRow {
    /// Its name, such as `succeeded`.
    #[schema(examples("succeeded"))]
    name: &'static str,
    /// The period that an operator has set: a duration such as `7d`, or `forever`; null: each worker uses that of its configuration.
    #[schema(examples("30d"))]
    period: Option<String>,
    /// The period if neither an operator nor the configuration has set one.
    #[schema(examples("7d"))]
    default: String,
}

/// List retention periods
///
/// Every period, and the value that an operator has set.
#[utoipa::path(
    get, path = "/v1/retention", tag = "retention", responses((status = 200, body = Vec<RetentionRow>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("retention covers the whole store")))
)]
async fn list_retention(app: App) -> Result<Json<Vec<RetentionRow>>, Problem> {
    let stored = app.store.stored_retention().await?;
    let row = |of: &Retained| RetentionRow {
        name: of.as_str(),
        period: stored.iter().find(|its| its.of == *of).map(|its| its.keep.to_string()),
        default: RetentionPolicy::default().of(*of).to_string(),
    };
    Ok(Json(Retained::ALL.iter().map(row).collect()))
}

/// A retention period.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RetentionRequest {
    /// A duration such as `7d` or `12h`, or `forever`.
    #[schema(examples("30d"))]
    period: String,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Set a retention period
///
/// It replaces the period of every configuration, within a minute. Data that is older is deleted.
#[utoipa::path(
    put, path = "/v1/retention/{name}", tag = "retention", request_body = RetentionRequest, responses((status = 204)),
    params(("name" = String, Path, description = "What it applies to: one of the names of the list", example = "succeeded")),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("retention covers the whole store")))
)]
async fn put_retention(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Body(request): Body<RetentionRequest>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because(request.reason.as_deref())?);
    let of = retained(&name)?;
    let keep: Keep = request.period.parse().map_err(|fault| refused(fault).at("period"))?;
    let period = RetentionPeriod { of, keep };
    period.check().map_err(|invalid| refused(invalid.to_string()).at("period"))?;
    store.put_retention(period).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The reason for the removal.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RemovalParams {
    /// The reason, for the audit log.
    #[param(max_length = 1000)]
    reason: Option<String>,
}

/// Remove a retention period
///
/// The configuration of each worker applies again. Succeeds if no period was set.
#[utoipa::path(
    delete, path = "/v1/retention/{name}", tag = "retention", responses((status = 204)),
    params(("name" = String, Path, description = "What it applies to: one of the names of the list", example = "succeeded"), RemovalParams),
    security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("retention covers the whole store")))
)]
async fn delete_retention(
    app: App,
    actor: RequestActor,
    Path(name): Path<String>,
    Query(params): Query<RemovalParams>,
) -> Result<StatusCode, Problem> {
    let store = app.acting(actor.because_in_query(params.reason.as_deref())?);
    store.remove_retention(retained(&name)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn retained(name: &str) -> Result<Retained, Problem> {
    let names: Vec<&str> = Retained::ALL.iter().map(|of| of.as_str()).collect();
    name.parse().map_err(|_| {
        refused(format!("there is no retention period {name:?}; the names are {}", names.join(", ")))
            .at("path name")
    })
}

fn refused(words: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidRetention, words)
}

//! Load settings of a run of a bulk job.

use axum::Json;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::settings::{Settings, SettingsChange};
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::run;
use crate::actor::RequestActor;
use crate::app::{App, Server};
use crate::body::Body;
use crate::params::Path;
use crate::problem::{Code, Problem};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(set_bulk_run))
}

/// The settings to change. Omitted fields are unchanged.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SettingsRequest {
    /// Whether the earlier settings are removed, so that the definition applies to all that are omitted. The priority stays.
    #[serde(default)]
    as_defined: bool,
    /// Maximum rate, in rows per second.
    #[schema(minimum = 0.001, maximum = 100_000_000)]
    rows_per_s: Option<f64>,
    /// Maximum share of the time that chunks take.
    #[schema(minimum = 0.001, maximum = 1)]
    duty: Option<f64>,
    /// Target duration of a chunk.
    #[schema(minimum = 1, maximum = 600_000)]
    chunk_ms: Option<u64>,
    /// Minimum number of rows of a chunk.
    #[schema(minimum = 1, maximum = 1_000_000)]
    chunk_rows_min: Option<u32>,
    /// Maximum number of rows of a chunk.
    #[schema(minimum = 1, maximum = 1_000_000)]
    chunk_rows_max: Option<u32>,
    /// The priority within the group: from 1 (first) to 4 (last).
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// The reason, for the audit log.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl SettingsRequest {
    /// Returns the change, and all settings after it.
    fn change(&self, before: Settings) -> Result<(SettingsChange, Settings), Problem> {
        let settings = Settings {
            rows_per_s: self.rows_per_s,
            duty: self.duty,
            chunk_ms: self.chunk_ms,
            chunk_rows_min: self.chunk_rows_min,
            chunk_rows_max: self.chunk_rows_max,
        };
        let change = SettingsChange { as_defined: self.as_defined, settings, priority: self.priority };
        if change.is_empty() {
            return Err(Problem::new(Code::InvalidBulk, "the request changes no setting; give at least one"));
        }
        let all = change.over(before);
        all.check().map_err(|invalid| self.refused(invalid))?;
        Ok((change, all))
    }

    fn refused(&self, invalid: InvalidBulk) -> Problem {
        let problem = Problem::new(Code::InvalidBulk, invalid.to_string());
        match invalid {
            // The new `chunk_rows_max` is less than the `chunk_rows_min` that was set before.
            InvalidBulk::Setting { name: "chunk_rows_min", .. } if self.chunk_rows_min.is_none() => {
                problem.at("chunk_rows_max")
            }
            InvalidBulk::Setting { name, .. } => problem.at(name),
            _ => problem,
        }
    }
}

/// Change the settings of a run
///
/// Takes effect with its next chunk, and is kept when the run is aborted and resumed. Returns all current settings.
#[utoipa::path(
    patch, path = "/v1/bulk-runs/{id}/settings", tag = "bulk jobs", params(("id" = JobId, Path, description = "The run")),
    request_body = SettingsRequest, responses((status = 200, body = Settings)), security(("token" = ["operator"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn set_bulk_run(
    app: App,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<SettingsRequest>,
) -> Result<Json<Settings>, Problem> {
    let actor = actor.because(request.reason.as_deref())?;
    let view = run(id, app.store.as_ref()).await?;
    if view.state.is_ended() {
        let words = format!("job {id} is {}: its settings can no longer be changed", view.state);
        return Err(Problem::new(Code::BulkRefused, words));
    }
    let (change, all) = request.change(view.settings)?;
    app.acting(actor).set_bulk(id, &change).await?;
    Ok(Json(all))
}

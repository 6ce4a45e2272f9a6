//! What a run of a bulk job may take.

use axum::Json;
use axum::extract::State;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::run::Settings;
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::runs::run;
use crate::actor::RequestActor;
use crate::app::App;
use crate::body::Body;
use crate::params::Path;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(set_bulk_run))
}

/// What to change; what is not given stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SettingsRequest {
    /// Rows a second at most.
    rows_per_s: Option<f64>,
    /// The part of the time that chunks may take, over 0 and at most 1.
    duty: Option<f64>,
    /// How long a chunk shall take.
    #[schema(minimum = 1, maximum = 600_000)]
    chunk_ms: Option<u64>,
    /// The fewest rows of a chunk.
    #[schema(minimum = 1, maximum = 1_000_000)]
    chunk_rows_min: Option<u32>,
    /// The most rows of a chunk.
    #[schema(minimum = 1, maximum = 1_000_000)]
    chunk_rows_max: Option<u32>,
    /// Which of the group goes first: from 1 (first) to 4 (last).
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 4)]
    priority: Option<Priority>,
    /// Why; stands in the audit.
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

impl SettingsRequest {
    /// The changes, and what stands with them.
    fn settings(&self, before: Settings) -> Result<(Settings, Settings), Problem> {
        let settings = Settings {
            rows_per_s: self.rows_per_s,
            duty: self.duty,
            chunk_ms: self.chunk_ms,
            chunk_rows_min: self.chunk_rows_min,
            chunk_rows_max: self.chunk_rows_max,
        };
        if settings == Settings::default() && self.priority.is_none() {
            return Err(Problem::unprocessable("invalid_bulk", "there is nothing to set"));
        }
        let all = settings.over(before);
        all.check().map_err(|invalid| self.refused(invalid))?;
        Ok((settings, all))
    }

    fn refused(&self, invalid: InvalidBulk) -> Problem {
        let problem = Problem::unprocessable("invalid_bulk", invalid.to_string());
        match invalid {
            // The most is below the fewest that was set before.
            InvalidBulk::Setting { name: "chunk_rows_min", .. } if self.chunk_rows_min.is_none() => {
                problem.at("chunk_rows_max")
            }
            InvalidBulk::Setting { name, .. } => problem.at(name),
            _ => problem,
        }
    }
}

/// Change what a run may take
///
/// From its next chunk on; it stays when the run is aborted and resumed. Answers all that is set now.
#[utoipa::path(
    patch, path = "/v1/bulk-runs/{id}/settings", tag = "bulk jobs", params(("id" = JobId, Path, description = "The run")),
    request_body = SettingsRequest, responses((status = 200, body = Settings)), security(("token" = ["operator"]))
)]
async fn set_bulk_run(
    State(app): State<App>,
    actor: RequestActor,
    Path(id): Path<JobId>,
    Body(request): Body<SettingsRequest>,
) -> Result<Json<Settings>, Problem> {
    let actor = actor.because(request.reason.as_deref())?;
    let view = run(id, app.store.as_ref()).await?;
    if view.state.is_ended() {
        let words = format!("job {id} is {}: there is nothing to set any more", view.state);
        return Err(Problem::conflict("bulk_refused", words));
    }
    let (settings, all) = request.settings(view.settings)?;
    app.acting(actor).set_bulk(id, &settings, request.priority).await?;
    Ok(Json(all))
}

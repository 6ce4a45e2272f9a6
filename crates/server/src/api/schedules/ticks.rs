//! When a schedule would tick.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use milepost_core::schedule::{InvalidSchedule, Spec};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::params::Query;
use crate::problem::Problem;

/// The zone of cron expressions that name none.
const ZONE_DEFAULT: &str = "UTC";
/// How many ticks are shown when nobody says.
const TICKS_DEFAULT: usize = 10;
/// How many ticks are shown at most.
const TICKS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(preview_ticks))
}

/// The first ticks after an instant.
pub(super) fn next_ticks(spec: &Spec, after: Timestamp, count: usize) -> Vec<Timestamp> {
    std::iter::successors(spec.next_after(after), |tick| spec.next_after(*tick)).take(count).collect()
}

/// What a request says of when a schedule ticks; `part` is where it says so: empty for the body, or `query `.
pub(super) struct Asked<'a> {
    pub(super) cron: Option<&'a str>,
    pub(super) every: Option<&'a str>,
    pub(super) zone: Option<&'a str>,
    pub(super) part: &'static str,
}

impl Asked<'_> {
    pub(super) fn spec(&self) -> Result<Spec, Problem> {
        match (self.cron, self.every) {
            (Some(cron), None) => {
                Spec::cron(cron, self.zone.unwrap_or(ZONE_DEFAULT)).map_err(|invalid| match invalid {
                    InvalidSchedule::Zone { .. } => self.refused("zone", invalid.to_string()),
                    _ => self.refused("cron", invalid.to_string()),
                })
            }
            (None, Some(_)) if self.zone.is_some() => {
                Err(self.refused("zone", "an interval goes by no zone's clock; leave it out, or give cron"))
            }
            (None, Some(every)) => Spec::parse(&format!("@every {every}"), ZONE_DEFAULT)
                .map_err(|invalid| self.refused("every", invalid.to_string())),
            (None, None) => Err(self.refused(
                "cron",
                "it says neither cron nor every, and would never tick; give cron, such as \"0 3 * * *\", or every, such as \"10m\"",
            )),
            (Some(_), Some(_)) => Err(self.refused("every", "it says both cron and every; keep one of the two")),
        }
    }

    fn refused(&self, field: &str, words: impl Into<String>) -> Problem {
        Problem::unprocessable("invalid_schedule", words).at(format!("{}{field}", self.part))
    }
}

/// Which ticks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TicksParams {
    /// A cron expression of 5 fields, 6 with seconds first, or a macro such as `@daily`.
    cron: Option<String>,
    /// An interval in whole seconds, such as `90m`, in place of `cron`.
    every: Option<String>,
    /// The time zone whose clock `cron` goes by, such as `Europe/Berlin`. The default is `UTC`.
    zone: Option<String>,
    /// Ticks after this time. The default is now.
    from: Option<Timestamp>,
    /// How many. The default is 10.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A tick.
#[derive(Debug, Serialize, ToSchema)]
struct TickView {
    /// When it is.
    at: Timestamp,
    /// The same on the zone's clock.
    #[schema(examples("2027-03-28T03:00:00+02:00[Europe/Berlin]"))]
    local: String,
}

/// Preview ticks
///
/// When a schedule would tick; nothing is stored.
#[utoipa::path(
    get, path = "/v1/ticks", tag = "schedules", params(TicksParams), responses((status = 200, body = Vec<TickView>)),
    security(("token" = ["viewer"]))
)]
async fn preview_ticks(
    State(app): State<App>,
    Query(params): Query<TicksParams>,
) -> Result<Json<Vec<TickView>>, Problem> {
    let limit = params.limit.unwrap_or(TICKS_DEFAULT);
    if !(1..=TICKS_MAX).contains(&limit) {
        let words = format!("from 1 to {TICKS_MAX} ticks are shown, not {limit}");
        return Err(Problem::bad_request("invalid_parameter", words).at("query limit"));
    }
    let (cron, every, zone) = (params.cron.as_deref(), params.every.as_deref(), params.zone.as_deref());
    let spec = Asked { cron, every, zone, part: "query " }.spec()?;
    let from = match params.from {
        Some(from) => from,
        None => app.store.clock().await?.now,
    };
    let ticks = next_ticks(&spec, from, limit);
    let view = |at: Timestamp| TickView { at, local: at.to_zoned(spec.zone()).to_string() };
    Ok(Json(ticks.into_iter().map(view).collect()))
}

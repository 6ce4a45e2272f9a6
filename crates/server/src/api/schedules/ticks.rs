//! Preview of the ticks of a schedule.

use axum::Json;
use jiff::Timestamp;
use milepost_core::schedule::{InvalidSchedule, Spec, ZONE_DEFAULT};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Server};
use crate::params::Query;
use crate::problem::{Code, Problem};

/// Default number of ticks in a preview.
const TICKS_DEFAULT: usize = 10;
/// Maximum number of ticks in a preview.
const TICKS_MAX: usize = 1_000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(preview_ticks))
}

/// The timing of a schedule in a request. `part` is the prefix of positions in error messages: empty for the body, or `query `.
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
                Spec::parse(cron, self.zone.unwrap_or(ZONE_DEFAULT)).map_err(|invalid| match invalid {
                    InvalidSchedule::Zone { .. } => self.refused("zone", invalid.to_string()),
                    _ => self.refused("cron", invalid.to_string()),
                })
            }
            (None, Some(_)) if self.zone.is_some() => Err(self
                .refused("zone", "an interval has no time zone; omit zone, or give cron instead of every")),
            (None, Some(every)) => Spec::parse(&format!("@every {every}"), ZONE_DEFAULT)
                .map_err(|invalid| self.refused("every", invalid.to_string())),
            (None, None) => Err(self
                .refused("cron", "a schedule needs cron, such as \"0 3 * * *\", or every, such as \"10m\"")),
            (Some(_), Some(_)) => {
                Err(self.refused("every", "cron and every exclude each other; give one of them"))
            }
        }
    }

    fn refused(&self, field: &str, words: impl Into<String>) -> Problem {
        Problem::new(Code::InvalidSchedule, words).at(format!("{}{field}", self.part))
    }
}

/// The requested ticks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct TicksParams {
    /// A cron expression of 5 fields, 6 with seconds first, or a macro such as `@daily`.
    cron: Option<String>,
    /// An interval in whole seconds, such as `90m`, in place of `cron`.
    every: Option<String>,
    /// The time zone of `cron`, such as `Europe/Berlin`. The default is `UTC`.
    zone: Option<String>,
    /// Only ticks after this time. The default is now.
    from: Option<Timestamp>,
    /// Number of ticks. The default is 10.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// A tick.
#[derive(Debug, Serialize, ToSchema)]
struct TickView {
    /// Its time.
    at: Timestamp,
    /// Its local time in the time zone.
    #[schema(examples("2027-03-28T03:00:00+02:00[Europe/Berlin]"))]
    local: String,
}

/// Preview ticks
///
/// Returns when a schedule would tick. Nothing is stored.
#[utoipa::path(
    get, path = "/v1/ticks", tag = "schedules", params(TicksParams), responses((status = 200, body = Vec<TickView>)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn preview_ticks(app: App, Query(params): Query<TicksParams>) -> Result<Json<Vec<TickView>>, Problem> {
    let limit = params.limit.unwrap_or(TICKS_DEFAULT);
    if !(1..=TICKS_MAX).contains(&limit) {
        let words = format!("a preview must have 1 to {TICKS_MAX} ticks, not {limit}");
        return Err(Problem::new(Code::InvalidParameter, words).at("query limit"));
    }
    let (cron, every, zone) = (params.cron.as_deref(), params.every.as_deref(), params.zone.as_deref());
    let spec = Asked { cron, every, zone, part: "query " }.spec()?;
    let from = match params.from {
        Some(from) => from,
        None => app.store.clock().await?.now,
    };
    let view = |at: Timestamp| TickView { at, local: at.to_zoned(spec.zone()).to_string() };
    Ok(Json(spec.ticks_after(from).take(limit).map(view).collect()))
}

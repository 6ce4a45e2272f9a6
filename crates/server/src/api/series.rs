//! Numbers of attempts over time.

use axum::Json;
use milepost_core::rollup::{Range, RollupFilter, Series};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, Server};
use crate::params::Query;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(get_series))
}

/// Which attempts to count.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SeriesParams {
    /// The last hour by minutes, the last day by ten minutes, or the last week by hours. The default is `hour`.
    #[serde(default)]
    #[param(inline, required = false)]
    range: Range,
    /// Only of this queue.
    queue: Option<String>,
    /// Only of this kind.
    kind: Option<String>,
}

/// Returns the series of these parameters.
pub(crate) async fn read(app: &App, params: SeriesParams) -> Result<Series, Problem> {
    let SeriesParams { range, queue, kind } = params;
    let rollups = app.store.rollups(&RollupFilter { range, queue, kind, ..RollupFilter::default() }).await?;
    Ok(Series::of(&rollups, range))
}

/// Return numbers of attempts over time
///
/// How many attempts started, succeeded and failed in each period, and how long jobs waited and ran, from rollups that workers write every ten
/// seconds. Numbers are exact. Their distribution over queues, kinds and durations is estimated when there are more than 400 changes a
/// second. Quantiles are estimated from buckets whose limits double.
#[utoipa::path(
    get, path = "/v1/metrics/series", tag = "metrics", params(SeriesParams), responses((status = 200, body = Series)),
    security(("token" = ["viewer"])),
    extensions(("x-limited-tokens" = json!("own")))
)]
async fn get_series(app: App, Query(params): Query<SeriesParams>) -> Result<Json<Series>, Problem> {
    read(&app, params).await.map(Json)
}

//! The data of the charts: of the last 15 minutes from memory, of longer ranges from rollups.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::Json;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use milepost_core::rollup;

use super::series::Columns;
use crate::api::series::{self, SeriesParams};
use crate::app::App;
use crate::params::{Query, encoded};
use crate::problem::Problem;

/// The charts of a page.
#[derive(Template)]
#[template(path = "charts.html")]
pub(super) struct Charts {
    /// The filter as the end of a query.
    query: String,
}

impl HtmlSafe for Charts {}

impl Charts {
    /// Charts of all attempts.
    pub(super) const fn of_all() -> Self {
        Self { query: String::new() }
    }

    /// Charts of the attempts of a queue, of a kind, or of both; `None` without either.
    pub(super) fn of(queue: &str, kind: &str) -> Option<Self> {
        let part = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!("&{name}={}", encoded(value)),
        };
        let query = part("queue", queue) + &part("kind", kind);
        (!query.is_empty()).then_some(Self { query })
    }

    const fn is_of_all(&self) -> bool {
        self.query.is_empty()
    }
}

impl From<rollup::Series> for Columns {
    fn from(series: rollup::Series) -> Self {
        let rates = |times: &[u64]| {
            let rate =
                |(&times, &counted_s): (&u64, &i64)| (counted_s > 0).then(|| times as f64 / counted_s as f64);
            times.iter().zip(&series.counted_s).map(rate).collect()
        };
        Self {
            started: rates(&series.started),
            succeeded: rates(&series.succeeded),
            failed: rates(&series.failed),
            at: series.at,
            wait_p50: series.wait_p50,
            wait_p99: series.wait_p99,
            run_p50: series.run_p50,
            run_p99: series.run_p99,
            backlog: Vec::new(),
        }
    }
}

/// Returns the data of the last 15 minutes; for a limited token, of the last hour.
pub(super) async fn recent(app: App) -> Result<Response, Problem> {
    if app.limited.is_some() {
        // The series in memory counts all jobs of the store.
        let series = series::read(&app, SeriesParams::default()).await?;
        return Ok(Json(Columns::from(series)).into_response());
    }
    Ok(Json(app.series.columns(Timestamp::now())).into_response())
}

/// Returns the data of a longer range.
pub(super) async fn get(app: App, Query(params): Query<SeriesParams>) -> Result<Response, Problem> {
    let series = series::read(&app, params).await?;
    Ok(Json(Columns::from(series)).into_response())
}

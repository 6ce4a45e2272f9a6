//! The handler of `/metrics`.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::text;
use crate::app::App;
use crate::problem::{Code, Problem};

/// Returns all metrics as OpenMetrics text.
pub(crate) async fn get(app: App) -> Response {
    match text::write(app.metrics.samples(app.store.as_ref()).await) {
        Ok(text) => ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            Problem::new(Code::MetricsFailed, "the metrics could not be written").into_response()
        }
    }
}

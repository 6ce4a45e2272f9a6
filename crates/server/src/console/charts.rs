//! The data of the charts.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;

use super::series::Columns;
use crate::app::App;

/// Returns the data of the charts.
pub(super) async fn get(State(app): State<App>) -> Json<Columns> {
    Json(app.series.columns(Timestamp::now()))
}

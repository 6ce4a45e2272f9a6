//! `/metrics`, for Prometheus: what the store says of all nodes, and what this process counts itself.

mod sample;
mod store;
mod text;
pub mod work;

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use milepost_core::port::Store;

pub use self::sample::{Kind, Sample, Value};
pub(crate) use self::store::KINDS_MAX;
use crate::app::App;
use crate::last::Last;
use crate::problem::Problem;

/// For how long what the store said quickly is told again, so that eager readers cost nothing.
const FRESH: Duration = Duration::from_secs(2);

/// What a part of this process counts: its workers, its publishers.
pub trait Counts: Send + Sync {
    /// Its numbers now.
    fn samples(&self) -> Vec<Sample>;
}

/// Where all numbers come from.
pub(crate) struct Metrics {
    own: Vec<Box<dyn Counts>>,
    of_store: Last<Vec<Sample>>,
}

impl Metrics {
    pub(crate) fn new(own: Vec<Box<dyn Counts>>) -> Self {
        Self { own, of_store: Last::new(FRESH) }
    }

    /// All of them. What the store does not answer is left out, and one number says whether it answers at all.
    async fn samples(&self, store: &dyn Store) -> Vec<Sample> {
        let mut all: Vec<Sample> = self.own.iter().flat_map(|counts| counts.samples()).collect();
        let up = store::is_up(store).await;
        all.push(Sample::gauge("store_up", "Whether the store answers", f64::from(u8::from(up.is_ok()))));
        let of_store = match up {
            Ok(()) => self.of_store.get(store::samples(store)).await,
            Err(error) => Err(error),
        };
        match of_store {
            Ok(samples) => all.extend(samples),
            Err(error) => tracing::warn!(error = error.chain(), "the store's metrics are left out"),
        }
        all
    }
}

/// Answers all numbers as OpenMetrics text.
pub(crate) async fn get(State(app): State<App>) -> Response {
    match text::write(app.metrics.samples(app.store.as_ref()).await) {
        Ok(text) => ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "the metrics could not be written");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "metrics_failed",
                "the metrics could not be written",
            )
            .into_response()
        }
    }
}

//! `/metrics` for Prometheus: metrics of the store, for all nodes, and metrics of this process.

mod sample;
pub(crate) mod scrape;
mod store;
mod text;
pub mod work;

use std::time::Duration;

use milepost_core::port::Store;

pub use self::sample::{Kind, Sample, Value};
pub(crate) use self::store::KINDS_MAX;
use crate::query_cache::Last;

/// How long quickly read metrics of the store are cached, so that frequent scrapes cost nothing.
const FRESH: Duration = Duration::from_secs(2);

/// A source of metrics in this process, such as its workers and publishers.
pub trait Counts: Send + Sync {
    /// Returns the current metrics.
    fn samples(&self) -> Vec<Sample>;
}

/// The sources of all metrics.
pub(crate) struct Metrics {
    own: Vec<Box<dyn Counts>>,
    of_store: Last<Vec<Sample>>,
}

impl Metrics {
    pub(crate) fn new(own: Vec<Box<dyn Counts>>) -> Self {
        Self { own, of_store: Last::new(FRESH) }
    }

    /// Returns all metrics. Metrics that the store does not return are omitted; `store_up` shows whether it responds.
    async fn samples(&self, store: &dyn Store) -> Vec<Sample> {
        let mut all: Vec<Sample> = self.own.iter().flat_map(|counts| counts.samples()).collect();
        let up = store::is_up(store).await;
        all.push(Sample::gauge("store_up", "Whether the store responds", f64::from(u8::from(up.is_ok()))));
        let of_store = match up {
            Ok(()) => self.of_store.get(store::samples(store)).await,
            Err(error) => Err(error),
        };
        match of_store {
            Ok(samples) => all.extend(samples),
            Err(error) => tracing::warn!(error = error.chain(), "the metrics of the store are omitted"),
        }
        all
    }
}

//! Reports of benchmarks. Every mode has the same fields and adds specific ones.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use milepost_cli_support::table::{Field, Listing};
use serde::Serialize;
use serde_json::Value;

/// Two percentiles of a latency, in ms; null if it was not measured.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

impl Percentiles {
    /// Computes the percentiles of a histogram in microseconds.
    pub(super) fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let ms = |quantile| Some(histogram.value_at_quantile(quantile) as f64 / 1000.0);
        Self { p50: ms(0.5), p99: ms(0.99) }
    }
}

/// Returns the median.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The JSON report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) bench: &'static str,
    pub(super) mode: &'static str,
    pub(super) store: &'static str,
    pub(super) jobs: u64,
    pub(super) enqueue_per_s: Option<f64>,
    pub(super) run_per_s: Option<f64>,
    pub(super) overall_per_s: Option<f64>,
    pub(super) start_latency_ms: Percentiles,
    pub(super) wal_bytes_per_job: Option<f64>,
    pub(super) peak_rss_mb: Option<f64>,
    #[serde(flatten)]
    pub(super) own: BTreeMap<&'static str, Value>,
}

impl Report {
    pub(super) fn new(mode: &'static str, store: &'static str, jobs: u64) -> Self {
        Self {
            bench: "jobs",
            mode,
            store,
            jobs,
            enqueue_per_s: None,
            run_per_s: None,
            overall_per_s: None,
            start_latency_ms: Percentiles::default(),
            wal_bytes_per_job: None,
            peak_rss_mb: super::process::peak_rss_mb(),
            own: BTreeMap::new(),
        }
    }

    /// Adds a number that is specific to the mode.
    pub(super) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.own.insert(name, rounded(value));
        self
    }

    /// Prints the report as text.
    pub(super) fn print(&self) -> anyhow::Result<()> {
        print(self)
    }
}

/// Prints the fields of a report as text, without those that were not measured.
pub(super) fn print(report: &impl Serialize) -> anyhow::Result<()> {
    let mut listing = Listing::new(&["WHAT", "MEASURED"]);
    let Value::Object(fields) = serde_json::to_value(report)? else {
        return Ok(());
    };
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        let text = match value {
            Value::String(text) => text,
            value => value.to_string(),
        };
        listing.row([Field::text(name), Field::text(text)]);
    }
    Ok(listing.print()?)
}

/// Rounds a measured number: to an integer from 100 on, else to three decimals.
pub(super) fn rounded(value: f64) -> Value {
    let digits = if value.abs() >= 100.0 { 1.0 } else { 1000.0 };
    Value::from((value * digits).round() / digits)
}

/// Returns a rate per second, rounded to an integer.
pub(super) fn per_s(count: u64, seconds: f64) -> f64 {
    (count as f64 / seconds.max(1e-9)).round()
}

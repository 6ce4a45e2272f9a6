//! Metrics in the OpenMetrics text format.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::sample::{Kind, Sample, Value};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The samples with one name, by their labels.
type Family = BTreeMap<Vec<(&'static str, String)>, Sample>;

/// Writes the samples, grouped by name. Samples with the same name and labels are added up.
pub(super) fn write(samples: Vec<Sample>) -> Result<String, fmt::Error> {
    let mut families: BTreeMap<&'static str, Family> = BTreeMap::new();
    for sample in samples {
        match families.entry(sample.name).or_default().entry(sample.labels.clone()) {
            Entry::Vacant(place) => drop(place.insert(sample)),
            Entry::Occupied(mut there) => there.get_mut().add(sample),
        }
    }
    let mut registry = Registry::with_prefix("milepost");
    registry.register_collector(Box::new(Families(families)));
    let mut written = String::new();
    text::encode(&mut written, &registry)?;
    Ok(written)
}

#[derive(Debug)]
struct Families(BTreeMap<&'static str, Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (name, samples) in &self.0 {
            let Some(first) = samples.values().next() else { continue };
            let kind = match first.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(name, first.help, None, kind)?;
            if first.labels.is_empty() {
                write_one(first, family)?;
                continue;
            }
            for sample in samples.values() {
                write_one(sample, family.encode_family(&sample.labels)?)?;
            }
        }
        Ok(())
    }
}

fn write_one(sample: &Sample, mut encoder: MetricEncoder<'_>) -> fmt::Result {
    match (&sample.value, sample.kind) {
        (Value::One(value), Kind::Counter) => ConstCounter::new(*value).encode(encoder),
        (Value::One(value), _) => ConstGauge::new(*value).encode(encoder),
        (Value::Spread(buckets, sum), _) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
    }
}

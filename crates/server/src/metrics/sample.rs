//! A sample of `/metrics`.

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that only increases until the process ends.
    Counter,
    /// A value that increases and decreases.
    Gauge,
    /// A distribution, counted in buckets.
    Histogram,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A single number.
    One(f64),
    /// The buckets of a histogram, each with its upper bound and its own (not cumulative) count, and the sum of the values. The
    /// last bound is infinite: Prometheus cannot compute quantiles without it.
    Spread(Vec<(f64, u64)>, f64),
}

/// A value with its name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name without the prefix `milepost_`, and without the suffix `_total` of counters.
    pub name: &'static str,
    /// The description.
    pub help: &'static str,
    /// The type.
    pub kind: Kind,
    /// The labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

impl Sample {
    /// Creates a gauge.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: Vec::new(), value: Value::One(value) }
    }

    /// Creates a counter.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, kind: Kind::Counter, labels: Vec::new(), value: Value::One(value as f64) }
    }

    /// Creates a histogram from the upper bounds of its buckets. The last bucket has no bound.
    #[must_use]
    pub fn histogram(
        name: &'static str,
        help: &'static str,
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) -> Self {
        let bounds = bounds.iter().copied().chain([f64::INFINITY]);
        let value = Value::Spread(bounds.zip(counts.iter().copied()).collect(), sum);
        Self { name, help, kind: Kind::Histogram, labels: Vec::new(), value }
    }

    /// Adds another sample with the same name and labels. Of several gauges, the first value is kept.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut self.value, other.value) {
            (Value::One(value), Value::One(more)) if self.kind == Kind::Counter => *value += more,
            (Value::Spread(buckets, sum), Value::Spread(more, more_sum)) => {
                buckets.iter_mut().zip(more).for_each(|((_, count), (_, more))| *count += more);
                *sum += more_sum;
            }
            _ => {}
        }
    }

    /// Adds a label.
    #[must_use]
    pub fn of(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((label, value.into()));
        self
    }
}

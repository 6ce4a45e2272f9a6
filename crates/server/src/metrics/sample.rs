//! One number of `/metrics`.

/// What a number is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, until its process ends.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Values, counted in buckets.
    Histogram,
}

/// What a number says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One number.
    One(f64),
    /// How values are spread: how many are in each bucket, and in none before it, by its upper bound; and their sum. The last bound is
    /// infinite: without that Prometheus knows no quantile of them.
    Spread(Vec<(f64, u64)>, f64),
}

/// A number with its name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Without `milepost_` before it and, of counters, `_total` behind it.
    pub name: &'static str,
    /// What it is, for people.
    pub help: &'static str,
    /// What it is like.
    pub kind: Kind,
    /// What tells it from others of its name.
    pub labels: Vec<(&'static str, String)>,
    /// The number.
    pub value: Value,
}

impl Sample {
    /// A number that goes up and down.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: Vec::new(), value: Value::One(value) }
    }

    /// A number that only rises.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, kind: Kind::Counter, labels: Vec::new(), value: Value::One(value as f64) }
    }

    /// Values by the upper bounds of their buckets, of which the last has none.
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

    /// With what somebody else counted of the same. Of what goes up and down the first says it for all.
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

    /// With this label.
    #[must_use]
    pub fn of(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((label, value.into()));
        self
    }
}

//! One number of `/metrics`.

/// What a number is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, until its process ends.
    Counter,
    /// It goes up and down.
    Gauge,
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
    pub value: f64,
}

impl Sample {
    /// A number that goes up and down.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, kind: Kind::Gauge, labels: Vec::new(), value }
    }

    /// A number that only rises.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, kind: Kind::Counter, labels: Vec::new(), value: value as f64 }
    }

    /// With this label.
    #[must_use]
    pub fn of(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((label, value.into()));
        self
    }
}

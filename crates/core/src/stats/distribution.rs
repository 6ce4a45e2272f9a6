//! Histograms: counts of values by bucket.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// The bucket bounds for numbers of jobs handled together.
pub(super) const JOBS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
/// The bucket bounds for durations in seconds: from handlers that do nothing to bulk jobs that run for hours.
const SECONDS: &[f64] =
    &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0];

/// Counts values in buckets; a value is in the first bucket whose upper bound is not below it.
#[derive(Debug)]
pub struct Distribution {
    bounds: &'static [f64],
    /// One element more than `bounds`.
    counts: Vec<AtomicU64>,
    /// The sum of the values, in millionths.
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DistributionView {
    /// The upper bounds of all buckets except the last, which has none; ascending.
    pub bounds: &'static [f64],
    /// The number of values in each bucket (not cumulative).
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl DistributionView {
    /// Adds the values of another histogram. Both must have the same bounds, unless this one is empty.
    pub fn add(&mut self, other: &Self) {
        if self.counts.is_empty() {
            *self = other.clone();
            return;
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }
}

impl Distribution {
    /// Creates an empty histogram with these upper bounds, which must be ascending.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Adds a value.
    pub fn add(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add((value * 1e6) as u64, Ordering::Relaxed);
    }

    /// Returns the current counts.
    #[must_use]
    pub fn view(&self) -> DistributionView {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        DistributionView { bounds: self.bounds, counts, sum: self.sum.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// The maximum number of keys with a histogram; durations of further keys are not counted.
const DIFFERENT_MAX: usize = 1_000;

/// Histograms of durations by key, such as a kind.
#[derive(Debug)]
pub struct Durations<K>(RwLock<BTreeMap<K, Arc<Distribution>>>);

impl<K> Default for Durations<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Ord + Clone> Durations<K> {
    /// Adds a duration for this key.
    pub fn add<Q>(&self, of: &Q, took: Duration)
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(of).cloned();
        if let Some(its) = known.or_else(|| self.first(of)) {
            its.add(took.as_secs_f64());
        }
    }

    fn first<Q>(&self, of: &Q) -> Option<Arc<Distribution>>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= DIFFERENT_MAX && !all.contains_key(of) {
            return None;
        }
        Some(all.entry(of.to_owned()).or_insert_with(|| Arc::new(Distribution::new(SECONDS))).clone())
    }

    /// Returns the current counts.
    #[must_use]
    pub fn view(&self) -> BTreeMap<K, DistributionView> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(of, its)| (of.clone(), its.view())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_first_bucket_that_holds_it() {
        let sizes = Distribution::new(JOBS);
        for size in [1.0, 2.0, 3.0, 500.0, 501.0] {
            sizes.add(size);
        }
        let view = sizes.view();
        assert_eq!(view.counts, [1, 1, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(view.sum, 1007.0);
    }

    #[test]
    fn durations_are_kept_of_so_many_different_things_only() {
        let durations: Durations<String> = Durations::default();
        for n in 0..=DIFFERENT_MAX {
            durations.add(format!("kind-{n}").as_str(), Duration::from_secs(1));
        }
        durations.add("kind-0", Duration::from_secs(1));
        let view = durations.view();
        assert_eq!(view.len(), DIFFERENT_MAX);
        assert_eq!(view["kind-0"].sum, 2.0);
    }
}

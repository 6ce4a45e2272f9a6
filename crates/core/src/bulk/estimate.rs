//! Estimate of the remaining time of a bulk job, as a range.

use std::collections::VecDeque;
use std::time::Duration;

/// The maximum number of stored spans.
const SPANS: usize = 32;
/// The minimum length of a span; shorter spans are joined.
const SPAN_MIN: Duration = Duration::from_secs(2);
/// The minimum number of spans for an estimate.
const SPANS_MIN: usize = 3;

/// The estimated remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// At the rate of the fastest quarter of the spans.
    pub soonest: Duration,
    /// At the rate of the slowest quarter of the spans.
    pub latest: Duration,
}

/// Measures the rate of a run, including pauses and throttling.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Rows per second in each span, oldest first.
    spans: VecDeque<f64>,
    open_rows: u64,
    open_time: Duration,
}

impl Pace {
    /// Records that this number of rows was processed in this time since the last call.
    pub fn learn(&mut self, rows: u64, passed: Duration) {
        self.open_rows += rows;
        self.open_time += passed;
        if self.open_time < SPAN_MIN {
            return;
        }
        if self.spans.len() == SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(self.open_rows as f64 / self.open_time.as_secs_f64());
        (self.open_rows, self.open_time) = (0, Duration::ZERO);
    }

    /// Returns the mean rate in rows per second over all stored spans.
    #[must_use]
    pub fn rows_per_s(&self) -> Option<f64> {
        if self.spans.is_empty() {
            return None;
        }
        Some(self.spans.iter().sum::<f64>() / self.spans.len() as f64)
    }

    /// Returns how long this number of rows takes; `None` while there is too little data, or no progress.
    #[must_use]
    pub fn remaining(&self, rows: u64) -> Option<Remaining> {
        if rows == 0 {
            return Some(Remaining { soonest: Duration::ZERO, latest: Duration::ZERO });
        }
        if self.spans.len() < SPANS_MIN {
            return None;
        }
        let mut sorted: Vec<f64> = self.spans.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let quarter = sorted.len() / 4;
        let (slow, fast) = (mean(&sorted[..=quarter]), mean(&sorted[sorted.len() - 1 - quarter..]));
        // If nothing was processed in the slowest quarter, its rate gives no upper bound; half of the mean rate is used instead.
        let slow = if slow > 0.0 { slow } else { self.rows_per_s()? / 2.0 };
        let take = |rate: f64| Duration::try_from_secs_f64(rows as f64 / rate).ok();
        Some(Remaining { soonest: take(fast)?, latest: take(slow)? })
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rates: &[u64]) -> Pace {
        let mut pace = Pace::default();
        for &rate in rates {
            pace.learn(rate * 2, Duration::from_secs(2));
        }
        pace
    }

    #[test]
    fn a_steady_run_has_a_narrow_range() {
        let remaining = pace(&[1_000; 10]).remaining(60_000).unwrap();
        assert_eq!(
            remaining,
            Remaining { soonest: Duration::from_secs(60), latest: Duration::from_secs(60) }
        );
    }

    #[test]
    fn a_run_that_was_throttled_for_a_while_has_a_wide_one() {
        let remaining =
            pace(&[2_000, 2_000, 2_000, 1_000, 500, 500, 2_000, 2_000]).remaining(60_000).unwrap();
        assert_eq!(remaining.soonest, Duration::from_secs(30));
        assert_eq!(remaining.latest, Duration::from_secs(90));
    }

    #[test]
    fn nothing_is_said_too_early_or_while_nothing_moves() {
        assert_eq!(pace(&[1_000; 2]).remaining(1), None);
        assert_eq!(pace(&[0; 10]).remaining(1), None);
        assert_eq!(Pace::default().remaining(0).unwrap().latest, Duration::ZERO);
    }

    #[test]
    fn short_chunks_are_joined_to_a_span() {
        let mut pace = Pace::default();
        for _ in 0..60 {
            pace.learn(100, Duration::from_millis(100));
        }
        assert_eq!(pace.spans.len(), 3);
        assert_eq!(pace.rows_per_s().map(f64::round), Some(1_000.0));
    }
}

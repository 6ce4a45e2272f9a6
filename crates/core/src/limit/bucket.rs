//! Token bucket arithmetic. A bucket is stored as one number: the time at which it is full again.
//!
//! A start moves that time forward by the time its token takes to be refilled; refilled tokens need no write. Times are
//! microseconds on the store's clock. PostgreSQL computes the same in SQL.

use super::Rate;

const SECOND_US: f64 = 1_000_000.0;

impl Rate {
    /// Returns the number of tokens in a bucket that is full at `full_at_us`; negative when it is in debt.
    #[must_use]
    pub fn tokens(&self, full_at_us: i64, now_us: i64) -> f64 {
        let missing_us = full_at_us.saturating_sub(now_us).max(0) as f64;
        f64::from(self.burst) - missing_us * self.per_second / SECOND_US
    }

    /// Returns how many jobs may start now: 0 until there are enough tokens for a [portion](Self::portion).
    #[must_use]
    pub fn allows(&self, full_at_us: i64, now_us: i64) -> u32 {
        // A float cast saturates: negative values become 0.
        let tokens = self.tokens(full_at_us, now_us) as u32;
        if tokens < self.portion() { 0 } else { tokens }
    }

    /// Returns when the bucket is full again after this many starts. Rounded up, so that the rate is never exceeded.
    #[must_use]
    pub fn debit(&self, full_at_us: i64, now_us: i64, starts: u32) -> i64 {
        let takes_us = (f64::from(starts) * SECOND_US / self.per_second).ceil() as i64;
        full_at_us.max(now_us).saturating_add(takes_us)
    }

    /// Returns when the bucket contains a portion.
    #[must_use]
    pub fn opens_at_us(&self, full_at_us: i64) -> i64 {
        let beyond = f64::from(self.burst - self.portion());
        full_at_us.saturating_sub((beyond * SECOND_US / self.per_second).floor() as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_bucket_gives_its_burst_and_then_its_rate() {
        let rate = Rate::new(10.0, 5);
        assert_eq!(rate.allows(0, 1), 5);
        let full_at_us = rate.debit(0, 1_000_000, 5);
        assert_eq!(rate.allows(full_at_us, 1_000_000), 0);
        assert_eq!(rate.allows(full_at_us, 1_100_000), 1);
        assert_eq!(rate.allows(full_at_us, 9_000_000), 5, "it never holds more than its burst");
    }

    #[test]
    fn a_debt_is_paid_back_before_anything_starts() {
        let rate = Rate::new(10.0, 1);
        let full_at_us = rate.debit(0, 1_000_000, 4);
        assert_eq!(rate.tokens(full_at_us, 1_000_000), -3.0);
        assert_eq!(rate.allows(full_at_us, 1_300_000), 0);
        assert_eq!(rate.allows(full_at_us, 1_400_000), 1);
    }

    proptest! {
        #[test]
        fn no_window_sees_more_than_burst_and_rate_allow(
            per_second in 0.1f64..10_000.0,
            burst in 1u32..500,
            waits_us in proptest::collection::vec(0i64..200_000, 1..200),
        ) {
            let rate = Rate::new(per_second, burst);
            let (mut full_at_us, mut now_us) = (0, 1_000_000);
            let mut starts: Vec<(i64, u32)> = Vec::new();
            for wait_us in waits_us {
                now_us += wait_us;
                let allowed = rate.allows(full_at_us, now_us);
                full_at_us = rate.debit(full_at_us, now_us, allowed);
                starts.push((now_us, allowed));
                for (at, &(from_us, _)) in starts.iter().enumerate() {
                    let in_window: u32 = starts[at..].iter().map(|(_, starts)| starts).sum();
                    let most = f64::from(burst) + (now_us - from_us) as f64 * per_second / SECOND_US;
                    prop_assert!(f64::from(in_window) <= most + 1e-6);
                }
            }
        }

        #[test]
        fn it_opens_when_it_says(per_second in 0.1f64..10_000.0, burst in 1u32..500, starts in 1u32..2000) {
            let rate = Rate::new(per_second, burst);
            let full_at_us = rate.debit(0, 1_000_000, starts);
            let opens_at_us = rate.opens_at_us(full_at_us);
            prop_assert!(rate.allows(full_at_us, opens_at_us + 2) > 0);
            prop_assert_eq!(rate.allows(full_at_us, opens_at_us - 2), 0);
        }
    }
}

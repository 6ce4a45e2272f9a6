//! Retry policy: delays between attempts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::transition::Verb;

/// Exponential backoff with jitter and a cap.
///
/// The wait after the n-th failure is `base × 2^(n-1)`, at most `cap`, distributed uniformly over ± `jitter` of itself
/// ("equal jitter" around the exponential, so that jobs that failed together do not return together).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The wait after the first failure.
    pub base: Duration,
    /// The maximum wait, jitter included.
    pub cap: Duration,
    /// The random share of the wait: 0.0 for none, 1.0 for a range from zero to double.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    /// 1 s, 2 s, 4 s, … up to one hour, ± 10 %.
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_secs(3600), jitter: 0.1 }
    }
}

/// A retry policy that contradicts itself.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidRetryPolicy {
    /// The first wait is longer than the longest one.
    #[error("the first wait ({base:?}) is longer than the cap ({cap:?})")]
    BaseAboveCap {
        /// The first wait.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// The random share is no share.
    #[error("the jitter must be 0 to 1, not {0}")]
    Jitter(f64),
}

impl RetryPolicy {
    /// Checks that the waits and the jitter make sense.
    ///
    /// # Errors
    /// [`InvalidRetryPolicy`] with the fault.
    pub fn check(&self) -> Result<(), InvalidRetryPolicy> {
        let Self { base, cap, jitter } = *self;
        match () {
            () if base > cap => Err(InvalidRetryPolicy::BaseAboveCap { base, cap }),
            () if !(0.0..=1.0).contains(&jitter) => Err(InvalidRetryPolicy::Jitter(jitter)),
            () => Ok(()),
        }
    }

    /// Returns a policy with the same wait after every failure, without jitter.
    #[must_use]
    pub const fn fixed(wait: Duration) -> Self {
        Self { base: wait, cap: wait, jitter: 0.0 }
    }

    /// Returns the wait after the failure of attempt number `attempt`, counted from 1. `random` is uniform in `[0, 1)`
    /// and is drawn by the caller, so that this function is deterministic.
    #[must_use]
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(62);
        let exponential = self.base.as_secs_f64() * 2f64.powi(doublings.cast_signed());
        let spread = 1.0 + self.jitter.clamp(0.0, 1.0) * (2.0 * random - 1.0);
        let seconds = (exponential.min(self.cap.as_secs_f64()) * spread).min(self.cap.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(self.cap)
    }

    /// Returns what follows the failure of attempt `attempt` out of `max_attempts`: a retry after a delay, or a
    /// permanent failure. `asked` is a delay that the failure specified, such as a `Retry-After`; it applies when it is
    /// longer than the backoff.
    #[must_use]
    pub fn after_failure(
        &self,
        attempt: u32,
        max_attempts: u32,
        retryable: bool,
        asked: Option<Duration>,
        random: f64,
    ) -> (Verb, Duration) {
        if !retryable || attempt >= max_attempts {
            return (Verb::Fail, Duration::ZERO);
        }
        (Verb::Retry, self.delay(attempt, random).max(asked.unwrap_or_default()))
    }
}

/// Returns the number of failures from which the backoff of a job with a lost worker is computed. It is 1 for a run of a bulk job that
/// has finished a chunk since its claim, so that repeated crashes do not lengthen its wait.
#[must_use]
pub const fn failures_counted(attempt: u32, progressed: bool) -> u32 {
    if progressed { 1 } else { attempt }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn waits_double_until_the_cap() {
        let policy = RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(10), jitter: 0.0 };
        let waits: Vec<u64> = (1..=5).map(|n| policy.delay(n, 0.5).as_secs()).collect();
        assert_eq!(waits, [2, 4, 8, 10, 10]);
    }

    #[test]
    fn the_last_attempt_and_final_errors_end_the_job() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.after_failure(3, 3, true, None, 0.5).0, Verb::Fail);
        assert_eq!(policy.after_failure(1, 3, false, None, 0.5).0, Verb::Fail);
        assert_eq!(policy.after_failure(2, 3, true, None, 0.5).0, Verb::Retry);
    }

    #[test]
    fn a_longer_wait_that_the_failure_asks_for_is_honoured() {
        let hour = Duration::from_secs(3600);
        assert_eq!(RetryPolicy::default().after_failure(1, 3, true, Some(hour), 0.5).1, hour);
    }

    #[test]
    fn the_longest_durations_are_waits_too() {
        assert_eq!(RetryPolicy::fixed(Duration::MAX).delay(1, 0.5), Duration::MAX);
    }

    #[test]
    fn a_first_wait_above_the_cap_and_a_jitter_that_is_no_share_are_refused() {
        let check = |base, cap, jitter| RetryPolicy { base, cap, jitter }.check().map_err(|e| e.to_string());
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(check(second, second, 1.0), Ok(()));
        assert_eq!(
            check(minute, second, 0.0),
            Err("the first wait (60s) is longer than the cap (1s)".to_owned())
        );
        assert_eq!(check(second, minute, 1.5), Err("the jitter must be 0 to 1, not 1.5".to_owned()));
        assert_eq!(check(second, minute, f64::NAN), Err("the jitter must be 0 to 1, not NaN".to_owned()));
    }

    proptest! {
        #[test]
        fn no_wait_exceeds_the_cap(attempt in 0u32..=u32::MAX, random in 0.0f64..1.0, jitter in 0.0f64..=1.0) {
            let policy = RetryPolicy { jitter, ..RetryPolicy::default() };
            prop_assert!(policy.delay(attempt, random) <= policy.cap);
        }
    }
}

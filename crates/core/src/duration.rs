//! Durations as stores keep them.

use std::time::Duration;

/// The longest wait there is: a hundred years. Longer ones, which are mistakes or mean "never", become this,
/// so that no sum with a date leaves the calendar.
pub const WAIT_MAX: Duration = Duration::from_secs(100 * 36525 * 864);

/// Whole milliseconds that are not shorter than the duration, so that no backoff ends early; at most
/// [`WAIT_MAX`].
#[must_use]
pub fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.min(WAIT_MAX).as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::from_micros(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(250)), 250);
    }

    #[test]
    fn no_wait_is_longer_than_a_hundred_years() {
        assert_eq!(whole_ms(Duration::MAX), 36525 * 86_400_000);
    }
}

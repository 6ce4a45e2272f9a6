//! Conversion and limits of durations for storage.

use std::time::Duration;

use jiff::Timestamp;

use crate::job::error::InvalidJob;

/// The longest wait: 100 years, so that adding it to a date does not overflow the calendar. Longer waits from callers are
/// rejected; longer computed waits are truncated ([`whole_ms`]).
pub const WAIT_MAX: Duration = Duration::from_secs(100 * 36525 * 864);

/// Returns the time from one instant to a later one; zero if it is not later.
#[must_use]
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    to.duration_since(from).try_into().unwrap_or_default()
}

/// Returns the duration in whole milliseconds, rounded up so that no backoff ends early; at most [`WAIT_MAX`].
#[must_use]
pub fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.min(WAIT_MAX).as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// Parses a duration such as `90s`, `10m` or `1h 30m`, up to [`WAIT_MAX`].
///
/// # Errors
/// A message with the accepted forms.
pub fn parse(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|_| format!("{text:?} is no duration; a duration looks like 90s, 10m, 7d or \"1h 30m\""))?;
    if duration > WAIT_MAX {
        return Err("it is longer than a hundred years; give a shorter duration".to_owned());
    }
    Ok(duration)
}

/// Parses a duration greater than zero.
///
/// # Errors
/// As [`parse`].
pub fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        duration => Ok(duration),
    }
}

/// Formats a duration exactly, as [`parse`] reads it: `1h 30m`, `100d`. The largest unit is a day, since months and years differ in length.
#[must_use]
pub fn exact(duration: Duration) -> String {
    let days = duration.as_secs() / 86_400;
    let rest = duration.saturating_sub(Duration::from_secs(days * 86_400));
    match (days, rest) {
        (0, rest) => humantime::format_duration(rest).to_string(),
        (days, Duration::ZERO) => format!("{days}d"),
        (days, rest) => format!("{days}d {}", humantime::format_duration(rest)),
    }
}

/// Rejects a wait longer than [`WAIT_MAX`].
///
/// # Errors
/// [`InvalidJob::OutOfRange`] with the name of the field.
pub(crate) fn check_wait(field: &'static str, wait: Duration) -> Result<(), InvalidJob> {
    if wait <= WAIT_MAX {
        return Ok(());
    }
    let value = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Err(InvalidJob::OutOfRange { field, value, range: "at most 3155760000000 (a hundred years)" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_durations_have_days_as_their_largest_unit() {
        for (seconds, text) in
            [(0, "0s"), (5_400, "1h 30m"), (86_400, "1d"), (90_000, "1d 1h"), (8_640_000, "100d")]
        {
            assert_eq!(exact(Duration::from_secs(seconds)), text);
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)));
        }
        assert_eq!(exact(Duration::from_millis(86_400_001)), "1d 1ms");
    }

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        assert_eq!(whole_ms(Duration::ZERO), 0);
        assert_eq!(whole_ms(Duration::from_micros(1)), 1);
        assert_eq!(whole_ms(Duration::from_millis(250)), 250);
    }

    #[test]
    fn no_wait_is_longer_than_a_hundred_years() {
        assert_eq!(whole_ms(Duration::MAX), 36525 * 86_400_000);
        assert_eq!(check_wait("delay_ms", WAIT_MAX), Ok(()));
        let refused = check_wait("delay_ms", WAIT_MAX + Duration::from_millis(1)).unwrap_err();
        let words = "delay_ms is 3155760000001; it must be at most 3155760000000 (a hundred years)";
        assert_eq!(refused.to_string(), words);
    }
}

//! The store's clock: this machine's, in Unix milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use milepost_core::duration::whole_ms;
use milepost_core::job::StartAt;

/// Returns the current time in Unix milliseconds.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Converts Unix milliseconds to Unix microseconds, the unit of token buckets.
pub(crate) const fn micros(at_ms: i64) -> i64 {
    at_ms.saturating_mul(1000)
}

/// Returns the time `delay` after `from_ms`, at most the latest time that can be represented.
pub(crate) fn later_ms(from_ms: i64, delay: Duration) -> i64 {
    from_ms.saturating_add(whole_ms(delay)).min(Timestamp::MAX.as_millisecond())
}

/// Returns the earliest start time of a job that was accepted at `now_ms`.
pub(crate) fn start_ms(start: StartAt, now_ms: i64) -> i64 {
    match start {
        StartAt::Now => now_ms,
        StartAt::After(delay) => later_ms(now_ms, delay),
        StartAt::At(at) => {
            let floor = at.as_millisecond();
            let beyond = i64::from(at.subsec_nanosecond().rem_euclid(1_000_000) > 0);
            floor.saturating_add(beyond).min(Timestamp::MAX.as_millisecond())
        }
    }
}

//! Schedules: cron expressions, intervals and time zones.

use jiff::Timestamp;
use milepost_core::schedule::Spec;

use crate::check;

/// The number of ticks that are computed for each schedule.
const TICKS: usize = 8;

/// Parses a specification, a time zone and a time in seconds, one on a line. Ticks are ascending, and the same after the specification was
/// printed and parsed.
///
/// # Panics
/// A property does not hold.
pub fn target(input: &[u8]) {
    let Some([text, zone, start]) = check::lines::<3>(input) else { return };
    let spec = match Spec::parse(text, zone) {
        Ok(spec) => spec,
        Err(invalid) => return check::message(&invalid.to_string()),
    };
    let again = Spec::parse(&spec.to_string(), spec.zone_name());
    assert!(again.as_ref().is_ok_and(|again| *again == spec), "{spec:?} is printed as {spec}: {again:?}");
    let start = start.trim().parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let mut after = start.unwrap_or(Timestamp::UNIX_EPOCH);
    for _ in 0..TICKS {
        let Some(tick) = spec.next_after(after) else { return };
        assert!(tick > after, "{spec} ticks at {tick}, after {after}");
        assert_eq!(tick.subsec_nanosecond(), 0, "{spec} ticks at {tick}");
        let just_before = tick.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(after).max(after);
        assert_eq!(spec.next_after(just_before), Some(tick), "{spec} omits a tick");
        let middle = after.as_second() + (tick.as_second() - after.as_second()) / 2;
        let middle = Timestamp::from_second(middle).unwrap_or(after).max(after);
        if middle < tick {
            assert_eq!(spec.next_after(middle), Some(tick), "{spec} ticks otherwise from {middle}");
        }
        after = tick;
    }
}

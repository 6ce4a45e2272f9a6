//! Schedules with fixed intervals.

use crate::ticks::*;

#[test]
fn ticks_are_multiples_since_1970_whenever_one_looks() {
    let spec = Spec::every(Duration::from_secs(600)).unwrap();
    for from in ["2026-05-06T07:00:00Z", "2026-05-06T07:04:59.999Z", "2026-05-06T07:09:59Z"] {
        assert_eq!(spec.next_after(at(from)), Some(at("2026-05-06T07:10:00Z")), "{from}");
    }
    assert_eq!(spec.next_after(at("1969-12-31T23:55:00.5Z")), Some(at("1970-01-01T00:00:00Z")));
}

#[test]
fn an_interval_is_whole_seconds_and_bounded() {
    let refused = |interval| matches!(Spec::every(interval), Err(InvalidSchedule::Interval { .. }));
    assert!(refused(Duration::ZERO));
    assert!(refused(Duration::from_millis(1500)));
    assert!(refused(Duration::from_secs(367 * 24 * 3600)));
    for text in ["@every", "@every ", "@every -5m", "@every soon", "@every 1ms", "@everything"] {
        assert!(Spec::parse(text, "UTC").is_err(), "{text}");
    }
}

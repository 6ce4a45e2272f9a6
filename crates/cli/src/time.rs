//! Times and lengths of time, in words.

use std::time::Duration;

use jiff::Timestamp;

/// A time as people say it: `12 s ago`, `in 5 min`.
pub(crate) fn relative(time: Timestamp, now: Timestamp) -> String {
    let past = now.duration_since(time);
    let words = length(past.unsigned_abs());
    if past.unsigned_abs() < Duration::from_secs(1) {
        "now".to_owned()
    } else if past.is_positive() {
        format!("{words} ago")
    } else {
        format!("in {words}")
    }
}

/// A time exactly and relative to now.
pub(crate) fn exact(time: Timestamp, now: Timestamp) -> String {
    format!("{time:.3} ({})", relative(time, now))
}

/// A length of time in its largest fitting unit.
pub(crate) fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn times_are_told_as_people_say_them() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let at = |seconds: i64| relative(now + SignedDuration::from_secs(seconds), now);
        assert_eq!(at(0), "now");
        assert_eq!(at(-12), "12 s ago");
        assert_eq!(at(600), "in 10 min");
        assert_eq!(at(-7_200), "2 h ago");
        assert_eq!(at(-864_000), "10 d ago");
    }
}

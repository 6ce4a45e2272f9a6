//! Times, durations, numbers and JSON as text, for the console and the command line.

mod pretty;

use std::time::Duration;

use jiff::Timestamp;

pub use self::pretty::pretty;

/// Formats a time relative to now: `12 s ago`, `in 5 min`.
#[must_use]
pub fn relative(time: Timestamp, now: Timestamp) -> String {
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

/// Formats a duration in its largest suitable unit.
#[must_use]
pub fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Formats a number with thousands separators: `12,300`.
pub fn count(number: impl TryInto<i128>) -> String {
    let number: i128 = number.try_into().unwrap_or_default();
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// Formats a number with a noun: `1 job`, `12 jobs`.
#[must_use]
pub fn several(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", count(number)) }
}

/// Formats a rate: `2,000 rows/s`, or `0.5 rows/s`.
#[must_use]
pub fn per_second(rows: f64) -> String {
    if rows < 10.0 { format!("{rows:.1} rows/s") } else { format!("{} rows/s", count(rows as u64)) }
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

    #[test]
    fn numbers_are_read_by_threes() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(-1_234_567)],
            ["0", "999", "1,000", "-1,234,567"]
        );
    }
}

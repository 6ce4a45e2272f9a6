//! Times, durations, numbers and JSON as text, for the console and the command line.

mod pretty;

use std::time::Duration;

use jiff::Timestamp;

pub use self::pretty::pretty;

/// Formats a time relative to now: `12 s ago`, `in 5 min`.
#[must_use]
pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let past = now.duration_since(time);
    let distance = past.unsigned_abs();
    if distance < Duration::from_secs(1) {
        "now".to_owned()
    } else if past.is_positive() {
        // Completed units, as ages are given.
        let unit = unit_of(distance.as_secs());
        format!("{} {} ago", distance.as_secs() / unit.seconds, unit.name)
    } else {
        format!("in {}", length(distance))
    }
}

/// Formats a duration in its largest suitable unit, rounded.
#[must_use]
pub fn length(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{} ms", duration.as_millis());
    }
    let seconds = duration.as_secs().saturating_add(u64::from(duration.subsec_millis() >= 500));
    let unit = unit_of(seconds);
    format!("{} {}", seconds.saturating_add(unit.seconds / 2) / unit.seconds, unit.name)
}

struct Unit {
    name: &'static str,
    seconds: u64,
}

/// Returns the largest unit of which a duration has at least two; for less than two minutes, the second.
fn unit_of(seconds: u64) -> Unit {
    let units = [
        Unit { name: "d", seconds: 86_400 },
        Unit { name: "h", seconds: 3_600 },
        Unit { name: "min", seconds: 60 },
    ];
    let suits = |unit: &Unit| seconds / unit.seconds >= 2;
    units.into_iter().find(suits).unwrap_or(Unit { name: "s", seconds: 1 })
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
        assert_eq!([at(-119), at(-239), at(239)], ["119 s ago", "3 min ago", "in 4 min"]);
    }

    #[test]
    fn durations_are_rounded() {
        let of = |millis: u64| length(Duration::from_millis(millis));
        assert_eq!([of(0), of(999), of(1_499), of(1_500)], ["0 ms", "999 ms", "1 s", "2 s"]);
        assert_eq!([of(119_499), of(149_000), of(150_000)], ["119 s", "2 min", "3 min"]);
        assert_eq!(
            [of(7_199_000), of(9_000_000), of(158_400_000), of(216_000_000)],
            ["120 min", "3 h", "44 h", "3 d"]
        );
        assert_eq!(length(Duration::MAX), "213503982334601 d");
    }

    #[test]
    fn numbers_are_read_by_threes() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(-1_234_567)],
            ["0", "999", "1,000", "-1,234,567"]
        );
    }
}

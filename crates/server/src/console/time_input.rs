//! Parsing of times that users enter: with an offset, or in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Parses a time. The error describes the accepted formats.
pub(super) fn read(text: &str) -> Result<Timestamp, String> {
    let exact = text.parse::<Timestamp>().ok();
    let at = exact.or_else(|| of_clock(text)).filter(|at| *at >= Timestamp::UNIX_EPOCH);
    at.ok_or_else(|| {
        format!(
            "since: {text:?} is not a time; write it as 2026-11-23 14:00 (UTC) or 2026-11-23T14:00:00+01:00"
        )
    })
}

fn of_clock(text: &str) -> Option<Timestamp> {
    // The parser would ignore the name of a time zone.
    let clock = text.parse::<DateTime>().ok().filter(|_| !text.contains('['))?;
    TimeZone::UTC.to_timestamp(clock).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_people_and_programs_write_it() {
        let at = |text: &str| read(text).map(|at| at.to_string());
        for (text, is) in [
            ("2026-11-23 14:00", "2026-11-23T14:00:00Z"),
            ("2026-11-23T14:00:30.5", "2026-11-23T14:00:30.5Z"),
            ("2026-11-23", "2026-11-23T00:00:00Z"),
            ("2026-11-23T14:00:00Z", "2026-11-23T14:00:00Z"),
            ("2026-11-23 14:00+01:00", "2026-11-23T13:00:00Z"),
        ] {
            assert_eq!(at(text), Ok(is.to_owned()), "{text}");
        }
        for text in
            ["yesterday", "14:00", "2026-13-01", "2026-11-23T14:00[Europe/Berlin]", "1969-12-31 23:59"]
        {
            assert!(at(text).is_err_and(|words| words.contains("is not a time; write it as")), "{text}");
        }
    }
}

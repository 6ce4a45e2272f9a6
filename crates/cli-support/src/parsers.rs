//! Parsers of the values of options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
pub use milepost_core::duration::{parse as duration, parse_positive as positive_duration};
use milepost_core::ident::JobId;
use milepost_core::job::{Priority, StartAt};
use milepost_core::retention::Keep;
use milepost_core::state::JobState;

/// Parses a complete job id.
pub fn job_id(text: &str) -> Result<JobId, String> {
    text.parse().map_err(|_| "give the full job id, as `milepost jobs list` shows it".to_owned())
}

/// Parses a retention period: a duration, or `forever`.
pub fn keep(text: &str) -> Result<Keep, String> {
    text.parse()
}

/// Parses a point in time: RFC 3339, or `in` and a duration.
pub fn start_at(text: &str) -> Result<StartAt, String> {
    if let Some(wait) = text.strip_prefix("in ") {
        return duration(wait.trim()).map(StartAt::After);
    }
    point_in_time(text).map(StartAt::At).map_err(|e| format!("{e}, or \"in 10m\""))
}

/// Parses a point in time in RFC 3339 format.
pub fn point_in_time(text: &str) -> Result<Timestamp, String> {
    let words = "it is not a time before 9999-12-30; a time looks like 2026-05-01T09:00:00Z or 2026-05-01T09:00:00+02:00";
    text.parse().map_err(|_| words.to_owned())
}

/// Parses a point in time in RFC 3339 format, or how long ago it was by this machine's clock: `2h`.
pub fn past_time(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = point_in_time(text) {
        return Ok(at);
    }
    let ago = duration(text)
        .map_err(|_| "give a time such as 2026-11-22T08:00:00Z, or a duration ago, such as 2h".to_owned())?;
    Timestamp::now().checked_sub(ago).map_err(|error| error.to_string())
}

/// Parses a priority from 1 (first) to 4 (last).
pub fn priority(text: &str) -> Result<Priority, String> {
    let number: u8 = text.parse().map_err(|_| "it must be 1, 2, 3 or 4".to_owned())?;
    Priority::try_from(number).map_err(|e| e.to_string())
}

/// Parses the name of a job state.
pub fn job_state() -> impl TypedValueParser<Value = JobState> {
    PossibleValuesParser::new(JobState::ALL.iter().map(|state| state.as_str()))
        .try_map(|name| name.parse::<JobState>())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_in_the_past_is_a_time_or_how_long_ago_it_was() {
        assert_eq!(past_time("2026-05-01T09:00:00Z"), point_in_time("2026-05-01T09:00:00Z"));
        let (before, two_hours) = (Timestamp::now(), jiff::SignedDuration::from_hours(2));
        let at = past_time("2h").unwrap();
        assert!(before - two_hours <= at && at <= Timestamp::now() - two_hours, "{at}");
        let refused = past_time("yesterday").unwrap_err();
        assert!(refused.contains("2026-11-22T08:00:00Z") && refused.contains("2h"), "{refused}");
    }

    #[test]
    fn what_is_kept_is_kept_for_a_time_or_forever() {
        assert_eq!(keep("7d"), Ok(Keep::days(7)));
        assert_eq!(keep("forever"), Ok(Keep::Forever));
        assert!(keep("always").is_err_and(|why| why.contains("forever")));
    }

    #[test]
    fn a_start_is_a_time_or_a_wait() {
        assert_eq!(start_at("in 10m"), Ok(StartAt::After(Duration::from_secs(600))));
        assert!(matches!(start_at("2026-05-01T09:00:00+02:00"), Ok(StartAt::At(_))));
        assert!(start_at("tomorrow").is_err_and(|why| why.contains("in 10m")));
        assert!(start_at("2026-05-01T09:00:00").is_err(), "a time without a zone is ambiguous");
    }
}

//! Text descriptions of runs.

use std::time::Duration;

use jiff::Timestamp;
use milepost::bulk::{BulkView, Settings};
use milepost_core::state::JobState;

pub(super) use milepost_core::format::{count, per_second as rate};

use crate::time::{length, relative};

/// Returns the completed share, for example `43 %`. It is rounded down, so that an unfinished run never shows 100 %.
pub(super) fn percent(view: &BulkView) -> Option<String> {
    let percent = view.share()? * 100.0;
    Some(match percent {
        0.0..10.0 if percent > 0.0 => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
        _ => format!("{:.0} %", percent.floor()),
    })
}

/// Describes the position of a run in its group: `running`, `holds it`, `next`, `3rd`, or when it may start.
pub(super) fn turn(view: &BulkView, now: Timestamp) -> String {
    match (view.state, view.next, view.due_at) {
        (JobState::Running, ..) => "running".to_owned(),
        (JobState::Blocked | JobState::Pending, _, Some(at)) if view.started_at.is_none() && at > now => {
            relative(at, now)
        }
        (JobState::Blocked, Some(place), _) => ordinal(place),
        (JobState::Pending | JobState::RetryWait, ..) => "holds it".to_owned(),
        _ => String::new(),
    }
}

/// Formats a position in the queue of a group.
pub(super) fn ordinal(place: u32) -> String {
    let ending = match (place % 10, place % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    if place == 1 { "next".to_owned() } else { format!("{place}{ending}") }
}

/// Describes the settings that operators have changed, if any.
pub(super) fn settings(settings: &Settings) -> Option<String> {
    let Settings { rows_per_s, duty, chunk_ms, chunk_rows_min, chunk_rows_max } = *settings;
    let all = [
        rows_per_s.map(|rows| format!("at most {}", rate(rows))),
        duty.map(|duty| format!("chunks take {:.0} % of the time at most", duty * 100.0)),
        chunk_ms.map(|ms| format!("target {ms} ms per chunk")),
        chunk_rows_min.map(|rows| format!("at least {} rows per chunk", count(rows))),
        chunk_rows_max.map(|rows| format!("at most {} rows per chunk", count(rows))),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Describes the progress: `12,300 of 1,000,000 (1.2 %); 3 failed`.
pub(super) fn progress(view: &BulkView) -> String {
    let passed = count(view.passed());
    let mut words = match view.total {
        Some(total) => {
            let about = if total.exact { "" } else { "about " };
            let percent = percent(view).map_or_else(String::new, |percent| format!(" ({percent})"));
            format!("{passed} of {about}{}{percent}", count(total.rows))
        }
        None => format!("{passed} targets"),
    };
    if view.counts.failed > 0 {
        words.push_str(&format!("; {} failed", count(view.counts.failed)));
    }
    words
}

/// Formats a duration in milliseconds.
pub(super) fn span(ms: u64) -> String {
    length(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_rates_are_told_as_people_say_them() {
        let places: Vec<String> = [1, 2, 3, 4, 11, 12, 21, 22, 103, 111].into_iter().map(ordinal).collect();
        assert_eq!(places, ["next", "2nd", "3rd", "4th", "11th", "12th", "21st", "22nd", "103rd", "111th"]);
        assert_eq!((rate(0.5), rate(12_345.6)), ("0.5 rows/s".to_owned(), "12,345 rows/s".to_owned()));
    }
}

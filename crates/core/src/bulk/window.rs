//! Time windows in which chunks may start.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use thiserror::Error;

/// The number of days in which the next opening is searched: one week and one day covers every weekday.
const DAYS_AHEAD: i64 = 8;

/// A range between two times of day, on some days of the week. A window whose end is before its start extends past
/// midnight and belongs to the day on which it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    from: Time,
    to: Time,
    days: Vec<Weekday>,
}

/// An invalid window.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidWindow {
    /// It starts and ends at the same time.
    #[error("the window from {at} to {at} never opens; to allow the whole day, remove the windows")]
    Empty {
        /// The time.
        at: Time,
    },
    /// It has no day of the week.
    #[error("the window has no day of the week, so it never opens")]
    NoDay,
}

impl Window {
    /// Creates a window on these days of the week.
    ///
    /// # Errors
    /// [`InvalidWindow`] when it never opens.
    pub fn new(from: Time, to: Time, days: Vec<Weekday>) -> Result<Self, InvalidWindow> {
        if from == to {
            return Err(InvalidWindow::Empty { at: from });
        }
        if days.is_empty() {
            return Err(InvalidWindow::NoDay);
        }
        Ok(Self { from, to, days })
    }

    /// Returns when the window that starts on this day opens and closes. A local time that is skipped by a clock change
    /// is moved past the gap. For a repeated local time, the window opens at the first occurrence and closes at the
    /// second.
    fn on(&self, date: Date, zone: &TimeZone) -> Option<(Timestamp, Timestamp)> {
        if !self.days.contains(&date.weekday()) {
            return None;
        }
        let end = if self.to > self.from { date } else { date.tomorrow().ok()? };
        let opens_at = zone.to_ambiguous_timestamp(date.to_datetime(self.from)).compatible().ok()?;
        let closes = zone.to_ambiguous_timestamp(end.to_datetime(self.to));
        let closes_at =
            if closes.is_ambiguous() { closes.later().ok()? } else { closes.compatible().ok()? };
        Some((opens_at, closes_at))
    }
}

/// The windows of a bulk job in one time zone. Without windows it may always run.
#[derive(Clone, Debug)]
pub struct Windows {
    windows: Vec<Window>,
    zone: TimeZone,
}

impl Windows {
    /// Creates windows in a time zone.
    #[must_use]
    pub fn new(windows: Vec<Window>, zone: TimeZone) -> Self {
        Self { windows, zone }
    }

    /// Returns `None` when a chunk may start now, or else the time at which it may start.
    #[must_use]
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.windows.is_empty() {
            return None;
        }
        let today = now.to_zoned(self.zone.clone()).date();
        let mut next: Option<Timestamp> = None;
        // A window of yesterday may extend past midnight.
        for days in -1..DAYS_AHEAD {
            let Ok(date) = today.checked_add(Span::new().days(days)) else { continue };
            for (opens_at, closes_at) in self.windows.iter().filter_map(|window| window.on(date, &self.zone))
            {
                if opens_at <= now && now < closes_at {
                    return None;
                }
                if opens_at > now {
                    next = next.into_iter().chain([opens_at]).min();
                }
            }
        }
        // Beyond the calendar's range: never.
        Some(next.unwrap_or(Timestamp::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_DAY: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    fn windows(from: &str, to: &str, days: &[Weekday]) -> Windows {
        let window = Window::new(from.parse().unwrap(), to.parse().unwrap(), days.to_vec()).unwrap();
        Windows::new(vec![window], TimeZone::get("Europe/Berlin").unwrap())
    }

    /// Returns for how many minutes the windows are closed from this time on, in Berlin.
    fn closed_for(windows: &Windows, at: &str) -> i64 {
        let at: Timestamp = format!("{at}[Europe/Berlin]").parse::<jiff::Zoned>().unwrap().timestamp();
        windows.opens_at(at).map_or(0, |opens_at| (opens_at.as_second() - at.as_second()) / 60)
    }

    #[test]
    fn a_window_is_open_from_its_first_to_before_its_last_moment() {
        let day = windows("09:00", "17:30", &EVERY_DAY);
        assert_eq!(closed_for(&day, "2026-02-03T08:59"), 1);
        assert_eq!(closed_for(&day, "2026-02-03T09:00"), 0);
        assert_eq!(closed_for(&day, "2026-02-03T17:29"), 0);
        assert_eq!(closed_for(&day, "2026-02-03T17:30"), 15 * 60 + 30);
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_begins() {
        let night = windows("22:00", "06:00", &[Weekday::Friday]);
        // 2026-02-06 is a Friday.
        assert_eq!(closed_for(&night, "2026-02-06T21:00"), 60);
        assert_eq!(closed_for(&night, "2026-02-07T05:59"), 0);
        assert_eq!(closed_for(&night, "2026-02-07T06:00"), (6 * 24 + 16) * 60);
        assert_eq!(closed_for(&night, "2026-02-06T05:00"), 17 * 60, "not in the night before Friday");
    }

    #[test]
    fn windows_heed_clocks_that_are_changed() {
        // 02:00 to 03:00 does not exist on 2026-03-29 and occurs twice on 2026-10-25.
        let gap = windows("02:30", "04:00", &EVERY_DAY);
        assert_eq!(closed_for(&gap, "2026-03-29T01:59"), 31, "02:30 is 03:30 that day");
        let twice = windows("01:00", "02:30", &EVERY_DAY);
        assert_eq!(closed_for(&twice, "2026-10-25T02:10+02:00"), 0);
        assert_eq!(closed_for(&twice, "2026-10-25T02:10+01:00"), 0, "until it is 02:30 for the second time");
    }

    #[test]
    fn the_first_of_several_windows_counts() {
        let mut two = windows("12:00", "13:00", &EVERY_DAY);
        two.windows.extend(windows("08:00", "09:00", &[Weekday::Tuesday]).windows);
        assert_eq!(closed_for(&two, "2026-02-03T07:00"), 60);
        assert_eq!(closed_for(&two, "2026-02-04T07:00"), 5 * 60);
        assert_eq!(Windows::new(Vec::new(), TimeZone::UTC).opens_at(Timestamp::UNIX_EPOCH), None);
    }

    #[test]
    fn a_window_that_never_opens_is_refused() {
        let noon: Time = "12:00".parse().unwrap();
        assert_eq!(Window::new(noon, noon, EVERY_DAY.to_vec()), Err(InvalidWindow::Empty { at: noon }));
        assert_eq!(Window::new(noon, Time::midnight(), Vec::new()), Err(InvalidWindow::NoDay));
    }
}

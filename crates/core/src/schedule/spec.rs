//! Specifications of tick times: cron expressions and fixed intervals.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::{Cron, InvalidSchedule};
use crate::duration::exact;

/// The prefix of intervals, as in `@every 10m`.
const EVERY: &str = "@every";
/// The time zone stored with intervals, which have none.
const UTC: &str = "UTC";
/// The longest interval: 366 days.
const EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// The specification of a schedule's ticks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "SpecText")]
pub enum Spec {
    /// Wall-clock times in a time zone.
    Cron(Cron),
    /// A fixed interval.
    Every(Every),
}

impl Spec {
    /// Parses a cron expression, a macro such as `@daily`, or `@every` with a duration. `zone` is an IANA name and is
    /// ignored for intervals.
    ///
    /// # Errors
    /// [`InvalidSchedule`] with the invalid field, time zone or interval, and the allowed values.
    pub fn parse(text: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        match text.trim().strip_prefix(EVERY) {
            Some(interval) => Every::parse(interval.trim()).map(Self::Every),
            None => Self::cron(text, zone),
        }
    }

    /// Creates a specification of the wall-clock times in `zone` that match a cron expression.
    ///
    /// # Errors
    /// [`InvalidSchedule`] with the invalid field or time zone, and the allowed values.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        Cron::parse(expression, zone).map(Self::Cron)
    }

    /// Creates a specification of a fixed interval in whole seconds.
    ///
    /// # Errors
    /// [`InvalidSchedule::Interval`] when it is shorter than a second, longer than 366 days or has a fraction.
    pub fn every(interval: Duration) -> Result<Self, InvalidSchedule> {
        Every::new(interval).map(Self::Every)
    }

    /// Returns the first tick after this instant; `None` when no further tick is in the supported range of times.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(every) => every.next_after(after),
        }
    }

    /// Returns the ticks after this instant.
    pub fn ticks_after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        std::iter::successors(self.next_after(after), |tick| self.next_after(*tick))
    }

    /// Returns the last tick after `floor` and before `end`.
    pub(super) fn last_between(&self, floor: Timestamp, end: Timestamp) -> Option<Timestamp> {
        let before_end = |from: i64| {
            let from = Timestamp::from_second(from).ok()?.max(floor);
            self.next_after(from).filter(|tick| *tick < end)
        };
        // Doubles the distance before `end` until there is a tick in between, then searches for the last one by bisection.
        let (floor_s, end_s) = (floor.as_second(), end.as_second());
        let mut step = 1;
        let mut none_after = end_s;
        let mut some_after = loop {
            let from = (end_s.saturating_sub(step)).max(floor_s);
            if before_end(from).is_some() {
                break from;
            }
            if from == floor_s {
                return None;
            }
            none_after = from;
            step *= 2;
        };
        while none_after - some_after > 1 {
            let middle = some_after + (none_after - some_after) / 2;
            if before_end(middle).is_some() {
                some_after = middle;
            } else {
                none_after = middle;
            }
        }
        before_end(some_after)
    }

    /// Returns the time zone of its wall-clock times.
    #[must_use]
    pub fn zone(&self) -> TimeZone {
        match self {
            Self::Cron(cron) => cron.zone().clone(),
            Self::Every(_) => TimeZone::UTC,
        }
    }

    /// Returns the IANA name of that time zone.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        match self {
            Self::Cron(cron) => cron.zone_name(),
            Self::Every(_) => UTC,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(f),
            Self::Every(every) => write!(f, "{EVERY} {every}"),
        }
    }
}

/// The times of a schedule, as shown.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct SpecText {
    /// A cron expression, a macro such as `@daily`, or `@every` and an interval.
    spec: String,
    /// The time zone in which it is evaluated.
    zone: String,
}

impl From<Spec> for SpecText {
    fn from(spec: Spec) -> Self {
        Self { spec: spec.to_string(), zone: spec.zone_name().to_owned() }
    }
}

/// A fixed interval. Its ticks are its multiples since 1970-01-01T00:00:00Z, so that all nodes compute the same ones
/// and a restart does not move them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    interval_s: i64,
}

impl Every {
    fn new(interval: Duration) -> Result<Self, InvalidSchedule> {
        let usable = (Duration::from_secs(1)..=EVERY_MAX).contains(&interval) && interval.subsec_nanos() == 0;
        match i64::try_from(interval.as_secs()) {
            Ok(interval_s) if usable => Ok(Self { interval_s }),
            _ => Err(InvalidSchedule::Interval { text: exact(interval) }),
        }
    }

    fn parse(text: &str) -> Result<Self, InvalidSchedule> {
        let unusable = || InvalidSchedule::Interval { text: text.chars().take(60).collect() };
        let interval = humantime::parse_duration(text).map_err(|_| unusable())?;
        Self::new(interval).map_err(|_| unusable())
    }

    fn next_after(self, after: Timestamp) -> Option<Timestamp> {
        let after_s = after.as_nanosecond().div_euclid(1_000_000_000);
        let interval_s = i128::from(self.interval_s);
        let next_s = (after_s.div_euclid(interval_s) + 1) * interval_s;
        Timestamp::from_second(i64::try_from(next_s).ok()?).ok()
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&exact(Duration::from_secs(self.interval_s.unsigned_abs())))
    }
}

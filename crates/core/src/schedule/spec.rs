//! When a schedule ticks: by the clock on the wall, or at a fixed interval.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::{Cron, InvalidSchedule};

/// What intervals are written with: `@every 10m`.
const EVERY: &str = "@every";
/// The zone that stands with intervals, which have none.
const UTC: &str = "UTC";
/// The longest interval: 366 days.
const EVERY_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// When a schedule ticks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "SpecText")]
pub enum Spec {
    /// At wall-clock times of a zone.
    Cron(Cron),
    /// At a fixed interval.
    Every(Every),
}

impl Spec {
    /// Reads a cron expression, a macro such as `@daily`, or `@every` with a length of time. `zone` is an IANA
    /// name; intervals do not heed it.
    ///
    /// # Errors
    /// [`InvalidSchedule`] names the field, the zone or the interval and what is allowed.
    pub fn parse(text: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        match text.trim().strip_prefix(EVERY) {
            Some(interval) => Every::parse(interval.trim()).map(Self::Every),
            None => Self::cron(text, zone),
        }
    }

    /// At the wall-clock times of `zone` that a cron expression says.
    ///
    /// # Errors
    /// [`InvalidSchedule`] names the field or the zone and what is allowed.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        Cron::parse(expression, zone).map(Self::Cron)
    }

    /// At a fixed interval, in whole seconds.
    ///
    /// # Errors
    /// [`InvalidSchedule::Interval`] when it is shorter than a second, longer than 366 days or has a fraction.
    pub fn every(interval: Duration) -> Result<Self, InvalidSchedule> {
        Every::new(interval).map(Self::Every)
    }

    /// The first tick after this instant; `None` when there is none before the end of time.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(every) => every.next_after(after),
        }
    }

    /// The last tick that lies after `floor` and before `end`.
    pub(super) fn last_between(&self, floor: Timestamp, end: Timestamp) -> Option<Timestamp> {
        let before_end = |from: i64| {
            let from = Timestamp::from_second(from).ok()?.max(floor);
            self.next_after(from).filter(|tick| *tick < end)
        };
        // Looks back ever further until there is a tick, then closes in on the last one.
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

    /// The zone by whose clock it ticks.
    #[must_use]
    pub fn zone(&self) -> TimeZone {
        match self {
            Self::Cron(cron) => cron.zone().clone(),
            Self::Every(_) => TimeZone::UTC,
        }
    }

    /// The IANA name of that zone.
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

/// When a schedule ticks, as it is shown.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct SpecText {
    /// A cron expression, a macro such as `@daily`, or `@every` and an interval.
    spec: String,
    /// The time zone whose clock it goes by.
    zone: String,
}

impl From<Spec> for SpecText {
    fn from(spec: Spec) -> Self {
        Self { spec: spec.to_string(), zone: spec.zone_name().to_owned() }
    }
}

/// A fixed interval. Its ticks are the multiples of it since 1970-01-01T00:00:00Z, so that all nodes agree on
/// them and no restart moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    interval_s: i64,
}

impl Every {
    fn new(interval: Duration) -> Result<Self, InvalidSchedule> {
        let usable = (Duration::from_secs(1)..=EVERY_MAX).contains(&interval) && interval.subsec_nanos() == 0;
        match i64::try_from(interval.as_secs()) {
            Ok(interval_s) if usable => Ok(Self { interval_s }),
            _ => Err(InvalidSchedule::Interval { text: humantime::format_duration(interval).to_string() }),
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
        humantime::format_duration(Duration::from_secs(self.interval_s.unsigned_abs())).fmt(f)
    }
}

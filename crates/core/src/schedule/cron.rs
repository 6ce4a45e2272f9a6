//! Cron expressions and their wall-clock times, including clock changes.
//!
//! The library parses expressions and finds matching wall-clock times. This module converts them to instants:
//!
//! - *Fixed hours* (the hours field does not begin with `*`): each wall-clock time of a day is one tick. A time that is
//!   skipped by a clock change ticks at the first instant after the gap; a repeated time ticks at its first occurrence.
//!   Times that fall on the same instant are one tick.
//! - *Every hour* (`*`, `*/2`): every instant with a matching wall-clock time is a tick. Skipped times do not tick and
//!   repeated times tick twice, so that `*/15 * * * *` continues every fifteen minutes.

use std::fmt;
use std::sync::Arc;

use croner::Cron as Pattern;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{InvalidSchedule, zone};

/// The maximum length of an expression, in bytes.
const BYTES_MAX: usize = 500;

/// Macros for common expressions.
const MACROS: &[(&str, &str)] = &[
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];
const MACROS_KNOWN: &str = "@hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually";

/// A field of an expression.
struct Field {
    name: &'static str,
    /// The words allowed in addition to numbers and `*,-/#`.
    words: &'static [&'static str],
    allowed: &'static str,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "L"];

/// The fields, seconds first.
const FIELDS: [Field; 6] = [
    Field { name: "second", words: &[], allowed: "0 to 59, *, lists (0,30), ranges (0-10) and steps (*/15)" },
    Field { name: "minute", words: &[], allowed: "0 to 59, *, lists (0,30), ranges (0-10) and steps (*/15)" },
    Field { name: "hour", words: &[], allowed: "0 to 23, *, lists (6,18), ranges (9-17) and steps (*/2)" },
    Field {
        name: "day of month",
        words: &["L", "W", "LW"],
        allowed: "1 to 31, *, lists (1,15), ranges (1-7), steps (*/2), L (the last day) and 15W (the weekday nearest to the 15th)",
    },
    Field {
        name: "month",
        words: MONTHS,
        allowed: "1 to 12, JAN to DEC, *, lists (3,9), ranges (JUN-AUG) and steps (*/3)",
    },
    Field {
        name: "day of week",
        words: WEEKDAYS,
        allowed: "0 to 7 (0 and 7 are Sunday), SUN to SAT, *, lists (1,3), ranges (MON-FRI), steps (*/2), FRI#L (the last Friday) and MON#1 (the first Monday)",
    },
];

/// Wall-clock times in a time zone.
#[derive(Clone)]
pub struct Cron {
    /// The normalized expression or macro.
    text: String,
    pattern: Arc<Pattern>,
    zone: TimeZone,
    zone_name: String,
    fixed_hours: bool,
}

impl Cron {
    pub(super) fn parse(text: &str, zone: &str) -> Result<Self, InvalidSchedule> {
        let text = text.trim();
        let shortened = || text.chars().take(60).collect::<String>();
        let expression = match MACROS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            Some((_, expression)) => expression,
            None if text.starts_with('@') => {
                return Err(InvalidSchedule::Macro { text: shortened(), known: MACROS_KNOWN });
            }
            None => text,
        };
        let mut fields: Vec<&str> = expression.split_whitespace().collect();
        if text.len() > BYTES_MAX {
            let (text, bytes) = (shortened(), text.len());
            return Err(InvalidSchedule::TooLong { text, bytes, bytes_max: BYTES_MAX });
        }
        if !(5..=6).contains(&fields.len()) {
            return Err(InvalidSchedule::Fields { text: shortened(), found: fields.len() });
        }
        // Whitespace is normalized, so that equal fields make equal schedules.
        let normalized = fields.join(" ");
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        let pattern = read(&fields)?;
        let zone = zone::named(zone)?;
        let cron = Self {
            text: if expression == text { normalized } else { text.to_ascii_lowercase() },
            pattern: Arc::new(pattern),
            zone_name: zone.iana_name().unwrap_or("UTC").to_owned(),
            zone,
            fixed_hours: !fields[2].starts_with('*'),
        };
        match cron.next_wall(DateTime::constant(2000, 1, 1, 0, 0, 0, 0), true) {
            Some(_) => Ok(cron),
            None => Err(InvalidSchedule::Never { text: shortened() }),
        }
    }

    pub(super) const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    pub(super) fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// Returns the first tick after this instant.
    pub(super) fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        if self.fixed_hours { self.next_of_wall_times(after) } else { self.next_of_instants(after) }
    }

    /// Finds the next tick for fixed hours. Ascending wall-clock times have ascending instants, so the first later
    /// instant is the next tick.
    fn next_of_wall_times(&self, after: Timestamp) -> Option<Timestamp> {
        let mut wall = self.zone.to_datetime(after);
        loop {
            wall = self.next_wall(wall, false)?;
            let tick = self.instant(wall)?;
            if tick > after {
                return Some(tick);
            }
        }
    }

    /// Returns the instant of a wall-clock time: the first of two, or the first one after the gap that contains it.
    fn instant(&self, wall: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { after, .. } => self.next_change(after.to_timestamp(wall).ok()?),
        }
    }

    /// Finds the next tick for every hour. Between two clock changes, wall-clock times and instants correspond.
    fn next_of_instants(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = after;
        let mut inclusive = false;
        loop {
            let offset = self.zone.to_offset(from);
            let wall = self.next_wall(offset.to_datetime(from), inclusive)?;
            let tick = offset.to_timestamp(wall).ok()?;
            match self.next_change(from) {
                Some(change) if change <= tick => (from, inclusive) = (change, true),
                _ => return Some(tick),
            }
        }
    }

    /// Returns the next clock change.
    fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        self.zone.following(after).next().map(|change| change.timestamp())
    }

    /// Returns the next matching wall-clock time.
    fn next_wall(&self, from: DateTime, inclusive: bool) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&from, inclusive).ok()
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({:?} {})", self.text, self.zone_name)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.zone_name) == (&other.text, &other.zone_name)
    }
}

/// Parses all fields, first each one separately, so that an error can name the field.
fn read(fields: &[&str]) -> Result<Pattern, InvalidSchedule> {
    let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
    for (at, (value, field)) in fields.iter().zip(&FIELDS).enumerate() {
        let mut alone = ["*"; FIELDS.len()];
        alone[at] = value;
        let words = value.split(|sign: char| sign.is_ascii_digit() || "*,-/#".contains(sign));
        let known = words
            .filter(|word| !word.is_empty())
            .all(|word| field.words.iter().any(|known| known.eq_ignore_ascii_case(word)));
        let gaps = value.split(',').any(str::is_empty);
        if !known || gaps || parser.parse(&alone.join(" ")).is_err() {
            let value = value.chars().take(60).collect();
            return Err(InvalidSchedule::Field { field: field.name, value, allowed: field.allowed });
        }
    }
    let text = fields.join(" ");
    parser.parse(&text).map_err(|_| InvalidSchedule::Fields { text, found: fields.len() })
}

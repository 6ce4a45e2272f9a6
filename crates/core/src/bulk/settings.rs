//! Settings of a run that operators change: its rate, its share of the time and its chunk sizes.

use std::time::Duration;

use serde::Serialize;

use super::chunk::{LOAD_MIN, Load, RATE_MAX, Sizing};
use super::error::InvalidBulk;
use crate::job::Priority;

/// Settings of a run that operators have changed. The definition applies to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BulkSettings))]
pub struct Settings {
    /// The maximum number of rows per second.
    pub rows_per_s: Option<f64>,
    /// The share of the time that chunks may take.
    pub duty: Option<f64>,
    /// The target duration of a chunk, in ms.
    pub chunk_ms: Option<u64>,
    /// The minimum number of rows per chunk.
    pub chunk_rows_min: Option<u32>,
    /// The maximum number of rows per chunk.
    pub chunk_rows_max: Option<u32>,
}

/// The maximum target duration of a chunk that operators can set, in ms.
pub const CHUNK_MS_MAX: u64 = 600_000;
/// The maximum number of rows of a chunk that operators can set.
pub const CHUNK_ROWS_MAX: u32 = 1_000_000;

impl Settings {
    /// Returns the chunk sizing that results from these settings and the definition.
    #[must_use]
    pub fn sizing(&self, defined: Sizing) -> Sizing {
        let rows_min = self.chunk_rows_min.unwrap_or(defined.rows_min);
        Sizing {
            target: self.chunk_ms.map_or(defined.target, Duration::from_millis),
            rows_min,
            rows_max: self.chunk_rows_max.unwrap_or(defined.rows_max).max(rows_min),
        }
    }

    /// Rejects settings that would stop a run permanently, or let it run without a bound.
    ///
    /// # Errors
    /// [`InvalidBulk::Setting`].
    pub fn check(&self) -> Result<(), InvalidBulk> {
        let refuse = |name, given: String, range: &'static str| {
            Err(InvalidBulk::Setting { name, given, range: range.into() })
        };
        if let Some(rate) = self.rows_per_s.filter(|rate| !(LOAD_MIN..=RATE_MAX).contains(rate)) {
            return refuse("rows_per_s", rate.to_string(), "from 0.001 to 100000000 rows per second");
        }
        if let Some(duty) = self.duty.filter(|duty| !(LOAD_MIN..=1.0).contains(duty)) {
            return refuse("duty", duty.to_string(), "from 0.001 to 1");
        }
        if let Some(ms) = self.chunk_ms.filter(|ms| !(1..=CHUNK_MS_MAX).contains(ms)) {
            return refuse("chunk_ms", ms.to_string(), "from 1 to 600000");
        }
        let (min, max) = (self.chunk_rows_min, self.chunk_rows_max);
        for (name, rows) in [("chunk_rows_min", min), ("chunk_rows_max", max)] {
            if let Some(rows) = rows.filter(|rows| !(1..=CHUNK_ROWS_MAX).contains(rows)) {
                return refuse(name, rows.to_string(), "from 1 to 1000000");
            }
        }
        match min.zip(max) {
            Some((min, max)) if min > max => {
                let given = format!("{min} with a chunk_rows_max of {max}");
                refuse("chunk_rows_min", given, "at most chunk_rows_max")
            }
            _ => Ok(()),
        }
    }

    /// Returns the load limit that results from these settings and the definition.
    #[must_use]
    pub fn load(&self, defined: Load) -> Load {
        Load { rows_per_s: self.rows_per_s.or(defined.rows_per_s), duty: self.duty.unwrap_or(defined.duty) }
    }

    /// Returns these settings, with missing values taken from `others`.
    #[must_use]
    pub fn over(self, others: Self) -> Self {
        Self {
            rows_per_s: self.rows_per_s.or(others.rows_per_s),
            duty: self.duty.or(others.duty),
            chunk_ms: self.chunk_ms.or(others.chunk_ms),
            chunk_rows_min: self.chunk_rows_min.or(others.chunk_rows_min),
            chunk_rows_max: self.chunk_rows_max.or(others.chunk_rows_max),
        }
    }
}

/// A change of a run's settings by an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SettingsChange {
    /// Whether the earlier settings are removed, so that the definition applies to all that are not given.
    pub as_defined: bool,
    /// The new settings; the others are unchanged.
    pub settings: Settings,
    /// The new priority within the group, if it changes.
    pub priority: Option<Priority>,
}

impl SettingsChange {
    /// Returns the settings after the change.
    #[must_use]
    pub fn over(&self, before: Settings) -> Settings {
        if self.as_defined { self.settings } else { self.settings.over(before) }
    }

    /// Returns whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Settings> for SettingsChange {
    fn from(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }
}

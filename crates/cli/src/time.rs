//! Times and durations as text.

use jiff::Timestamp;

pub(crate) use milepost_core::format::{length, relative};

/// Formats a time exactly, and relative to now.
pub(crate) fn exact(time: Timestamp, now: Timestamp) -> String {
    format!("{time:.3} ({})", relative(time, now))
}

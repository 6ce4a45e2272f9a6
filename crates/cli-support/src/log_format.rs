//! The format of the messages on stderr.

use std::sync::OnceLock;

use clap::ValueEnum;

/// The format of the log and of all other output on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text lines
    Text,
    /// One JSON object per line
    Json,
}

static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// Returns the log format of this process: text until [`set_format`] sets another one.
pub fn format() -> LogFormat {
    FORMAT.get().copied().unwrap_or(LogFormat::Text)
}

/// Sets the log format of this process, once; returns the one that applies.
pub fn set_format(format: LogFormat) -> LogFormat {
    *FORMAT.get_or_init(|| format)
}

//! Settings that several sinks have, and their checks.

use std::time::Duration;

use milepost_core::text::is_unprintable;
pub use milepost_http::SecretUrl;
use thiserror::Error;

use crate::template::Template;

/// An invalid setting of a sink. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{setting}` of the sink cannot be used: {why}")]
pub struct InvalidSink {
    /// The name of the setting in the configuration.
    pub setting: &'static str,
    /// Why the setting is invalid, and how to fix it.
    pub why: String,
}

impl InvalidSink {
    pub(super) fn new(setting: &'static str, why: impl Into<String>) -> Self {
        Self { setting, why: why.into() }
    }
}

/// Default time limit of a call.
pub(super) const fn timeout_default_ms() -> u64 {
    5_000
}

/// Default of the attribute `source`.
pub(super) fn source_default() -> String {
    crate::message::SOURCE_DEFAULT.to_owned()
}

/// Checks a time limit.
pub(super) fn timeout(timeout_ms: u64) -> Result<Duration, InvalidSink> {
    match timeout_ms {
        1..=600_000 => Ok(Duration::from_millis(timeout_ms)),
        _ => Err(InvalidSink::new("timeout_ms", "it must be 1 to 600000 ms")),
    }
}

/// Checks that brokers can carry this `source` in a header.
pub(super) fn source(source: &str) -> Result<String, InvalidSink> {
    if source.is_empty() || source.len() > 200 || source.chars().any(|c| is_unprintable(c) || c == ' ') {
        return Err(InvalidSink::new("source", "it must be a name or URI of 1 to 200 bytes without spaces"));
    }
    Ok(source.to_owned())
}

/// Parses a template for names.
pub(super) fn template(setting: &'static str, text: &str) -> Result<Template, InvalidSink> {
    Template::parse(text).map_err(|why| InvalidSink::new(setting, why))
}

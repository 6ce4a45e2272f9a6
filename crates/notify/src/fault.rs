//! Errors of targets.

use std::time::Duration;

use thiserror::Error;

/// A setting of a channel that cannot be used. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct InvalidChannel {
    /// The name of the setting in the configuration.
    pub setting: &'static str,
    /// Why, and how to fix it.
    pub why: String,
}

impl InvalidChannel {
    pub(crate) fn new(setting: &'static str, why: impl Into<String>) -> Self {
        Self { setting, why: why.into() }
    }
}

/// A message that was not delivered. Contains no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct SendError {
    /// The error.
    pub why: String,
    /// How long the receiver wants no further message.
    pub retry_after: Option<Duration>,
}

impl SendError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), retry_after: None }
    }
}

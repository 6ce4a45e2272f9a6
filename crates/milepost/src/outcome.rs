//! The outcomes and errors of handlers.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// The outcome of a handler that did not fail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Done, without a result.
    #[default]
    Done,
    /// Done, with a result as JSON text.
    Result(String),
    /// Run the job again after this long. Does not count the attempt.
    Snooze(Duration),
    /// Hand the job back, to run again after this long, with a reason. Does not count the attempt.
    Yield {
        /// The minimum delay.
        after: Duration,
        /// The reason, for the history.
        note: String,
    },
    /// Stopped because the context was asked to stop.
    Stopped,
    /// Already completed by the handler in its own transaction, which it committed. If the transaction was not committed, the job counts as
    /// failed and is retried.
    Completed,
}

impl Outcome {
    /// Returns a success with this result.
    ///
    /// # Errors
    /// A final [`JobError`] if the value cannot be written as JSON.
    pub fn result(value: &impl Serialize) -> Result<Self, JobError> {
        serde_json::to_string(value).map(Self::Result).map_err(|e| JobError::fatal("result", e.to_string()))
    }
}

/// Return types of handlers for success.
pub trait IntoOutcome {
    /// Converts to an outcome.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for serde_json::Value {
    fn into_outcome(self) -> Outcome {
        Outcome::Result(self.to_string())
    }
}

/// The error code of a completion that was not committed.
pub(crate) const NOT_COMMITTED: &str = "not_committed";

/// The reason why an attempt failed, and whether it can be retried.
///
/// Any error converts with `?`: it becomes retryable, with code `error` and all its causes in the message. A type that does not implement
/// [`Error`](std::error::Error), such as `anyhow`'s, is converted with [`caused_by`](Self::caused_by).
///
/// Codes are defined by the application, except those of Milepost: `panic`, `timeout`, `payload` (it does not fit the kind's type; final),
/// `result` (it is not JSON; final), `checkpoint`, `fenced`, `no_handler`, `not_committed` (the handler reported that it had completed its
/// job, but did not) and `unstorable` (the store refused the result; final).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// A stable name for the type of failure, for lists and alerts.
    pub code: String,
    /// A description of the failure.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// How long to wait before the next attempt; used if it is longer than the backoff.
    pub retry_after: Option<Duration>,
}

impl JobError {
    /// Creates a failure that another attempt may resolve.
    #[must_use]
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: true, retry_after: None }
    }

    /// Creates a failure that no further attempt can resolve.
    #[must_use]
    pub fn fatal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, retry_after: None }
    }

    /// Creates a retryable failure from this error, with all its causes in the message and code `error`.
    #[must_use]
    pub fn caused_by(error: &dyn std::error::Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::retryable("error", message)
    }

    /// Returns this failure with a minimum wait before the next attempt.
    #[must_use]
    pub const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

// JobError does not implement `Error`, so that every error type converts into it.
impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> Self {
        Self::caused_by(&error)
    }
}

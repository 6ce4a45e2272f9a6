//! The end of a run, as a worker reports it and as the store answers.

use std::time::Duration;

use crate::batch::RESULT_BYTES_MAX;
use crate::ident::Run;
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_text;
use crate::transition::Verb;

/// The error code of an attempt whose result cannot be stored.
pub const RESULT: &str = "result";
/// The error code of a job whose row, or of a task whose batch's input or predecessors' result, cannot be read.
pub const UNREADABLE: &str = "unreadable";
/// The error code of an attempt whose result is too large.
pub const RESULT_TOO_LARGE: &str = "result_too_large";

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable name of the kind of failure, such as `timeout` or `http_503`.
    pub code: String,
    /// What happened, for people.
    pub message: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Done; the result is JSON text.
    Succeed {
        /// What the handler returned, as JSON text.
        result: Option<String>,
    },
    /// Failed; to be tried again after the delay.
    Retry {
        /// From the store's clock at the time of the write.
        delay: Duration,
        /// Why.
        failure: Failure,
    },
    /// Failed for good.
    Fail {
        /// Why.
        failure: Failure,
    },
    /// Given back without spending the attempt.
    Yield {
        /// From the store's clock at the time of the write.
        delay: Duration,
        /// Why, for people.
        note: String,
    },
    /// The handler stopped because it was asked to cancel.
    Cancel,
    /// The handler stopped because it was asked to abort.
    Abort,
}

impl End {
    /// The verb by which history knows this end.
    #[must_use]
    pub const fn verb(&self) -> Verb {
        match self {
            Self::Succeed { .. } => Verb::Succeed,
            Self::Retry { .. } => Verb::Retry,
            Self::Fail { .. } => Verb::Fail,
            Self::Yield { .. } => Verb::Yield,
            Self::Cancel => Verb::Cancel,
            Self::Abort => Verb::Abort,
        }
    }
}

/// Checks the result of a run, JSON text that any reader must be able to read.
///
/// # Errors
/// The failure with which the run ends instead: no other attempt helps.
pub fn check_result(result: &str, is_task: bool) -> Result<(), Failure> {
    let (bytes_max, whose) =
        if is_task { (RESULT_BYTES_MAX, "the result of a task") } else { (PAYLOAD_BYTES_MAX, "a result") };
    let bytes = result.len();
    if bytes > bytes_max {
        let message =
            format!("{whose} has at most {bytes_max} bytes, this one {bytes}; store it and return where");
        return Err(Failure { code: RESULT_TOO_LARGE.to_owned(), message });
    }
    check_text(result, bytes_max).map_err(|invalid| {
        let message = invalid.to_string().replace("the payload", "the result");
        Failure { code: RESULT.to_owned(), message }
    })
}

/// One run's end, to be stored.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Which run.
    pub run: Run,
    /// How it ended.
    pub end: End,
    /// Whether the job has a group, whose slot must be handed on.
    pub grouped: bool,
    /// Whether the job is a task of a batch, which goes on from its end.
    pub task: bool,
}

/// What the store says to one [`Finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Stored.
    Accepted,
    /// This very run had ended before: the answer to an earlier try was lost.
    Repeated,
    /// The job has moved on; nothing was changed.
    Fenced,
}

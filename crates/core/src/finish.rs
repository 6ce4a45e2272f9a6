//! The end of a run: the worker's report and the store's answer.

use std::time::Duration;

use crate::batch::RESULT_BYTES_MAX;
use crate::ident::{Run, WorkerId};
use crate::job::PAYLOAD_BYTES_MAX;
use crate::json::check_text;
use crate::text::without_nul;
use crate::transition::Verb;

/// The error code of an attempt whose result cannot be stored.
pub const RESULT: &str = "result";
/// The error code of a job whose row cannot be read, or of a task when the batch's input or a predecessor's result cannot be read.
pub const UNREADABLE: &str = "unreadable";
/// The error code of an attempt whose result is too large.
pub const RESULT_TOO_LARGE: &str = "result_too_large";

/// The failure of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable name of the kind of failure, such as `timeout` or `http_503`.
    pub code: String,
    /// A description of the failure for users.
    pub message: String,
}

impl Failure {
    /// Returns the failure of an attempt whose worker lost its lease.
    #[must_use]
    pub fn lease_lost(worker: WorkerId) -> Self {
        Self { code: "lease_lost".to_owned(), message: format!("worker {worker} lost its lease") }
    }
}

/// Returns the end of a claimed run whose row cannot be read. The row may not show whether the job has a group or is a task, so both are assumed.
#[must_use]
pub fn unreadable(run: Run, error: &dyn std::error::Error) -> Finish {
    let message = format!("the job cannot be decoded: {error}");
    let end = End::Fail { failure: Failure { code: UNREADABLE.to_owned(), message } };
    Finish { run, end, grouped: true, task: true }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The attempt succeeded.
    Succeed {
        /// The result of the handler, as JSON text.
        result: Option<String>,
    },
    /// The attempt failed; the job is retried after the delay.
    Retry {
        /// The delay, counted from the store's clock at the time of the write.
        delay: Duration,
        /// The reason for the failure.
        failure: Failure,
    },
    /// The job failed permanently.
    Fail {
        /// The reason for the failure.
        failure: Failure,
    },
    /// The job was released without using up the attempt.
    Yield {
        /// The delay, counted from the store's clock at the time of the write.
        delay: Duration,
        /// The reason, for users.
        note: String,
    },
    /// The handler stopped after a cancel request.
    Cancel,
    /// The handler stopped after an abort request.
    Abort,
}

impl End {
    /// Returns the verb that the history records for this end.
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

    /// Returns the code of the failure that it reports, as it is stored. If a stop was requested, the history has the verb of the stop with this
    /// code, by which a repeated report is recognized.
    #[must_use]
    pub fn failure_code(&self) -> Option<String> {
        match self {
            Self::Retry { failure, .. } | Self::Fail { failure } => Some(without_nul(&failure.code)),
            Self::Succeed { .. } | Self::Yield { .. } | Self::Cancel | Self::Abort => None,
        }
    }
}

/// Returns the failure of an attempt whose result has more than `bytes_max` bytes. `whose` is its name in the message.
#[must_use]
pub fn result_too_large(whose: &str, bytes_max: usize) -> Failure {
    let message =
        format!("{whose} can have at most {bytes_max} bytes; store it elsewhere and return its location");
    Failure { code: RESULT_TOO_LARGE.to_owned(), message }
}

/// Checks that the result of a run is JSON text that every reader accepts.
///
/// # Errors
/// The failure that the run ends with instead. A retry would not help.
pub fn check_result(result: &str, is_task: bool) -> Result<(), Failure> {
    let (bytes_max, whose) =
        if is_task { (RESULT_BYTES_MAX, "the result of a task") } else { (PAYLOAD_BYTES_MAX, "a result") };
    if result.len() > bytes_max {
        return Err(result_too_large(whose, bytes_max));
    }
    check_text(result, bytes_max).map_err(|invalid| {
        let message = invalid.to_string().replace("the payload", "the result");
        Failure { code: RESULT.to_owned(), message }
    })
}

/// The end of one run, to be stored.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The run.
    pub run: Run,
    /// The end.
    pub end: End,
    /// Whether the job has a group, whose slot must be released.
    pub grouped: bool,
    /// Whether the job is a task of a batch, which continues after it.
    pub task: bool,
}

/// The store's answer to one [`Finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Stored.
    Accepted,
    /// This run had already ended: the answer to an earlier call was lost.
    Repeated,
    /// The run token is outdated; nothing was changed.
    Fenced,
    /// An open transaction of another program holds the job, its group or its batch; nothing was changed. The run can be ended when that
    /// transaction has ended.
    Held,
}

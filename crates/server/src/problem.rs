//! Error responses of the API: problem+json (RFC 9457) with a stable code.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use milepost_core::actions::job::ActionError;
use milepost_core::actions::select::SelectError;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::dag::fault::InvalidDag;
use milepost_core::error::StoreError;
use milepost_core::event::{InvalidEvent, RelayError};
use milepost_core::inbox::InvalidInbox;
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use crate::problem_code::Code;

/// An error, with its position and its remedy. `code` is stable; the texts may change.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// A URI that identifies the type of problem: `urn:milepost:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(value_type = String, examples("urn:milepost:problem:no_such_job"))]
    kind: Box<str>,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// A stable code.
    #[schema(value_type = String, examples("no_such_job"))]
    code: Code,
    /// The description of the error, and how to fix it.
    detail: String,
    /// The position in the request: a path into the body (`jobs[3].priority`), a parameter or a header.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// The individual errors, if there can be several.
    #[serde(skip_serializing_if = "<[Fault]>::is_empty")]
    #[schema(value_type = Option<Vec<Fault>>)]
    faults: Box<[Fault]>,
    /// The number of seconds after which the same request may succeed.
    #[serde(skip)]
    retry_after_s: Option<u64>,
}

/// One of several errors.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Fault {
    /// The position in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<String>,
    /// The description of the error.
    pub(crate) detail: String,
}

impl Problem {
    /// Creates a problem with this code.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:milepost:problem:{}", code.as_str()).into(),
            status: code.status().as_u16(),
            code,
            detail: detail.into(),
            at: None,
            faults: Box::default(),
            retry_after_s: None,
        }
    }

    /// Replaces the usual status of the code.
    #[must_use]
    pub(crate) const fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status.as_u16();
        self
    }

    /// Returns whether the caller is not authenticated (401).
    pub(crate) const fn is_unauthorized(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED.as_u16()
    }

    /// Returns the description of the problem.
    pub(crate) fn words(&self) -> &str {
        &self.detail
    }

    /// Adds the position in the request.
    #[must_use]
    pub(crate) fn at(mut self, at: impl Into<String>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Adds where the object is in which it found the place of the error.
    #[must_use]
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.at = Some(self.at.map_or_else(|| place.to_owned(), |at| format!("{place}.{at}")));
        self
    }

    /// Adds a list of individual errors.
    #[must_use]
    pub(crate) fn faults(mut self, faults: Vec<Fault>) -> Self {
        self.faults = faults.into();
        self
    }

    /// Returns the stable code.
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// Returns the HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Adds `Retry-After`, in seconds.
    #[must_use]
    pub(crate) fn retry_after_s(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The response to a failure of the server or the database: the cause is in the log, not in the response.
    fn failed(error: &StoreError) -> Self {
        tracing::error!(error = error.chain(), "the store failed");
        Self::new(Code::StoreFailed, "the store failed; the server's log has the details")
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let words = error.to_string();
        match &error {
            StoreError::Fenced(_) => Self::new(Code::Fenced, words),
            StoreError::WorkerLost(_) => Self::new(Code::WorkerLost, words),
            StoreError::NoSuchJob(_) => Self::new(Code::NoSuchJob, words),
            StoreError::Illegal { .. } => Self::new(Code::IllegalTransition, words),
            StoreError::Invalid { index, invalid } => {
                Self::new(Code::InvalidJob, invalid.to_string()).at(format!("jobs[{index}]"))
            }
            StoreError::PartlyStored { .. } => Self::new(Code::IdempotencyKeyTaken, words),
            StoreError::InvalidSchedule { .. } => Self::new(Code::InvalidSchedule, words),
            StoreError::NoSuchSchedule(_) => Self::new(Code::NoSuchSchedule, words),
            StoreError::Limit(_) => Self::new(Code::InvalidLimit, words),
            StoreError::Bulk(invalid) => of_bulk(invalid, words),
            StoreError::Batch(invalid) => of_batch(invalid, words),
            StoreError::Event { index, invalid } => of_event(*index, invalid),
            StoreError::Relay(error) => of_relay(error, words),
            StoreError::Feed(_) => Self::new(Code::InvalidPosition, words),
            StoreError::Inbox(invalid) => of_inbox(invalid, words),
            StoreError::Token(_) => Self::new(Code::InvalidToken, words),
            StoreError::Unavailable { .. } => unavailable(&error),
            StoreError::Held { .. } => Self::new(Code::Held, words).retry_after_s(1),
            StoreError::Refused { .. } => Self::new(Code::Refused, error.chain()),
            StoreError::TooLarge { .. } => Self::new(Code::TooMany, words),
            StoreError::Hide(_) => Self::new(Code::HiddenData, words),
            StoreError::OutsideScope(_) => Self::new(Code::OutsideScope, words),
            StoreError::Retention(_) => Self::new(Code::InvalidRetention, words),
            StoreError::Schema(_) => Self::new(Code::SchemaDoesNotFit, words),
            StoreError::Move(_) => Self::new(Code::StoreMoves, words),
            _ => Self::failed(&error),
        }
    }
}

impl From<ActionError> for Problem {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::NoDelay(_) => Self::new(Code::InvalidBody, error.to_string()).at("delay_ms"),
            ActionError::Store(error) => error.into(),
        }
    }
}

impl From<SelectError> for Problem {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::TooMany => Self::new(Code::TooManyJobs, error.to_string()).at("filter"),
            SelectError::Store(error) => error.into(),
        }
    }
}

fn unavailable(error: &StoreError) -> Problem {
    tracing::warn!(error = error.chain(), "the store did not respond");
    Problem::new(Code::StoreUnavailable, "the store does not respond; try again").retry_after_s(1)
}

fn of_bulk(invalid: &InvalidBulk, words: String) -> Problem {
    match invalid {
        InvalidBulk::NotBulk { .. } => Problem::new(Code::NoSuchBulkRun, words),
        InvalidBulk::NoFailures { .. } | InvalidBulk::Done { .. } => Problem::new(Code::BulkRefused, words),
        _ => Problem::new(Code::InvalidBulk, words),
    }
}

fn of_batch(invalid: &InvalidBatch, words: String) -> Problem {
    match invalid {
        InvalidBatch::NoSuchBatch(_) => Problem::new(Code::NoSuchBatch, words),
        InvalidBatch::NoSuchDag { .. } => Problem::new(Code::NoSuchDag, words),
        InvalidBatch::NoSuchVersion { .. } => Problem::new(Code::NoSuchVersion, words),
        InvalidBatch::NoSuchTask { .. } | InvalidBatch::NoSuchSignal { .. } => {
            Problem::new(Code::NoSuchTask, words)
        }
        InvalidBatch::Dag(invalid) => of_dag(invalid),
        InvalidBatch::Input { .. } | InvalidBatch::Signal { .. } => Problem::new(Code::InvalidInput, words),
        InvalidBatch::State { .. } | InvalidBatch::Task { .. } => {
            Problem::new(Code::IllegalTransition, words)
        }
        InvalidBatch::Overtaken(_) => Problem::new(Code::Overtaken, words),
        InvalidBatch::NothingToRerun(_) | InvalidBatch::OverAList(_) | InvalidBatch::TooManySignals(_) => {
            Problem::new(Code::BatchRefused, words)
        }
        _ => Problem::new(Code::InvalidBatch, words),
    }
}

/// Converts the errors of a definition; each has the position of its task.
fn of_dag(invalid: &InvalidDag) -> Problem {
    let fault = |fault: &milepost_core::dag::fault::Fault| Fault {
        at: fault.task().map(|task| format!("tasks.{task}")),
        detail: fault.to_string(),
    };
    let faults: Vec<Fault> = invalid.faults.iter().map(fault).collect();
    let first = faults.iter().find_map(|fault| fault.at.clone());
    let problem = Problem::new(Code::InvalidDag, invalid.to_string()).faults(faults);
    match first {
        Some(at) => problem.at(at),
        None => problem,
    }
}

fn of_event(index: usize, invalid: &InvalidEvent) -> Problem {
    let problem = match invalid {
        InvalidEvent::OtherContent { .. } => Problem::new(Code::EventIdTaken, invalid.to_string()),
        _ => Problem::new(Code::InvalidEvent, invalid.to_string()),
    };
    problem.at(format!("events[{index}]"))
}

fn of_inbox(invalid: &InvalidInbox, words: String) -> Problem {
    match invalid {
        InvalidInbox::NoSuchLetter(_) => Problem::new(Code::NoSuchLetter, words),
        InvalidInbox::Past(_) => Problem::new(Code::InboxRefused, words),
        _ => Problem::new(Code::InvalidInbox, words),
    }
}

fn of_relay(error: &RelayError, words: String) -> Problem {
    match error {
        RelayError::NoSuchSubscription(_) => Problem::new(Code::NoSuchSubscription, words),
        RelayError::NoEvents(_) => Problem::new(Code::NoSuchAggregate, words),
        _ => Problem::new(Code::RelayRefused, words),
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let retry_after_s = self.retry_after_s;
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"milepost\""));
        }
        if let Some(seconds) = retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        // The console turns it into an HTML page.
        response.extensions_mut().insert(self);
        response
    }
}

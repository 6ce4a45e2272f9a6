//! Attempts, derived from the history of a job.

use jiff::Timestamp;
use milepost_core::history::HistoryEntry;
use milepost_core::ident::{RunToken, WorkerId};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use serde::Serialize;
use utoipa::ToSchema;

/// One claim of a job, and its end.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Attempt {
    /// Its number, from 1. If an attempt does not count, such as a snoozed one, the next one has the same number.
    pub(crate) attempt: u32,
    /// The run token of its claim.
    pub(crate) token: RunToken,
    /// The worker that ran it.
    pub(crate) worker: Option<WorkerId>,
    /// Its start time.
    pub(crate) started_at: Timestamp,
    /// Its end time.
    pub(crate) ended_at: Option<Timestamp>,
    /// The outcome. Missing while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Verb>,
    /// The error code of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_code: Option<String>,
    /// The error message of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<String>,
}

/// Returns the attempts of a history, oldest first.
pub(crate) fn attempts(history: &[HistoryEntry]) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for entry in history {
        if entry.verb == Verb::Claim {
            attempts.push(begun(entry));
        } else if entry.from == Some(JobState::Running)
            && let Some(last) = attempts.last_mut().filter(|last| last.token == entry.token)
        {
            last.ended_at = Some(entry.at);
            last.outcome = Some(entry.verb);
            last.error_code.clone_from(&entry.error_code);
            last.error_message.clone_from(&entry.error_message);
        }
    }
    attempts
}

fn begun(entry: &HistoryEntry) -> Attempt {
    Attempt {
        attempt: entry.attempt,
        token: entry.token,
        worker: entry.worker,
        started_at: entry.at,
        ended_at: None,
        outcome: None,
        error_code: None,
        error_message: None,
    }
}

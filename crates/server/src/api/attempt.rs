//! Attempts, as history tells them.

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
    /// Which try, from 1. One that was given back does not count, and the next has its number.
    pub(crate) attempt: u32,
    /// The token of its claim.
    pub(crate) token: RunToken,
    /// Who made it.
    pub(crate) worker: Option<WorkerId>,
    /// When it began.
    pub(crate) started_at: Timestamp,
    /// When it ended.
    pub(crate) ended_at: Option<Timestamp>,
    /// How it ended. Missing while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Verb>,
    /// A stable name of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_code: Option<String>,
    /// Its failure, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error_message: Option<String>,
}

/// The attempts of a history, the oldest first.
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

//! What happened: every state change, and what can be told from them.

use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::ident::{JobId, RunToken, WorkerId};
use crate::state::JobState;
use crate::transition::{Readiness, Verb, transition};

/// One state change of one job.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryEntry {
    /// Its place in the log.
    pub pos: i64,
    /// Which job.
    pub job: JobId,
    /// When, on the store's clock.
    pub at: Timestamp,
    /// What happened.
    pub verb: Verb,
    /// The state before; `None` at creation.
    pub from: Option<JobState>,
    /// The state after.
    pub to: JobState,
    /// The attempt it belongs to; 0 before the first claim.
    pub attempt: u32,
    /// The run token after the change.
    pub token: RunToken,
    /// The worker that made it or lost it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// When the job may be claimed next, where the change says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// A stable name of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The failure, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Why it happened, where somebody or something said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A history that cannot have happened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("history entry {pos} ({verb}) does not follow: {why}")]
pub struct BrokenHistory {
    /// The entry that does not follow from those before it.
    pub pos: i64,
    /// Its verb.
    pub verb: Verb,
    /// What is wrong.
    pub why: String,
}

/// Folds a job's whole history, oldest first, into the state it leads to.
///
/// # Errors
/// [`BrokenHistory`] at the first entry that is off the allowed graph, that does not start where the one
/// before it ended, whose token changes without a claim, or whose claim does not raise it.
pub fn fold<'a>(
    entries: impl IntoIterator<Item = &'a HistoryEntry>,
) -> Result<Option<JobState>, BrokenHistory> {
    fold_from(None, RunToken(0), entries)
}

/// Folds what retention left of a job's history, oldest first: it may begin anywhere, and has no gaps from there.
///
/// # Errors
/// [`BrokenHistory`] as for [`fold`], but for where the first entry starts.
pub fn fold_rest(entries: &[HistoryEntry]) -> Result<Option<JobState>, BrokenHistory> {
    let Some(first) = entries.first() else { return Ok(None) };
    let raised = i32::from(first.verb == Verb::Claim);
    fold_from(first.from, RunToken(first.token.0 - raised), entries)
}

fn fold_from<'a>(
    mut state: Option<JobState>,
    mut token: RunToken,
    entries: impl IntoIterator<Item = &'a HistoryEntry>,
) -> Result<Option<JobState>, BrokenHistory> {
    for entry in entries {
        let broken = |why: String| BrokenHistory { pos: entry.pos, verb: entry.verb, why };
        if entry.from != state {
            return Err(broken(format!("it starts from {:?}, the job was {state:?}", entry.from)));
        }
        let allowed = [Readiness::Ready, Readiness::Held]
            .iter()
            .any(|&readiness| transition(state, entry.verb, readiness) == Ok(entry.to));
        if !allowed {
            return Err(broken(format!("{state:?} to {} is not on the graph", entry.to)));
        }
        let follows = if entry.verb == Verb::Claim { entry.token > token } else { entry.token == token };
        if !follows {
            return Err(broken(format!("token {} follows {token}", entry.token)));
        }
        token = entry.token;
        state = Some(entry.to);
    }
    Ok(state)
}

//! State changes of jobs, and the state that follows from them.

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
    /// Its position in the log.
    pub pos: i64,
    /// The job.
    pub job: JobId,
    /// When it happened, by the store's clock.
    pub at: Timestamp,
    /// The operation.
    pub verb: Verb,
    /// The state before; `None` at creation.
    pub from: Option<JobState>,
    /// The state after.
    pub to: JobState,
    /// The attempt that it belongs to; 0 before the first claim.
    pub attempt: u32,
    /// The run token after the change.
    pub token: RunToken,
    /// The worker that made the change, or that lost the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// When the job may be claimed next, if the change sets this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// The stable code of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The failure message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The reason, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A part of a job's history: a job that is snoozed for years has millions of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryPart {
    /// The first entries after a position; 0 is before the first one.
    After {
        /// The position.
        pos: i64,
        /// The maximum number of entries.
        limit: u32,
    },
    /// The last entries.
    Newest {
        /// The maximum number of entries.
        limit: u32,
    },
}

/// A history that violates the transition rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("history entry {pos} ({verb}) is inconsistent: {why}")]
pub struct BrokenHistory {
    /// The position of the entry that does not follow from those before it.
    pub pos: i64,
    /// Its verb.
    pub verb: Verb,
    /// The reason.
    pub why: String,
}

/// Computes the current state from a job's complete history, oldest entry first.
///
/// # Errors
/// [`BrokenHistory`] at the first entry that is not an allowed transition, does not start in the state where the one
/// before it ended, changes the token without a claim, or is a claim that does not raise the token.
pub fn fold<'a>(
    entries: impl IntoIterator<Item = &'a HistoryEntry>,
) -> Result<Option<JobState>, BrokenHistory> {
    fold_from(None, RunToken(0), entries)
}

/// Computes the current state from the entries that retention has kept, oldest first. They may begin at any state but
/// have no gaps after that.
///
/// # Errors
/// [`BrokenHistory`] as for [`fold`], except that the first entry may start in any state.
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
            return Err(broken(format!("it starts from {:?}, but the job was {state:?}", entry.from)));
        }
        let allowed = [Readiness::Ready, Readiness::Held]
            .iter()
            .any(|&readiness| transition(state, entry.verb, readiness) == Ok(entry.to));
        if !allowed {
            return Err(broken(format!("{state:?} to {} is not an allowed transition", entry.to)));
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

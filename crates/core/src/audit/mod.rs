//! The audit: who changed what in a store, why, and the state before and after.
//!
//! An operator, the console or an API client acts through [`acting_as`](crate::port::AuditStore::acting_as): each change
//! writes an audit row in the same transaction. Changes by workers are recorded in the history only.

mod action;
mod note;
mod subject;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub use action::{AuditedAction, WHATS};
pub use note::{LISTED_MAX, Note, made_batch, made_events, made_jobs, made_run, made_signal};
pub use subject::Subject;

use crate::actions::{self, REASON_CHARS_MAX};
use crate::job::error::InvalidJob;
use crate::text::is_unprintable;

/// The maximum length of an actor's name, in bytes.
pub const WHO_BYTES_MAX: usize = 200;

/// The author of a change, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    who: String,
    why: Option<String>,
}

impl Actor {
    /// Creates an actor with a name such as `ada@host` or the name of a token.
    ///
    /// # Errors
    /// [`InvalidActor`] when the name is empty, too long, or contains control or bidirectional formatting characters.
    pub fn new(who: impl Into<String>) -> Result<Self, InvalidActor> {
        let who = who.into();
        if who.is_empty() || who.len() > WHO_BYTES_MAX || who.contains(is_unprintable) {
            return Err(InvalidActor::Who);
        }
        Ok(Self { who, why: None })
    }

    /// Adds the reason, if there is one, without surrounding whitespace. An empty reason is ignored.
    ///
    /// # Errors
    /// [`InvalidActor`] when the reason is too long or has control characters other than line breaks and tabs.
    pub fn because(self, why: Option<&str>) -> Result<Self, InvalidActor> {
        let why = why.map(actions::reason).transpose().map_err(|()| InvalidActor::Why)?;
        Ok(Self { why: why.flatten().map(str::to_owned), ..self })
    }

    /// Returns the actor for repairs without a named author.
    #[must_use]
    pub fn nobody() -> Self {
        Self { who: "nobody".to_owned(), why: None }
    }

    /// Returns the name.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Returns the reason, if one was given.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// An invalid actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidActor {
    /// The name is invalid.
    #[error(
        "the name of the actor must have 1 to {WHO_BYTES_MAX} bytes, and no control characters, characters that change the direction of text, or line separators"
    )]
    Who,
    /// The reason is invalid.
    #[error(
        "a reason must have at most {REASON_CHARS_MAX} characters, and no control characters except line breaks and tabs"
    )]
    Why,
}

/// Rejects a reason that is too long for the history.
///
/// # Errors
/// [`InvalidJob::OutOfRange`].
pub(crate) fn check_reason(reason: Option<&str>) -> Result<(), InvalidJob> {
    let chars = reason.map_or(0, |reason| reason.chars().count());
    if chars <= REASON_CHARS_MAX {
        return Ok(());
    }
    let value = i64::try_from(chars).unwrap_or(i64::MAX);
    Err(InvalidJob::OutOfRange { field: "the length of the reason", value, range: "at most 1000 characters" })
}

/// An operator's action, as recorded in the audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// Its position; later entries have higher ones.
    pub pos: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The actor.
    pub who: String,
    /// The action, such as `job.cancel`.
    pub what: String,
    /// Its subject, such as the id of a job or the name of a queue; none for several objects or the whole store.
    pub subject: Option<String>,
    /// The reason, if one was given.
    pub why: Option<String>,
    /// The state of the subject `before` and `after` the action. A member is missing if the subject did not exist then.
    pub detail: Value,
}

/// A filter for audit entries, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only entries of this actor.
    pub who: Option<String>,
    /// Only this action, such as `job.cancel`.
    pub what: Option<String>,
    /// Only actions on this object.
    pub subject: Option<String>,
    /// Only entries before this one, the last of the previous page.
    pub before: Option<i64>,
    /// The maximum number of results.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_has_a_name_and_perhaps_a_reason() {
        let ada = Actor::new("ada@host").unwrap().because(Some("the disk was\nreplaced")).unwrap();
        assert_eq!((ada.who(), ada.why()), ("ada@host", Some("the disk was\nreplaced")));
        assert_eq!(ada.because(Some("")).unwrap().why(), None);
    }

    #[test]
    fn names_and_reasons_are_bounded() {
        for who in [String::new(), "a\u{0}".to_owned(), "a".repeat(WHO_BYTES_MAX + 1)] {
            assert_eq!(Actor::new(who), Err(InvalidActor::Who));
        }
        for why in ["\u{0}".to_owned(), "ä".repeat(REASON_CHARS_MAX + 1)] {
            assert_eq!(Actor::nobody().because(Some(&why)), Err(InvalidActor::Why));
        }
        assert!(Actor::nobody().because(Some(&"ä".repeat(REASON_CHARS_MAX))).is_ok());
    }
}

//! The audit: who did what to a store, why, and what it changed.
//!
//! An operator, the console or a client of the API acts through [`acting_as`](crate::port::AuditStore::acting_as): whatever it
//! changes leaves a row, in the transaction that changes it. What workers do is told by history.

mod deed;
mod note;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub use deed::{Deed, Subject, WHATS};
pub use note::{LISTED_MAX, Note, made_batch, made_events, made_jobs, made_run};

use crate::error::InvalidJob;
use crate::text::is_unprintable;

/// How long the name of an actor may be.
pub const WHO_BYTES_MAX: usize = 200;
/// How long a reason may be.
pub const WHY_CHARS_MAX: usize = 1_000;

/// Who changes something, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    who: String,
    why: Option<String>,
}

impl Actor {
    /// Somebody, as `ada@host` or the name of a token.
    ///
    /// # Errors
    /// [`InvalidActor`] when the name is empty, too long, or has control characters.
    pub fn new(who: impl Into<String>) -> Result<Self, InvalidActor> {
        let who = who.into();
        if who.is_empty() || who.len() > WHO_BYTES_MAX || who.contains(is_unprintable) {
            return Err(InvalidActor::Who);
        }
        Ok(Self { who, why: None })
    }

    /// With the reason, if there is one. An empty one is none.
    ///
    /// # Errors
    /// [`InvalidActor`] when it is too long, or has control characters but line breaks and tabs.
    pub fn because(self, why: Option<&str>) -> Result<Self, InvalidActor> {
        let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        match why {
            Some(why) if why.chars().count() > WHY_CHARS_MAX || why.contains(is_odd) => {
                Err(InvalidActor::Why)
            }
            why => Ok(Self { why: why.filter(|why| !why.is_empty()).map(str::to_owned), ..self }),
        }
    }

    /// Whoever repairs without saying who it is.
    #[must_use]
    pub fn nobody() -> Self {
        Self { who: "nobody".to_owned(), why: None }
    }

    /// Who.
    #[must_use]
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Why, if that was said.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

/// An actor that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidActor {
    /// Its name.
    #[error("who acts must be named with 1 to {WHO_BYTES_MAX} bytes and no control characters")]
    Who,
    /// Its reason.
    #[error(
        "a reason has at most {WHY_CHARS_MAX} characters, and of control characters line breaks and tabs only"
    )]
    Why,
}

/// Refuses a reason that is too long for a history.
///
/// # Errors
/// [`InvalidJob::OutOfRange`].
pub(crate) fn check_reason(reason: Option<&str>) -> Result<(), InvalidJob> {
    let chars = reason.map_or(0, |reason| reason.chars().count());
    if chars <= WHY_CHARS_MAX {
        return Ok(());
    }
    let value = i64::try_from(chars).unwrap_or(i64::MAX);
    Err(InvalidJob::OutOfRange { field: "the length of the reason", value, range: "at most 1000 characters" })
}

/// What somebody did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditEntry {
    /// Its place; later entries have higher ones.
    pub pos: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub who: String,
    /// What, as `job.cancel`.
    pub what: String,
    /// To what: the id of a job, the name of a queue. `None`: to many things, or to the store.
    pub subject: Option<String>,
    /// Why, if that was said.
    pub why: Option<String>,
    /// How its subject stood `before` and `after`. Missing: it was not there.
    pub detail: Value,
}

/// Which entries, newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Only of this actor.
    pub who: Option<String>,
    /// Only this, as `job.cancel`.
    pub what: Option<String>,
    /// Only to this.
    pub subject: Option<String>,
    /// Those before this one, the last of the page before.
    pub before: Option<i64>,
    /// At most this many.
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
        for why in ["\u{0}".to_owned(), "ä".repeat(WHY_CHARS_MAX + 1)] {
            assert_eq!(Actor::nobody().because(Some(&why)), Err(InvalidActor::Why));
        }
        assert!(Actor::nobody().because(Some(&"ä".repeat(WHY_CHARS_MAX))).is_ok());
    }
}

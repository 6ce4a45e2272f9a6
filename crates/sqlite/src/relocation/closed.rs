//! The error of a store that is being moved, or was moved: triggers reject all changes.

use milepost_core::error::StoreError;
use milepost_core::relocation::MoveError;
use rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER;

/// The beginning of the error message with which closed tables reject a change.
pub(crate) const CLOSED: &str = "the jobs of this store ";

/// Returns whether a change was rejected because the store is being moved.
pub(crate) fn is_closed(error: &rusqlite::Error) -> bool {
    words(error).is_some_and(|words| words.starts_with(CLOSED))
}

/// Returns the error for callers whose change was rejected.
pub(crate) fn refusal(error: &rusqlite::Error) -> StoreError {
    MoveError::Closed { words: words(error).unwrap_or(CLOSED).to_owned() }.into()
}

/// Returns the error message of a trigger.
fn words(error: &rusqlite::Error) -> Option<&str> {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(words))
            if code.extended_code == SQLITE_CONSTRAINT_TRIGGER =>
        {
            Some(words)
        }
        _ => None,
    }
}

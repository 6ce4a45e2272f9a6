//! What went wrong inside the store, and how callers are told.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::{Cause, StoreError};
use rusqlite::ErrorCode;

use crate::departure;

/// An error of a verb before it is known which verb of which file it was.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite's.
    Sql(rusqlite::Error),
    /// One that the caller gets as it is.
    Told(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

impl Failure {
    /// What the caller of `verb` on the file `place` is told.
    pub(crate) fn at(self, verb: &'static str, place: &str) -> StoreError {
        match self {
            Self::Told(error) => error,
            Self::Sql(error) if departure::is_closed(&error) => departure::refusal(&error),
            Self::Sql(error) if is_unavailable(&error) => {
                StoreError::Unavailable { place: place.to_owned(), cause: Box::new(error) }
            }
            Self::Sql(error) if is_refused(&error) => StoreError::Refused { verb, cause: Box::new(error) },
            Self::Sql(error) => StoreError::Database { verb, cause: Box::new(error) },
        }
    }
}

/// Whether another process keeps the file locked. SQLite reports a "locking protocol" error, not a busy file, when it has lost the race
/// for the locks of the log for ten seconds: while a process that holds one is frozen, say.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Whether the values are to blame, so that no retry helps.
fn is_refused(error: &rusqlite::Error) -> bool {
    use ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// Whether it is the file that cannot be used now, rather than a defect or a damaged store.
fn is_unavailable(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    is_busy(error)
        || matches!(
            error.sqlite_error_code(),
            Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
        )
}

/// Whether a transaction was lost because the disk is full, or may be: SQLite may have ended it by itself.
pub(crate) fn may_be_full(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::OperationAborted))
}

/// Another process keeps the file locked.
#[derive(Debug)]
pub(crate) struct Locked {
    pub(crate) waited: Duration,
    pub(crate) source: rusqlite::Error,
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited_s = self.waited.as_secs_f64();
        write!(f, "another process keeps the file locked (gave up after {waited_s:.1} s)")
    }
}

impl std::error::Error for Locked {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// One error that several callers get: those whose commands shared a transaction that failed.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    place: Arc<str>,
    cause: Arc<dyn std::error::Error + Send + Sync>,
    unavailable: bool,
}

impl Outage {
    pub(crate) fn new(place: &Arc<str>, error: rusqlite::Error, waited: Duration) -> Self {
        let unavailable = is_unavailable(&error);
        let cause: Arc<dyn std::error::Error + Send + Sync> =
            if is_busy(&error) { Arc::new(Locked { waited, source: error }) } else { Arc::new(error) };
        Self { place: Arc::clone(place), cause, unavailable }
    }

    /// What those are told who shared the transaction with the one command that ended it: the same call may well
    /// succeed when it is made again.
    pub(crate) fn of_a_neighbour(&self) -> Self {
        let cause: Arc<dyn std::error::Error + Send + Sync> = Arc::new(Neighbours(Arc::clone(&self.cause)));
        Self { place: Arc::clone(&self.place), cause, unavailable: true }
    }

    /// What each of the callers is told.
    pub(crate) fn told(&self, verb: &'static str) -> StoreError {
        let cause: Cause = Box::new(Shared(Arc::clone(&self.cause)));
        if self.unavailable {
            StoreError::Unavailable { place: self.place.to_string(), cause }
        } else {
            StoreError::Database { verb, cause }
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

/// Another command ended the transaction.
#[derive(Debug)]
struct Neighbours(Arc<dyn std::error::Error + Send + Sync>);

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "another command of this process ended the transaction that this one shared; nothing was changed",
        )
    }
}

impl std::error::Error for Neighbours {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

#[derive(Debug)]
struct Shared(Arc<dyn std::error::Error + Send + Sync>);

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Shared {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// A defect in words.
pub(crate) fn defect(verb: &'static str, words: impl Into<String>) -> StoreError {
    StoreError::Database { verb, cause: words.into().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_race_for_the_locks_of_the_log_may_be_tried_again() {
        for code in [rusqlite::ffi::SQLITE_BUSY, rusqlite::ffi::SQLITE_LOCKED, rusqlite::ffi::SQLITE_PROTOCOL]
        {
            let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
            assert!(is_busy(&error), "{error}");
            assert!(Failure::Sql(error).at("claim", "jobs.db").is_transient());
        }
    }
}

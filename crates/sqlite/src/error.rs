//! Internal errors of the store, and their conversion to errors for callers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::error::{Cause, StoreError};
use rusqlite::ErrorCode;

use crate::relocation::closed;

/// An error before the verb and the file in which it occurred are known.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An SQLite error.
    Sql(rusqlite::Error),
    /// An error that is returned to the caller unchanged.
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
    /// Converts to the error that the caller of `verb` on the file `place` gets.
    pub(crate) fn at(self, verb: &'static str, place: &str) -> StoreError {
        match self {
            Self::Told(error) => error,
            Self::Sql(error) if closed::is_closed(&error) => closed::refusal(&error),
            Self::Sql(error) if is_unavailable(&error) => {
                StoreError::Unavailable { place: place.to_owned(), cause: Box::new(error) }
            }
            Self::Sql(error) if is_refused(&error) => StoreError::Refused { verb, cause: Box::new(error) },
            Self::Sql(error) => StoreError::Database { verb, cause: Box::new(error) },
        }
    }
}

/// Returns whether another process keeps the file locked. If SQLite cannot get the locks of the log for ten seconds, for example because a
/// process that holds one is frozen, it reports a "locking protocol" error instead of a busy file.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// Returns whether the error is caused by the values, so that a retry cannot succeed.
fn is_refused(error: &rusqlite::Error) -> bool {
    use ErrorCode::{ConstraintViolation, TooBig, TypeMismatch};
    matches!(error.sqlite_error_code(), Some(ConstraintViolation | TooBig | TypeMismatch))
}

/// Returns whether the file cannot be used at the moment, as opposed to a defect or a damaged store.
fn is_unavailable(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    is_busy(error)
        || matches!(
            error.sqlite_error_code(),
            Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
        )
}

/// Returns whether a transaction may have been lost because the disk is full: SQLite may have rolled it back automatically.
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
        write!(f, "another process keeps the file locked (waited for {waited_s:.1} s)")
    }
}

impl std::error::Error for Locked {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// One error that several callers get, because their commands shared a transaction that failed.
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

    /// Returns the error for callers that shared the transaction with the command that ended it. Their calls may succeed if they are
    /// repeated.
    pub(crate) fn of_a_neighbour(&self) -> Self {
        let cause: Arc<dyn std::error::Error + Send + Sync> = Arc::new(Neighbours(Arc::clone(&self.cause)));
        Self { place: Arc::clone(&self.place), cause, unavailable: true }
    }

    /// Converts to the error that each of the callers gets.
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

/// Returns an error that reports a defect.
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

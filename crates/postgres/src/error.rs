//! Conversion of driver errors into errors of the store.

use milepost_core::error::{Cause, StoreError};
use milepost_core::ident::JobId;
use milepost_core::job::error::InvalidJob;
use milepost_core::relocation::MoveError;
use milepost_core::state::JobState;
use milepost_core::transition::{IllegalTransition, Verb};
use sqlx::postgres::PgDatabaseError;

/// SQLSTATE of a job that cannot be accepted as it is.
const INVALID_JOB: &str = "MP001";
/// SQLSTATE of a job that does not exist.
const NO_SUCH_JOB: &str = "MP002";
/// SQLSTATE of a verb that the job's state does not allow.
const ILLEGAL: &str = "MP003";

/// SQLSTATE of a change that a store refuses while an import fills it.
const CLOSED: &str = "MP004";
/// SQLSTATE of an import into a store that is not empty.
const NOT_EMPTY: &str = "MP005";
/// SQLSTATE of completing an import when none is in progress.
const NOT_UNDER_WAY: &str = "MP006";

/// SQLSTATE of a lock that was not released within `lock_timeout`.
const LOCK_TIMEOUT: &str = "55P03";

/// SQLSTATE classes and codes of errors that may succeed when retried a little later: lost connections; a server that
/// starts, stops, is a standby for now, or lacks resources; timeouts, serialization failures and deadlocks; a transaction
/// that the server ended because this process was idle in it for too long (25P03, a limit that our own sessions set) or
/// because it took too long (25P04).
const TRANSIENT: &[&str] = &["08", "25006", "25P03", "25P04", "40001", "40P01", "53", "57", "58"];
/// SQLSTATE classes of errors in the values of a statement, which fail again when retried.
const REFUSED: &[&str] = &["22", "23", "54"];

/// Converts an error of `verb` against the database at `place`.
pub(crate) fn store_error(place: &str, verb: &'static str, error: sqlx::Error) -> StoreError {
    if let Some(refused) = move_error(&error) {
        return StoreError::Move(refused);
    }
    if is_lock_timeout(&error) {
        return StoreError::Held { verb, cause: cause(error) };
    }
    if is_transient(&error) {
        return StoreError::Unavailable { place: place.to_owned(), cause: cause(error) };
    }
    if is_of(&error, REFUSED) {
        return StoreError::Refused { verb, cause: cause(error) };
    }
    StoreError::Database { verb, cause: cause(error) }
}

/// Returns the remedy for an error whose message names only the symptom.
fn remedy(code: &str) -> Option<&'static str> {
    match code {
        "25006" => Some(
            "the server is a standby, or default_transaction_read_only is on for the role or the database; \
             connect to the primary, or turn the setting off",
        ),
        "26000" | "42P05" => {
            Some("behind a pooler in transaction mode, add pooler=transaction to the URL of the store")
        }
        _ => None,
    }
}

/// Returns the error without the driver's internals and the source line of PostgreSQL, with a remedy if one is known.
pub(crate) fn cause(error: sqlx::Error) -> Cause {
    match error {
        sqlx::Error::PoolTimedOut => "no connection was free or could be opened in time".into(),
        sqlx::Error::WorkerCrashed => "the connection broke".into(),
        error => match database_error(&error) {
            Some(said) => {
                let hint = said.hint().or_else(|| remedy(said.code()));
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                format!("{} (SQLSTATE {}){hint}", said.message(), said.code()).into()
            }
            None => error.into(),
        },
    }
}

/// Converts an error about an import into a typed one.
fn move_error(error: &sqlx::Error) -> Option<MoveError> {
    let database = database_error(error)?;
    let words = || database.message().to_owned();
    match database.code() {
        CLOSED | NOT_UNDER_WAY => Some(MoveError::Closed { words: words() }),
        NOT_EMPTY => Some(MoveError::NotEmpty { why: words() }),
        _ => None,
    }
}

/// Converts an error of a verb that enqueues jobs, with typed errors for invalid jobs.
pub(crate) fn enqueue_error(place: &str, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else {
        return store_error(place, "enqueue_many", error);
    };
    let why = database.message().to_owned();
    let (index, invalid) = match database.code() {
        INVALID_JOB => {
            let hint = database.hint().map_or_else(String::new, |hint| format!("; {hint}"));
            (index_in(&why), InvalidJob::Refused { why: format!("{}{hint}", without_place(&why)) })
        }
        "22P05" => (0, InvalidJob::Nul),
        "22P02" | "22003" => (0, InvalidJob::NotJson { why }),
        code if code.starts_with("22") => (0, InvalidJob::Refused { why }),
        _ => return store_error(place, "enqueue_many", error),
    };
    StoreError::Invalid { index, invalid }
}

/// Converts an error of an operation on one job.
pub(crate) fn change_error(place: &str, job: JobId, verb: Verb, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else {
        return store_error(place, "change", error);
    };
    match database.code() {
        NO_SUCH_JOB => StoreError::NoSuchJob(job),
        ILLEGAL => {
            let from = database.detail().and_then(|state| state.parse::<JobState>().ok());
            StoreError::Illegal { job, illegal: IllegalTransition { from, verb } }
        }
        crate::batch::ILLEGAL => {
            match database.detail().and_then(|detail| crate::batch::job_of_batch(job, detail)) {
                Some(refused) => refused,
                None => store_error(place, "change", error),
            }
        }
        _ => store_error(place, "change", error),
    }
}

/// Converts an error of an edit of a job.
pub(crate) fn edit_error(place: &str, job: JobId, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error).filter(|database| database.code() == INVALID_JOB) else {
        return change_error(place, job, Verb::Edit, error);
    };
    let invalid = match database.detail().and_then(|state| state.parse::<JobState>().ok()) {
        Some(state) => InvalidJob::NoStart { state },
        None if database.detail() == Some("bulk") => InvalidJob::EditsBulkRun,
        None => InvalidJob::Refused { why: database.message().to_owned() },
    };
    StoreError::Invalid { index: 0, invalid }
}

/// Returns whether another transaction did not release a lock within the time that the statement waits ([`lock_wait`](crate::lock_wait)).
pub(crate) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|error| error.code() == LOCK_TIMEOUT)
}

/// Returns whether the error is that a job with this ID already exists.
pub(crate) fn is_repeated_id(error: &sqlx::Error) -> bool {
    database_error(error)
        .is_some_and(|e| e.code() == "23505" && matches!(e.constraint(), Some("job_pkey" | "live_pkey")))
}

pub(crate) fn database_error(error: &sqlx::Error) -> Option<&PgDatabaseError> {
    error.as_database_error().and_then(|e| e.try_downcast_ref::<PgDatabaseError>())
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            true
        }
        // The driver's error for a connection that broke in the middle of a message.
        sqlx::Error::Protocol(_) => true,
        error => is_of(error, TRANSIENT) || is_outdated(error),
    }
}

/// Returns whether the connection has prepared a statement before a migration changed the columns of its result. The statement did nothing, and
/// fails on this connection for ever. The name of the server's routine is not translated, as its message is.
pub(crate) fn is_outdated(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|e| e.code() == "0A000" && e.routine() == Some("RevalidateCachedQuery"))
}

fn is_of(error: &sqlx::Error, prefixes: &[&str]) -> bool {
    database_error(error).is_some_and(|e| prefixes.iter().any(|prefix| e.code().starts_with(prefix)))
}

/// Returns the message without the position in the call.
fn without_place(message: &str) -> &str {
    message.split_once(" of the call: ").map_or(message, |(_, words)| words)
}

/// Parses the position in the call that an error names: "job 7 of the call: …".
pub(crate) fn index_in(message: &str) -> usize {
    message.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0)
}

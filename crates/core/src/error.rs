//! What can go wrong, typed; causes are kept.

use std::fmt;

use jiff::Timestamp;
use thiserror::Error;

use crate::batch::error::InvalidBatch;
use crate::bulk::error::InvalidBulk;
use crate::event::{InvalidEvent, RelayError};
use crate::feed::InvalidFeed;
use crate::ident::{JobId, Run, WorkerId};
use crate::inbox::InvalidInbox;
use crate::limit::InvalidLimit;
use crate::relocation::MoveError;
use crate::retention::InvalidRetention;
use crate::schedule::InvalidSchedule;
use crate::token::InvalidToken;
use crate::transition::IllegalTransition;

/// A word that is not one of the known names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What was given.
    pub given: String,
    /// What would have been understood.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name {:?}; known are {}", self.given, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// A job that cannot be accepted as it is. Nothing of it was stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidJob {
    /// A kind, queue, key or group that is empty, too long or has control characters.
    #[error("the {field} {value:?} is not usable: {why}")]
    Name {
        /// Which field.
        field: &'static str,
        /// Its value, shortened.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The payload is not JSON.
    #[error("the payload is not JSON: {why}")]
    NotJson {
        /// The parser's words, with line and column.
        why: String,
    },
    /// The payload holds a NUL character, which PostgreSQL's jsonb cannot store.
    #[error("the payload holds a NUL character (\\u0000), which cannot be stored")]
    Nul,
    /// The start is a time that not every store can keep.
    #[error("start_at is {start_at}; it must be a time from 1970 on")]
    StartsTooEarly {
        /// The start that was given.
        start_at: Timestamp,
    },
    /// The payload is larger than the limit.
    #[error("the payload has {bytes} bytes; the limit is {bytes_max} (payload_bytes_max)")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit in force.
        bytes_max: usize,
    },
    /// The payload is nested more deeply than readers of JSON can read.
    #[error("the payload is nested {depth} levels deep; the limit is {depth_max}")]
    TooDeep {
        /// Its levels.
        depth: usize,
        /// The limit.
        depth_max: usize,
    },
    /// A number out of its range.
    #[error("{field} is {value}; it must be {range}")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// Its value.
        value: i64,
        /// The range, in words.
        range: &'static str,
    },
    /// The kind is the name of a bulk job, whose runs get their queue, group and attempts from it.
    #[error("the kind {kind:?} is a bulk job; start it with `milepost bulk start`, or start_bulk in SQL")]
    BulkJob {
        /// The kind.
        kind: String,
    },
    /// The database refused the values for a reason of its own.
    #[error("the database refused the job: {why}")]
    Refused {
        /// The database's words.
        why: String,
    },
}

/// Any error's cause, whatever its type.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What a store answers when it cannot do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The write carried a run token that is no longer the job's: another attempt owns it, or it ended.
    #[error("run {} of job {} is fenced: the job has moved on; nothing was changed", .0.token, .0.job)]
    Fenced(Run),
    /// The worker's lease ran out and it was declared dead; whatever it held is rescued or will be.
    #[error("worker {0} lost its lease and was declared dead; it must stop its jobs and register again")]
    WorkerLost(WorkerId),
    /// There is no such job.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The job's state does not allow the verb.
    #[error("job {job}: {illegal}")]
    Illegal {
        /// Which job.
        job: JobId,
        /// What was tried from which state.
        #[source]
        illegal: IllegalTransition,
    },
    /// The job cannot be accepted as it is.
    #[error("job {index} of the call: {invalid}")]
    Invalid {
        /// Its place in the call, from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        invalid: InvalidJob,
    },
    /// The schedule cannot be accepted as it is.
    #[error("schedule {name:?}: {invalid}")]
    InvalidSchedule {
        /// Its name, shortened.
        name: String,
        /// What is wrong with it.
        #[source]
        invalid: InvalidSchedule,
    },
    /// There is no such schedule.
    #[error("there is no schedule {0:?}")]
    NoSuchSchedule(String),
    /// The limit cannot be as it is.
    #[error("the limit is not usable: {0}")]
    Limit(#[from] InvalidLimit),
    /// The bulk job cannot run as it is.
    #[error("{0}")]
    Bulk(#[from] InvalidBulk),
    /// The batch, or what is to be done with it, cannot be.
    #[error("{0}")]
    Batch(#[from] InvalidBatch),
    /// The event cannot be emitted as it is.
    #[error("event {index} of the call: {invalid}")]
    Event {
        /// Its place in the call, from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        invalid: InvalidEvent,
    },
    /// What was asked of a subscription or its events cannot be done.
    #[error("{0}")]
    Relay(#[from] RelayError),
    /// The inbox cannot do what was asked.
    #[error("{0}")]
    Inbox(#[from] InvalidInbox),
    /// The feed cannot go on from there.
    #[error("{0}")]
    Feed(#[from] InvalidFeed),
    /// The token cannot be, or is not there.
    #[error("{0}")]
    Token(#[from] InvalidToken),
    /// The database did not answer, or cannot do it now (a deadlock, a full disk, a standby); trying again may help.
    #[error("{place} cannot be used now")]
    Unavailable {
        /// Host or file, without secrets.
        place: String,
        /// What the driver said.
        #[source]
        cause: Cause,
    },
    /// The database refused the values it was given; the same call will never succeed. Nothing was changed.
    #[error("the database refused what {verb} gave it")]
    Refused {
        /// The verb that was asked for.
        verb: &'static str,
        /// What the driver said.
        #[source]
        cause: Cause,
    },
    /// The call asks for more than one transaction may take. Nothing was changed.
    #[error("a call of {verb} takes at most {max} {what} and was given {given}; split it")]
    TooLarge {
        /// The verb that was asked for.
        verb: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much was given.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// The store's schema does not fit this binary.
    #[error("{0}")]
    Schema(SchemaError),
    /// The retention policy cannot be kept.
    #[error("{0}")]
    Retention(#[from] InvalidRetention),
    /// The store is being moved, or was, or the move cannot be made.
    #[error("{0}")]
    Move(#[from] MoveError),
    /// The database answered with an error that means a defect, a damaged store or one that cannot be written
    /// now.
    #[error("the database failed at {verb}")]
    Database {
        /// The verb that was asked for.
        verb: &'static str,
        /// What the driver said.
        #[source]
        cause: Cause,
    },
}

impl StoreError {
    /// Whether the same call may succeed when it is made again a little later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// This error with all its causes on one line, for logs and operators.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let words = error.to_string();
            if !text.contains(&words) {
                text.push_str(": ");
                text.push_str(&words);
            }
            cause = error.source();
        }
        text
    }
}

/// The store's schema does not fit this binary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The store was migrated by a newer binary.
    #[error("the store has schema version {found}, this binary knows up to {known}; use a newer milepost")]
    TooNew {
        /// The version in the store.
        found: i64,
        /// The newest version that this binary knows.
        known: i64,
    },
    /// The store is older than the binary and has to be migrated first.
    #[error("the store has schema version {found}, this binary needs {known}; run `milepost migrate`")]
    TooOld {
        /// The version in the store; 0 for an empty one.
        found: i64,
        /// The version that this binary needs.
        known: i64,
    },
    /// A migration that was applied differs from the one in the binary.
    #[error(
        "migration {version} was applied with other content than this binary has; the store was altered by hand or by an unreleased build"
    )]
    Altered {
        /// The migration's number.
        version: i64,
    },
    /// The server is too old.
    #[error("the server is version {found}; {needed} or newer is needed")]
    ServerTooOld {
        /// The version found.
        found: String,
        /// The oldest that is supported.
        needed: &'static str,
    },
    /// The database cannot hold every text that jobs may have.
    #[error(
        "the database has the encoding {found}; UTF8 is needed: create one with `create database NAME encoding 'UTF8' template template0`"
    )]
    Encoding {
        /// The encoding found.
        found: String,
    },
}

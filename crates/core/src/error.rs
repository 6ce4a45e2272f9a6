//! Errors that a store returns. Causes are preserved as error sources.

use thiserror::Error;

use crate::batch::error::InvalidBatch;
use crate::bulk::error::InvalidBulk;
use crate::event::{InvalidEvent, RelayError};
use crate::feed::InvalidFeed;
use crate::hide::HideRefusal;
use crate::ident::{JobId, Run, WorkerId};
use crate::inbox::InvalidInbox;
use crate::job::error::InvalidJob;
use crate::limit::InvalidLimit;
use crate::relocation::MoveError;
use crate::retention::InvalidRetention;
use crate::schedule::InvalidSchedule;
use crate::token::{InvalidToken, OutsideScope};
use crate::transition::IllegalTransition;

/// The cause of an error, of any type.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An error that a store returns.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The write carried an outdated run token: another attempt owns the job, or it ended.
    #[error("run {} of job {} is fenced: another run owns the job, or it has ended; nothing was changed", .0.token, .0.job)]
    Fenced(Run),
    /// The worker's lease expired and it was declared dead; its jobs are rescued or will be.
    #[error("worker {0} lost its lease and was declared dead; it must stop its jobs and register again")]
    WorkerLost(WorkerId),
    /// The job does not exist.
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    /// The job's state does not allow the verb.
    #[error("job {job}: {illegal}")]
    Illegal {
        /// The job.
        job: JobId,
        /// The verb that was attempted, and the state it was attempted from.
        #[source]
        illegal: IllegalTransition,
    },
    /// The job cannot be accepted.
    #[error("job {index} of the call: {invalid}")]
    Invalid {
        /// Its position in the call, from 0.
        index: usize,
        /// The reason.
        #[source]
        invalid: InvalidJob,
    },
    /// Some of the jobs of a call exist and others do not, but they must be stored together.
    #[error(
        "{stored} of {given} jobs with keys exist already, for example {job}; they are stored together or not at all"
    )]
    PartlyStored {
        /// The number of jobs whose keys exist.
        stored: usize,
        /// The number of jobs that are stored together.
        given: usize,
        /// One that exists.
        job: JobId,
    },
    /// The schedule cannot be accepted.
    #[error("schedule {name:?}: {invalid}")]
    InvalidSchedule {
        /// Its name, shortened.
        name: String,
        /// The reason.
        #[source]
        invalid: InvalidSchedule,
    },
    /// The schedule does not exist.
    #[error("there is no schedule {0:?}")]
    NoSuchSchedule(String),
    /// The limit is invalid.
    #[error("the limit is invalid: {0}")]
    Limit(#[from] InvalidLimit),
    /// The bulk job cannot run.
    #[error("{0}")]
    Bulk(#[from] InvalidBulk),
    /// The batch, or the operation on it, is invalid.
    #[error("{0}")]
    Batch(#[from] InvalidBatch),
    /// The event cannot be emitted.
    #[error("event {index} of the call: {invalid}")]
    Event {
        /// Its position in the call, from 0.
        index: usize,
        /// The reason.
        #[source]
        invalid: InvalidEvent,
    },
    /// The operation on a subscription or its events is not possible.
    #[error("{0}")]
    Relay(#[from] RelayError),
    /// The operation on the inbox is not possible.
    #[error("{0}")]
    Inbox(#[from] InvalidInbox),
    /// The feed cannot continue from the given position.
    #[error("{0}")]
    Feed(#[from] InvalidFeed),
    /// The token is invalid or does not exist.
    #[error("{0}")]
    Token(#[from] InvalidToken),
    /// The caller is limited to other queues and kinds, or the call covers the whole store.
    #[error("{0}")]
    OutsideScope(OutsideScope),
    /// Hidden data does not allow the call.
    #[error("{0}")]
    Hide(HideRefusal),
    /// The database did not answer, or cannot serve the call now (a deadlock, a full disk, a standby). A retry may succeed.
    #[error("{place} cannot be used now")]
    Unavailable {
        /// Host or file, without secrets.
        place: String,
        /// The driver's error.
        #[source]
        cause: Cause,
    },
    /// An open transaction of another program held a lock that the call needs, for as long as calls wait for one. Nothing was changed. A
    /// retry succeeds when that transaction has ended.
    #[error(
        "an open transaction holds what {verb} needs; nothing was changed: end that transaction, or try again when it has ended"
    )]
    Held {
        /// The verb that was called.
        verb: &'static str,
        /// The driver's error.
        #[source]
        cause: Cause,
    },
    /// The database rejected the values it was given; the same call will never succeed. Nothing was changed.
    #[error("the database rejected the values of {verb}")]
    Refused {
        /// The verb that was called.
        verb: &'static str,
        /// The driver's error.
        #[source]
        cause: Cause,
    },
    /// The call contains more than one transaction may process. Nothing was changed.
    #[error("a call of {verb} accepts at most {max} {what}, but was given {given}; split it")]
    TooLarge {
        /// The verb that was called.
        verb: &'static str,
        /// The kind of item that there is too much of.
        what: &'static str,
        /// The given number.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// The store's schema version does not match this binary.
    #[error("{0}")]
    Schema(SchemaError),
    /// The retention policy is invalid.
    #[error("{0}")]
    Retention(#[from] InvalidRetention),
    /// The store is being moved or has been moved, or the move is not possible.
    #[error("{0}")]
    Move(#[from] MoveError),
    /// The database returned an error that indicates a bug, a damaged store or a store that cannot be written now.
    #[error("the database failed at {verb}")]
    Database {
        /// The verb that was called.
        verb: &'static str,
        /// The driver's error.
        #[source]
        cause: Cause,
    },
}

impl StoreError {
    /// Returns whether the same call may succeed when it is repeated a little later.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Held { .. })
    }

    /// Returns this error with all its causes on one line, for logs and operators.
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

/// The store's schema version does not match this binary.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The store was migrated by a newer binary.
    #[error(
        "the store has schema version {found}, but this binary supports versions up to {known}; use a newer milepost"
    )]
    TooNew {
        /// The version in the store.
        found: i64,
        /// The newest version that this binary supports.
        known: i64,
    },
    /// The store is older than the binary and must be migrated first.
    #[error("the store has schema version {found}, but this binary needs {known}; run `milepost migrate`")]
    TooOld {
        /// The version in the store; 0 for an empty one.
        found: i64,
        /// The version that this binary needs.
        known: i64,
    },
    /// An applied migration differs from the one in the binary.
    #[error(
        "migration {version} was applied with different content than in this binary; the store was altered by hand or by an unreleased build"
    )]
    Altered {
        /// The migration's number.
        version: i64,
    },
    /// A migration is not recorded, although newer ones are.
    #[error(
        "migration {version} is not recorded as applied, although newer ones are; the list of migrations was altered by hand, or not restored completely: restore a backup"
    )]
    Gap {
        /// The number of the missing migration.
        version: i64,
    },
    /// The schema, or an object in it, belongs to a role that could change what the migrating role runs.
    #[error(
        "{object} belongs to the role {owner}, so this role could run what {owner} has written; run `milepost migrate` as {owner}, \
         or drop the schema if it is not a store"
    )]
    ForeignOwner {
        /// The object, such as `the schema milepost`.
        object: String,
        /// Its owner.
        owner: String,
    },
    /// The schema contains objects, but is not a store.
    #[error(
        "{object} exists, but no migration created it; drop the schema milepost, or use another database"
    )]
    ForeignObject {
        /// The object, such as `the table milepost.job`.
        object: String,
    },
    /// The version of the database server is too old.
    #[error("the server has version {found}; {needed} or newer is required")]
    ServerTooOld {
        /// The version found.
        found: String,
        /// The oldest supported version.
        needed: &'static str,
    },
    /// The database's encoding cannot represent every text that jobs may contain.
    #[error(
        "the database has the encoding {found}, but UTF8 is required; create one with `create database NAME encoding 'UTF8' template template0`"
    )]
    Encoding {
        /// The encoding found.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_that_cannot_be_used_now_is_worth_another_try() {
        let cause = || Cause::from("why");
        let unavailable = StoreError::Unavailable { place: "db".to_owned(), cause: cause() };
        assert!(unavailable.is_transient());
        let others = [
            StoreError::Refused { verb: "claim", cause: cause() },
            StoreError::Database { verb: "claim", cause: cause() },
            StoreError::TooLarge { verb: "claim", what: "jobs", given: 2, max: 1 },
        ];
        assert!(others.iter().all(|error| !error.is_transient()));
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        let inner = StoreError::Refused { verb: "claim", cause: Cause::from("a null value") };
        let outer = StoreError::Unavailable { place: "db".to_owned(), cause: Box::new(inner) };
        let expected = "db cannot be used now: the database rejected the values of claim: a null value";
        assert_eq!(outer.chain(), expected);
        let same = StoreError::Unavailable { place: "db".to_owned(), cause: Cause::from("db cannot") };
        assert_eq!(same.chain(), "db cannot be used now");
    }
}

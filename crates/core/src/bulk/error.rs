//! What is wrong with a bulk job, found by asking the database.

use thiserror::Error;

use super::sql::InvalidSql;
use super::staged::BadRow;
use crate::ident::JobId;

/// A bulk job that cannot run as it is. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBulk {
    /// Its source cannot be used.
    #[error("the source is not usable: {0}")]
    Source(#[source] InvalidSql),
    /// Its apply cannot be used.
    #[error("the apply is not usable: {0}")]
    Apply(#[source] InvalidSql),
    /// The database refuses its source or its apply.
    #[error("the database does not take the {part}: {why}")]
    NotPrepared {
        /// `source` or `apply`.
        part: &'static str,
        /// The database's words.
        why: String,
    },
    /// The source does not answer its key.
    #[error("the source does not select its key column {column}; it selects {selected}")]
    NoKeyColumn {
        /// The column.
        column: String,
        /// What it selects.
        selected: String,
    },
    /// The source does not answer a column that is read of its targets.
    #[error("the source does not select {column}, which is read of every target; it selects {selected}")]
    NoColumn {
        /// The column.
        column: String,
        /// What it selects.
        selected: String,
    },
    /// No index gives the key's order.
    #[error(
        "the source's plan {problem}, for every chunk anew; make an index that begins with what it filters by and goes on with the key ({key}). The plan: {plan}"
    )]
    NoIndex {
        /// `sorts`, `reads all of member`.
        problem: String,
        /// The key columns.
        key: String,
        /// The database's plan.
        plan: String,
    },
    /// A parameter that the payload does not have.
    #[error("the payload has no {name:?}, which the {part} asks for as :{name}")]
    NoParameter {
        /// Its name.
        name: String,
        /// `source` or `apply`.
        part: &'static str,
    },
    /// The payload is no object.
    #[error("the payload of a bulk job is a JSON object, whose members are its parameters")]
    NotAnObject,
    /// The source answered keys that are not after the cursor.
    #[error("the source does not move on: after {cursor} it answered {answered}")]
    Stands {
        /// Where it was.
        cursor: String,
        /// What came.
        answered: String,
    },
    /// The definition is another one than the run began with.
    #[error(
        "the definition changed since job {job} began: its cursor may not fit; give the new one another name, or start a new run and cancel this one"
    )]
    Changed {
        /// The job.
        job: JobId,
    },
    /// The run has ended.
    #[error("job {job} is done: all its targets are behind it; start a new one")]
    Done {
        /// The job.
        job: JobId,
    },
    /// No such bulk job.
    #[error("job {job} is no bulk job")]
    NotBulk {
        /// The job.
        job: JobId,
    },
    /// A parameter of another type than the statement has.
    #[error("the database does not take a parameter of the payload: {why}")]
    BadParameter {
        /// The database's words.
        why: String,
    },
    /// A setting that no run can have.
    #[error("{name} cannot be {given}: it must be {range}")]
    Setting {
        /// Which one.
        name: &'static str,
        /// What was given.
        given: String,
        /// What it can be.
        range: &'static str,
    },
    /// A row that cannot be staged.
    #[error("row {number} cannot be staged: {bad}")]
    Row {
        /// Its number, from 1.
        number: u64,
        /// What is wrong with it.
        bad: BadRow,
    },
    /// A definition whose targets are in tables.
    #[error("the bulk job {name} takes its targets from tables of the database, so none are staged for it")]
    NotOverFile {
        /// The definition.
        name: String,
    },
    /// A run over a file that was started without one.
    #[error(
        "job {job} takes its targets from a file and was started without one; cancel it, and start one with `milepost bulk start --from FILE`"
    )]
    NotStaged {
        /// The job.
        job: JobId,
    },
    /// What was staged is gone: it took too long to go on.
    #[error("what was staged for job {job} was given up, since nothing came for an hour; start anew")]
    StagingLost {
        /// The job that it was for.
        job: JobId,
    },
    /// There is nothing to try again.
    #[error("job {job} has no failures that are not tried again already")]
    NoFailures {
        /// The job.
        job: JobId,
    },
    /// Its connections would go through a transaction pooler.
    #[error(
        "a bulk job needs a connection of its own that lasts, and this store is reached through a transaction pooler; give PostgresOptions::direct the address of the database itself"
    )]
    NoDirect,
    /// What is done elsewhere was not done.
    #[error("the chunk was not applied: {message}")]
    NotApplied {
        /// A stable name of the failure.
        code: String,
        /// What happened.
        message: String,
        /// Whether another attempt may succeed.
        retryable: bool,
        /// How long to wait before.
        retry_after: Option<std::time::Duration>,
    },
    /// It runs outside of its group.
    #[error(
        "job {job} has not the group {group:?} of its definition, so others could run beside it; start it with `milepost bulk start` or milepost.start_bulk()"
    )]
    OutOfGroup {
        /// The job.
        job: JobId,
        /// The group.
        group: String,
    },
}

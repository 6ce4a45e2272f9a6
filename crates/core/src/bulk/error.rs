//! Errors of bulk jobs that are found by querying the database.

use std::borrow::Cow;

use thiserror::Error;

use super::sql::InvalidSql;
use super::staged::BadRow;
use crate::ident::JobId;

/// A bulk job that cannot run. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidBulk {
    /// Its source is invalid.
    #[error("the source is invalid: {0}")]
    Source(#[source] InvalidSql),
    /// Its apply statement is invalid.
    #[error("the apply statement is invalid: {0}")]
    Apply(#[source] InvalidSql),
    /// The query of its throttle is invalid.
    #[error("the query of the throttle is invalid: {0}")]
    Throttle(#[source] InvalidSql),
    /// The database rejects its source, its apply statement, or the query of its throttle.
    #[error("the database rejects the {part}: {why}")]
    NotPrepared {
        /// `source`, `apply` or `throttle`.
        part: &'static str,
        /// The database's message.
        why: String,
    },
    /// The source does not select its key column.
    #[error("the source does not select its key column {column}; it selects {selected}")]
    NoKeyColumn {
        /// The column.
        column: String,
        /// The columns that it selects.
        selected: String,
    },
    /// The source does not select a column that is read from its targets.
    #[error("the source does not select {column}, which is read from every target; it selects {selected}")]
    NoColumn {
        /// The column.
        column: String,
        /// The columns that it selects.
        selected: String,
    },
    /// No index returns rows in the order of the key.
    #[error(
        "the plan of the source {problem} for every chunk; create an index on the columns that it filters by, followed by the key ({key}). The plan: {plan}"
    )]
    NoIndex {
        /// The problem of the plan: `sorts`, `reads all of member`.
        problem: String,
        /// The key columns.
        key: String,
        /// The database's plan.
        plan: String,
    },
    /// The payload lacks a parameter.
    #[error("the payload has no {name:?}, which the SQL of the bulk job uses as :{name}")]
    NoParameter {
        /// Its name.
        name: String,
    },
    /// The payload is not a JSON object.
    #[error("the payload of a bulk job must be a JSON object whose members are its parameters")]
    NotAnObject,
    /// The source returned keys that are not after the cursor.
    #[error("the source does not advance: after the key {cursor} it returned {answered}")]
    Stands {
        /// The cursor.
        cursor: String,
        /// The returned key.
        answered: String,
    },
    /// The definition is not the one the run began with.
    #[error(
        "the definition changed after job {job} began, so its cursor may not match; give the new definition another name, or cancel this job and start a new one"
    )]
    Changed {
        /// The job.
        job: JobId,
    },
    /// The run has ended.
    #[error("job {job} has finished: all its targets were processed; start a new one")]
    Done {
        /// The job.
        job: JobId,
    },
    /// The job is not a run of a bulk job.
    #[error("job {job} is not a bulk job")]
    NotBulk {
        /// The job.
        job: JobId,
    },
    /// A parameter whose type differs from the one in the statement.
    #[error("the database rejects a parameter of the payload: {why}")]
    BadParameter {
        /// The database's message.
        why: String,
    },
    /// A setting with an invalid value.
    #[error("{name} is {given}; it must be {range}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// The given value.
        given: String,
        /// The valid range.
        range: Cow<'static, str>,
    },
    /// A row that cannot be staged.
    #[error("row {number} cannot be staged: {bad}")]
    Row {
        /// Its number, from 1.
        number: u64,
        /// The reason.
        bad: BadRow,
    },
    /// A definition whose targets are in tables of the database.
    #[error(
        "the bulk job {name} reads its targets from tables of the database, so no rows can be staged for it"
    )]
    NotOverFile {
        /// The definition.
        name: String,
    },
    /// A run over a file that was started without a file.
    #[error(
        "job {job} reads its targets from a file and was started without one; cancel it, and start one with `milepost bulk start --from FILE`"
    )]
    NotStaged {
        /// The job.
        job: JobId,
    },
    /// The staged rows were deleted because the upload did not continue for an hour.
    #[error("the rows staged for job {job} were deleted, because no more arrived for an hour; start again")]
    StagingLost {
        /// The job that it was for.
        job: JobId,
    },
    /// The run has no failures that can be retried.
    #[error(
        "job {job} has no failures, or all of them were retried; a failure of a retry is retried by the id of that run"
    )]
    NoFailures {
        /// The job.
        job: JobId,
    },
    /// Its connections would go through a transaction pooler.
    #[error(
        "a bulk job needs a dedicated permanent connection, but this store is reached through a transaction pooler; add `&direct=HOST:PORT` of the database itself to the address of the store (in Rust: PostgresOptions::direct)"
    )]
    NoDirect,
    /// A chunk whose effects are outside the store's database was not applied.
    #[error("the chunk was not applied: {message}")]
    NotApplied {
        /// A stable name of the failure.
        code: String,
        /// A description of the failure.
        message: String,
        /// Whether another attempt may succeed.
        retryable: bool,
        /// How long to wait before it.
        retry_after: Option<std::time::Duration>,
    },
    /// A bulk job whose effects cannot be rolled back.
    #[error("the bulk job has no dry run: {why}")]
    NoDryRun {
        /// The reason.
        why: &'static str,
    },
    /// The run is not in the group of its definition.
    #[error(
        "job {job} does not have the group {group:?} of its definition, so others could run at the same time; start it with `milepost bulk start` or milepost.start_bulk()"
    )]
    OutOfGroup {
        /// The job.
        job: JobId,
        /// The group.
        group: String,
    },
}

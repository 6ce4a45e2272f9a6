//! Conversion of errors of `sql/batches.sql` into errors of the domain.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::wait::NewSignal;
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};

use crate::error::{database_error, store_error};

/// SQLSTATE of a DAG, version, batch or task that does not exist.
const UNKNOWN: &str = "MP010";
/// SQLSTATE of an input that cannot be accepted.
const INPUT: &str = "MP011";
/// SQLSTATE of an operation that the state of a batch or a task does not allow.
pub(crate) const ILLEGAL: &str = "MP012";
/// SQLSTATE of a rerun without tasks to run.
const NOTHING: &str = "MP014";
/// SQLSTATE of an operation on a batch that was rerun in the meantime.
const OVERTAKEN: &str = "MP013";

/// Returns whether a start was refused because its input must first be checked against a schema.
pub(super) fn is_for_schema(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|e| e.code() == INPUT && e.detail() == Some("schema"))
}

/// Converts an error of a start.
pub(crate) fn start_error(place: &str, dag: &str, version: Option<String>, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else { return store_error(place, "start_batch", error) };
    let name = dag.to_owned();
    match (database.code(), version) {
        (UNKNOWN, Some(version)) if database.detail() == Some("version") => {
            InvalidBatch::NoSuchVersion { name, version }.into()
        }
        (UNKNOWN, _) => InvalidBatch::NoSuchDag { name }.into(),
        (INPUT, _) => InvalidBatch::Input { why: database.message().to_owned() }.into(),
        _ => store_error(place, "start_batch", error),
    }
}

/// Converts an error of a signal.
pub(crate) fn signal_error(place: &str, signal: &NewSignal, error: sqlx::Error) -> StoreError {
    let Some(database) = database_error(&error) else { return store_error(place, "signal_batch", error) };
    let batch = signal.batch;
    match (database.code(), database.detail().unwrap_or_default()) {
        (UNKNOWN, "batch") => InvalidBatch::NoSuchBatch(batch).into(),
        (UNKNOWN, _) => {
            InvalidBatch::NoSuchSignal { batch, name: signal.name.clone(), known: Vec::new() }.into()
        }
        (INPUT, _) => InvalidBatch::Signal { why: database.message().to_owned() }.into(),
        (ILLEGAL, "signals") => InvalidBatch::TooManySignals(batch).into(),
        _ => store_error(place, "signal_batch", error),
    }
}

/// Converts an error of an operation on a batch. `task` returns the key of the task that the error names, if it names one;
/// `what` is the operation as a participle, such as `resumed`.
pub(super) fn operation_error(
    place: &str,
    batch: BatchId,
    task: impl FnOnce(&str) -> Option<String>,
    what: &'static str,
    error: sqlx::Error,
) -> StoreError {
    let Some(database) = database_error(&error) else { return store_error(place, "operate_batch", error) };
    let words = database.message();
    let named = task(words);
    match (database.code(), database.detail().unwrap_or_default(), named) {
        (UNKNOWN, "task", Some(task)) => InvalidBatch::NoSuchTask { batch, task }.into(),
        (UNKNOWN, ..) => InvalidBatch::NoSuchBatch(batch).into(),
        (NOTHING, ..) => InvalidBatch::NothingToRerun(batch).into(),
        (OVERTAKEN, ..) => InvalidBatch::Overtaken(batch_in(words).unwrap_or(batch)).into(),
        (ILLEGAL, "list", _) => InvalidBatch::OverAList(batch).into(),
        (ILLEGAL, state, Some(task)) => match state.parse() {
            Ok(state) => InvalidBatch::Task { batch, task, state, what }.into(),
            Err(_) => store_error(place, "operate_batch", error),
        },
        (ILLEGAL, state, None) => match state.parse() {
            Ok(state) => InvalidBatch::State { batch, state, what }.into(),
            Err(_) => store_error(place, "operate_batch", error),
        },
        _ => store_error(place, "operate_batch", error),
    }
}

/// Parses the batch ID at the beginning of a message: a child batch of the batch that was operated on.
fn batch_in(words: &str) -> Option<BatchId> {
    words.strip_prefix("batch ")?.split(' ').next()?.parse().ok()
}

/// Converts the error for a job that only its batch may change; `detail` contains the batch ID and the task's key.
pub(crate) fn job_of_batch(job: JobId, detail: &str) -> Option<StoreError> {
    let (batch, task) = detail.split_once(' ')?;
    let batch = batch.parse().ok()?;
    Some(InvalidBatch::JobOfBatch { job, batch, task: task.to_owned() }.into())
}

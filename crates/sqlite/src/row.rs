//! Conversion between columns and domain types.

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use milepost_core::ident::{BatchId, JobId, RunToken, WorkerId};
use milepost_core::limit::Rate;
use milepost_core::trace::Traceparent;
use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

type Sql<T> = rusqlite::Result<T>;

/// A job id as a statement parameter.
pub(crate) struct Id<'a>(pub(crate) &'a JobId);

impl rusqlite::ToSql for Id<'_> {
    fn to_sql(&self) -> Sql<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.0.as_bytes())))
    }
}

/// Returns the error for a column with an invalid value.
pub(crate) fn odd(
    column: usize,
    kind: Type,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, cause.into())
}

pub(crate) fn job_id(row: &Row<'_>, column: usize) -> Sql<JobId> {
    let bytes = row.get_ref(column)?.as_blob()?;
    Uuid::from_slice(bytes).map(JobId).map_err(|e| odd(column, Type::Blob, e))
}

pub(crate) fn job_opt(row: &Row<'_>, column: usize) -> Sql<Option<JobId>> {
    Ok(batch_opt(row, column)?.map(|BatchId(id)| JobId(id)))
}

pub(crate) fn batch_id(row: &Row<'_>, column: usize) -> Sql<BatchId> {
    job_id(row, column).map(|JobId(id)| BatchId(id))
}

pub(crate) fn batch_opt(row: &Row<'_>, column: usize) -> Sql<Option<BatchId>> {
    let Some(bytes) = row.get_ref(column)?.as_blob_or_null()? else { return Ok(None) };
    Uuid::from_slice(bytes).map(|id| Some(BatchId(id))).map_err(|e| odd(column, Type::Blob, e))
}

/// Reads a trace; text that is not a valid trace is ignored.
pub(crate) fn trace_opt(row: &Row<'_>, column: usize) -> Sql<Option<Traceparent>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Reads a state or a verb of the domain.
pub(crate) fn word<T>(row: &Row<'_>, column: usize) -> Sql<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let text = row.get_ref(column)?.as_str()?;
    text.parse().map_err(|e| odd(column, Type::Text, e))
}

pub(crate) fn word_opt<T>(row: &Row<'_>, column: usize) -> Sql<Option<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => word(row, column).map(Some),
    }
}

pub(crate) fn time(row: &Row<'_>, column: usize) -> Sql<Timestamp> {
    let ms = row.get(column)?;
    Timestamp::from_millisecond(ms).map_err(|e| odd(column, Type::Integer, e))
}

pub(crate) fn time_opt(row: &Row<'_>, column: usize) -> Sql<Option<Timestamp>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => time(row, column).map(Some),
    }
}

/// Reads a time that is stored in microseconds.
pub(crate) fn time_us(row: &Row<'_>, column: usize) -> Sql<Timestamp> {
    let us = row.get(column)?;
    Timestamp::from_microsecond(us).map_err(|e| odd(column, Type::Integer, e))
}

pub(crate) fn time_us_opt(row: &Row<'_>, column: usize) -> Sql<Option<Timestamp>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => time_us(row, column).map(Some),
    }
}

pub(crate) fn token(row: &Row<'_>, column: usize) -> Sql<RunToken> {
    row.get(column).map(RunToken)
}

/// Returns the rows of a list. A row that cannot be read can only come from another program: it is logged and left out, so that it does not hide
/// the others.
pub(crate) fn readable<T>(list: &str, rows: impl Iterator<Item = Sql<T>>) -> Sql<Vec<T>> {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    let mut read = Vec::new();
    for row in rows {
        match row {
            Ok(row) => read.push(row),
            Err(
                error @ (FromSqlConversionFailure(..)
                | IntegralValueOutOfRange(..)
                | InvalidColumnType(..)
                | Utf8Error(..)),
            ) => tracing::error!(list, %error, "a row cannot be read, and is left out"),
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Reads the attempts of a job. Another value than a count can only come from another program; it becomes the nearest count, so that one row
/// does not fail a call for many.
pub(crate) fn attempts(row: &Row<'_>, column: usize) -> Sql<u32> {
    let count = row.get_ref(column)?.as_i64().unwrap_or_default();
    Ok(u32::try_from(count.clamp(0, i64::from(i32::MAX))).unwrap_or_default())
}

/// Reads text. Bytes that are not UTF-8 can only come from another program; they are replaced, so that one row does not fail a call for many.
pub(crate) fn text_opt(row: &Row<'_>, column: usize) -> Sql<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Null => None,
    })
}

pub(crate) fn worker_opt(row: &Row<'_>, column: usize) -> Sql<Option<WorkerId>> {
    row.get::<_, Option<i32>>(column).map(|worker| worker.map(WorkerId))
}

pub(crate) fn duration_opt(row: &Row<'_>, column: usize) -> Sql<Option<Duration>> {
    let ms: Option<i64> = row.get(column)?;
    Ok(ms.map(|ms| Duration::from_millis(ms.max(0).cast_unsigned())))
}

/// Reads JSON. Text that is not JSON can only come from another program and is read as a string.
pub(crate) fn json(row: &Row<'_>, column: usize) -> Sql<Box<RawValue>> {
    let text = row.get_ref(column)?.as_str()?;
    RawValue::from_string(text.to_owned())
        .or_else(|_| serde_json::value::to_raw_value(text))
        .map_err(|e| odd(column, Type::Text, e))
}

pub(crate) fn json_opt(row: &Row<'_>, column: usize) -> Sql<Option<Box<RawValue>>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => json(row, column).map(Some),
    }
}

/// Reads an optional rate: starts a second and, in the next column, the burst.
pub(crate) fn rate_opt(row: &Row<'_>, column: usize) -> Sql<Option<Rate>> {
    let per_second: Option<f64> = row.get(column)?;
    per_second.map(|per_second| Ok(Rate::new(per_second, row.get(column + 1)?))).transpose()
}

/// Reads a list of names that is stored as a JSON array.
pub(crate) fn names(row: &Row<'_>, column: usize) -> Sql<Vec<String>> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|e| odd(column, Type::Text, e))
}

/// Reads numbers that are stored as a JSON array.
pub(crate) fn numbers<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Sql<Vec<T>> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|e| odd(column, Type::Text, e))
}

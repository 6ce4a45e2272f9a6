//! Rows of bulk jobs as domain types, and SQLite values as JSON.

use std::time::Duration;

use milepost_core::bulk::chunk::{Load, Sizing};
use milepost_core::bulk::definition::{Definition, Labels};
use milepost_core::bulk::key::Key;
use milepost_core::bulk::listing::{BulkView, StagedFile};
use milepost_core::bulk::parameters::Parameter;
use milepost_core::bulk::run::{Counts, TargetFailure, Total};
use milepost_core::bulk::settings::Settings;
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use milepost_core::json::is_same_json;
use milepost_core::schedule::Source;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSql, ToSqlOutput, Type, Value as Sql, ValueRef};
use rusqlite::{Connection, Row, RowIndex};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::row::{job_id, odd, time, time_opt, word, word_opt};

/// The JSON member that represents a blob.
const BLOB: &str = "$blob";
/// The JSON member that represents an infinite number.
const REAL: &str = "$real";

/// The JSON member that represents a text that is not UTF-8.
const TEXT: &str = "$text";

/// An SQLite value. Unlike that of rusqlite, a text can be any bytes.
#[derive(Debug)]
pub(super) enum Bound {
    Value(Sql),
    Text(Vec<u8>),
}

impl From<Sql> for Bound {
    fn from(value: Sql) -> Self {
        Self::Value(value)
    }
}

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Value(value) => value.to_sql(),
            Self::Text(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Text(bytes))),
        }
    }
}

/// Converts an SQLite value to JSON.
pub(super) fn to_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) if number.is_infinite() => serde_json::json!({ REAL: number.to_string() }),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => serde_json::json!({ TEXT: hex(bytes) }),
        },
        ValueRef::Blob(bytes) => serde_json::json!({ BLOB: hex(bytes) }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Converts a JSON value to an SQLite value.
pub(super) fn to_sql(value: &Value) -> Bound {
    match value {
        Value::Null => Sql::Null.into(),
        Value::Bool(truth) => Sql::Integer((*truth).into()).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Sql::Integer(number).into(),
            None => Sql::Real(number.as_f64().unwrap_or(f64::NAN)).into(),
        },
        Value::String(text) => Sql::Text(text.clone()).into(),
        Value::Object(members) => of_members(members).unwrap_or_else(|| Sql::Text(value.to_string()).into()),
        Value::Array(_) => Sql::Text(value.to_string()).into(),
    }
}

/// Returns the SQLite value that an object stands for because JSON cannot represent it.
fn of_members(members: &Map<String, Value>) -> Option<Bound> {
    let word = |name| members.get(name).and_then(Value::as_str);
    let text = || word(TEXT).and_then(bytes).map(Bound::Text);
    let blob = || word(BLOB).and_then(bytes).map(|bytes| Sql::Blob(bytes).into());
    let real = || word(REAL).and_then(|number| number.parse().ok()).map(|number| Sql::Real(number).into());
    text().or_else(blob).or_else(real)
}

/// Converts a parameter to an SQLite value. A number that SQLite would round is passed as text with all its digits.
pub(super) fn of_parameter(parameter: Parameter<'_>) -> Sql {
    match parameter {
        Parameter::Null => Sql::Null,
        Parameter::Truth(truth) => Sql::Integer(truth.into()),
        Parameter::Text(text) | Parameter::Json(text) => Sql::Text(text),
        Parameter::Number(digits) => match (digits.parse::<i64>(), digits.parse::<f64>()) {
            (Ok(whole), _) => Sql::Integer(whole),
            (_, Ok(real)) if is_same_json(&real.to_string(), digits) => Sql::Real(real),
            _ => Sql::Text(digits.to_owned()),
        },
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pair = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// Adds the SQL function `milepost_key(key, column)`, which reads a column of a key that is stored as JSON.
pub(crate) fn add_key_function(conn: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_scalar_function("milepost_key", 2, flags, |context| {
        let key: Vec<Value> = serde_json::from_str(context.get_raw(0).as_str()?)
            .map_err(|error| rusqlite::Error::UserFunctionError(error.into()))?;
        let column = context.get::<u16>(1)?;
        Ok(key.get(usize::from(column)).map_or(Bound::Value(Sql::Null), to_sql))
    })
}

pub(super) fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Key>> {
    json_of(row, column, |text| serde_json::from_str(text))
}

/// Parses the JSON text of a column.
fn json_of<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> serde_json::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(&text)).transpose().map_err(|e| odd(column, Type::Text, e))
}

pub(super) fn counts(row: &Row<'_>, column: usize) -> rusqlite::Result<Counts> {
    Ok(Counts {
        done: number(row, column)?,
        failed: number(row, column + 1)?,
        chunks: number(row, column + 2)?,
    })
}

pub(super) fn total(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Total>> {
    let (rows, exact): (Option<i64>, Option<bool>) = (row.get(column)?, row.get(column + 1)?);
    Ok(rows.map(|rows| Total { rows: rows.unsigned_abs(), exact: exact.unwrap_or(false) }))
}

pub(super) fn settings(row: &Row<'_>, column: usize) -> rusqlite::Result<Settings> {
    Ok(Settings {
        rows_per_s: row.get(column)?,
        duty: row.get(column + 1)?,
        chunk_ms: row.get::<_, Option<i64>>(column + 2)?.map(i64::unsigned_abs),
        chunk_rows_min: row.get(column + 3)?,
        chunk_rows_max: row.get(column + 4)?,
    })
}

pub(super) fn definition(row: &Row<'_>) -> rusqlite::Result<(Definition, Source)> {
    let definition = Definition {
        name: row.get(0)?,
        labels: Labels { r#type: row.get(1)?, category: row.get(2)? },
        group: row.get(3)?,
        queue: row.get(4)?,
        priority: priority(row, 5)?,
        max_attempts: row.get(6)?,
        sizing: Sizing {
            target: Duration::from_millis(number(row, 7)?),
            rows_min: row.get(8)?,
            rows_max: row.get(9)?,
        },
        load: Load { rows_per_s: row.get(10)?, duty: row.get(11)? },
        failures_max: number(row, 12)?,
        then: row.get(13)?,
        effects: word(row, 14)?,
        columns: json_of(row, 17, |text| serde_json::from_str(text))?,
        fingerprint: row.get(15)?,
        place: row.get(18)?,
        statements: json_of(row, 19, |text| serde_json::from_str(text))?,
    };
    Ok((definition, word(row, 16)?))
}

pub(super) fn priority(row: &Row<'_>, column: usize) -> rusqlite::Result<Priority> {
    Priority::try_from(row.get::<_, u8>(column)?).map_err(|e| odd(column, Type::Integer, e))
}

pub(super) fn view(row: &Row<'_>) -> rusqlite::Result<BulkView> {
    let at = |name: &str| name.idx(row.as_ref());
    Ok(BulkView {
        id: job_id(row, at("id")?)?,
        name: row.get("name")?,
        r#type: row.get("type")?,
        category: row.get("category")?,
        group: row.get("group_key")?,
        state: word(row, at("state")?)?,
        stopping: word_opt(row, at("stop_verb")?)?,
        priority: row.get("priority")?,
        next: row.get("next")?,
        due_at: time_opt(row, at("due_at_ms")?)?,
        created_at: time(row, at("created_at_ms")?)?,
        started_at: time_opt(row, at("started_at_ms")?)?,
        updated_at: time_opt(row, at("updated_at_ms")?)?,
        ended_at: time_opt(row, at("ended_at_ms")?)?,
        cursor: key(row, at("cursor_key")?)?,
        upper: key(row, at("upper_key")?)?,
        total: total(row, at("total")?)?,
        counts: counts(row, at("done")?)?,
        chunk_rows: row.get("chunk_rows")?,
        chunk_ms: row.get::<_, Option<i64>>("chunk_ms")?.map(i64::unsigned_abs),
        busy_ms: number(row, at("busy_ms")?)?,
        held_ms: number(row, at("held_ms")?)?,
        throttle: row.get("throttle")?,
        throttle_since: time_opt(row, at("throttle_since_ms")?)?,
        settings: settings(row, at("set_rows_per_s")?)?,
        effects: word_opt(row, at("effects")?)?,
        file: file(row)?,
        place: row.get(at("place")?)?,
        retry_of: id_opt(row, at("retry_of")?)?,
    })
}

fn file(row: &Row<'_>) -> rusqlite::Result<Option<StagedFile>> {
    let name: Option<String> = row.get("file")?;
    let rows = || number(row, "file_rows".idx(row.as_ref())?);
    name.map(|name| Ok(StagedFile { name, rows: rows()? })).transpose()
}

pub(super) fn failure(row: &Row<'_>) -> rusqlite::Result<TargetFailure> {
    Ok(TargetFailure {
        pos: row.get(0)?,
        key: key(row, 1)?.unwrap_or_else(|| Key(Vec::new())),
        code: row.get(2)?,
        message: row.get(3)?,
        at: time(row, 4)?,
        retried_by: id_opt(row, 5)?,
    })
}

pub(super) fn id_opt(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<JobId>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let id = |bytes: Vec<u8>| Uuid::from_slice(&bytes).map(JobId).map_err(|e| odd(column, Type::Blob, e));
    bytes.map(id).transpose()
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

//! Conversion of bulk job rows into types of the domain.

use std::time::Duration;

use milepost_core::bulk::chunk::{Load, Sizing};
use milepost_core::bulk::definition::{Definition, Labels};
use milepost_core::bulk::key::Key;
use milepost_core::bulk::listing::{BulkView, StagedFile};
use milepost_core::bulk::progress::FailedTarget;
use milepost_core::bulk::run::{Counts, TargetFailure, Total};
use milepost_core::bulk::settings::Settings;
use milepost_core::ident::JobId;
use milepost_core::job::Priority;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::{Decoded, count, named, stop_verb, time};

pub(super) fn key(row: &PgRow, column: &str) -> Decoded<Option<Key>> {
    json_of(row, column, |text| serde_json::from_str(text))
}

/// Parses the JSON text of a column.
fn json_of<T>(
    row: &PgRow,
    column: &str,
    parse: impl FnOnce(&str) -> serde_json::Result<T>,
) -> Decoded<Option<T>> {
    let text: Option<&str> = row.try_get(column)?;
    text.map(parse)
        .transpose()
        .map_err(|e| sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(e) })
}

pub(super) fn counts(row: &PgRow) -> Decoded<Counts> {
    Ok(Counts { done: number(row, "done")?, failed: number(row, "failed")?, chunks: number(row, "chunks")? })
}

pub(super) fn total(row: &PgRow) -> Decoded<Option<Total>> {
    let rows: Option<i64> = row.try_get("total")?;
    let exact: Option<bool> = row.try_get("total_exact")?;
    Ok(rows.map(|rows| Total { rows: rows.unsigned_abs(), exact: exact.unwrap_or(false) }))
}

/// Reads settings from columns whose names begin with `prefix`.
pub(super) fn settings(row: &PgRow, prefix: &str) -> Decoded<Settings> {
    let column = |name: &str| format!("{prefix}{name}");
    let rows = |name: &str| -> Decoded<Option<u32>> {
        Ok(row.try_get::<Option<i32>, _>(column(name).as_str())?.map(i32::unsigned_abs))
    };
    Ok(Settings {
        rows_per_s: row.try_get(column("rows_per_s").as_str())?,
        duty: row.try_get(column("duty").as_str())?,
        chunk_ms: row.try_get::<Option<i64>, _>(column("chunk_ms").as_str())?.map(i64::unsigned_abs),
        chunk_rows_min: rows("chunk_rows_min")?,
        chunk_rows_max: rows("chunk_rows_max")?,
    })
}

pub(super) fn definition(row: &PgRow) -> Decoded<Definition> {
    let rows = |name: &str| count(row, name);
    Ok(Definition {
        name: row.try_get("name")?,
        labels: Labels { r#type: row.try_get("type")?, category: row.try_get("category")? },
        group: row.try_get("group_key")?,
        queue: row.try_get("queue")?,
        priority: priority(row)?,
        max_attempts: rows("max_attempts")?,
        sizing: Sizing {
            target: Duration::from_millis(number(row, "chunk_ms")?),
            rows_min: rows("chunk_rows_min")?,
            rows_max: rows("chunk_rows_max")?,
        },
        load: Load { rows_per_s: row.try_get("rows_per_s")?, duty: row.try_get("duty")? },
        failures_max: number(row, "failures_max")?,
        then: row.try_get("then_name")?,
        effects: named(row, "effects")?,
        columns: json_of(row, "columns", |text| serde_json::from_str(text))?,
        place: row.try_get("place")?,
        fingerprint: row.try_get("fingerprint")?,
        statements: json_of(row, "statements", |text| serde_json::from_str(text))?,
    })
}

pub(super) fn priority(row: &PgRow) -> Decoded<Priority> {
    let priority = row.try_get::<i16, _>("priority")?.unsigned_abs().min(255) as u8;
    Ok(Priority::try_from(priority).unwrap_or_default())
}

pub(super) fn view(row: &PgRow) -> Decoded<BulkView> {
    let rows = row.try_get::<Option<i32>, _>("chunk_rows")?.map(i32::unsigned_abs);
    let ms: Option<i64> = row.try_get("chunk_ms")?;
    let next: Option<i64> = row.try_get("next")?;
    Ok(BulkView {
        id: JobId(row.try_get("id")?),
        name: row.try_get("name")?,
        r#type: row.try_get("type")?,
        category: row.try_get("category")?,
        group: row.try_get("group_key")?,
        state: named(row, "state")?,
        stopping: stop_verb(row, "stop_verb")?,
        priority: priority(row)?.get(),
        next: next.and_then(|next| u32::try_from(next).ok()),
        due_at: time(row, "due_at")?,
        created_at: time(row, "created_at")?.unwrap_or_default(),
        started_at: time(row, "started_at")?,
        updated_at: time(row, "updated_at")?,
        ended_at: time(row, "ended_at")?,
        cursor: key(row, "cursor_key")?,
        upper: key(row, "upper_key")?,
        total: total(row)?,
        counts: counts(row)?,
        chunk_rows: rows,
        chunk_ms: ms.map(i64::unsigned_abs),
        busy_ms: number(row, "busy_ms")?,
        held_ms: number(row, "held_ms")?,
        throttle: row.try_get("throttle")?,
        throttle_since: time(row, "throttle_since")?,
        settings: settings(row, "set_")?,
        effects: if row.try_get::<Option<&str>, _>("effects")?.is_some() {
            Some(named(row, "effects")?)
        } else {
            None
        },
        file: file(row)?,
        place: row.try_get("place")?,
        retry_of: row.try_get::<Option<uuid::Uuid>, _>("retry_of")?.map(JobId),
    })
}

fn file(row: &PgRow) -> Decoded<Option<StagedFile>> {
    let name: Option<String> = row.try_get("file")?;
    name.map(|name| Ok(StagedFile { name, rows: number(row, "file_rows")? })).transpose()
}

pub(super) fn failure(row: &PgRow) -> Decoded<TargetFailure> {
    Ok(TargetFailure {
        pos: row.try_get("pos")?,
        key: key(row, "key")?.unwrap_or_else(|| Key(Vec::new())),
        code: row.try_get("code")?,
        message: row.try_get("message")?,
        at: time(row, "at")?.unwrap_or_default(),
        retried_by: row.try_get::<Option<uuid::Uuid>, _>("retried_by")?.map(JobId),
    })
}

fn number(row: &PgRow, column: &str) -> Decoded<u64> {
    Ok(row.try_get::<i64, _>(column)?.unsigned_abs())
}

/// Returns the outermost node of a plan from the output of `explain (format json)`.
pub(super) fn plan(row: &PgRow) -> Decoded<Value> {
    let text: &str = row.try_get_unchecked(0)?;
    let plans: Value = serde_json::from_str(text)
        .map_err(|e| sqlx::Error::ColumnDecode { index: "0".to_owned(), source: Box::new(e) })?;
    Ok(plans[0]["Plan"].clone())
}

/// Parses the failures to retry next from their JSON array.
pub(super) fn failed_targets(row: &PgRow) -> Decoded<Vec<FailedTarget>> {
    serde_json::from_str(row.try_get("failed")?)
        .map_err(|e| sqlx::Error::ColumnDecode { index: "failed".to_owned(), source: Box::new(e) })
}

//! DAGs and their versions.

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::listing::{Defined, VersionView};
use milepost_core::dag::checked::Dag;
use milepost_core::dag::definition::Definition;
use milepost_core::dag::stored::StoredTask;
use milepost_core::dag::version::Version;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::sql;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::{Value, json};

use crate::clock::now_ms;
use crate::error::{Failure, defect};
use crate::row;

/// Stores a version, unless it exists, and makes it the latest.
pub(super) fn define(conn: &Connection, dag: &Dag) -> Result<Defined, Failure> {
    let mut is_bulk = conn.prepare_cached(sql!("bulk/is_bulk"))?;
    let mut bulk_jobs = Vec::new();
    for kind in dag.kinds() {
        if is_bulk.query_row([kind], |row| row.get(0))? {
            bulk_jobs.push(kind);
        }
    }
    dag.check_kinds(bulk_jobs).map_err(|invalid| StoreError::from(InvalidBatch::from(invalid)))?;
    let (name, version) = (&dag.definition().name, dag.version().to_string());
    let known: Option<i64> = conn
        .prepare_cached(sql!("batch/version_id"))?
        .query_row((name, &version), |row| row.get(0))
        .optional()?;
    let id = match known {
        Some(id) => id,
        None => put(conn, dag, &version)?,
    };
    conn.prepare_cached(sql!("batch/make_latest"))?.execute((name, id, now_ms()))?;
    let view = conn.prepare_cached(sql!("batch/version"))?.query_row([id], view)?;
    Ok(Defined { version: view, known: known.is_some() })
}

fn put(conn: &Connection, dag: &Dag, version: &str) -> Result<i64, Failure> {
    let (definition, graph) = (dag.definition(), dag.graph());
    let id = conn.prepare_cached(sql!("batch/put_version"))?.query_row(
        (
            &definition.name,
            version,
            number(graph.len()),
            number(graph.edges()),
            graph.depth(),
            now_ms(),
            definition.input_schema.as_ref().map(Value::to_string),
            dag.canonical(),
        ),
        |row| row.get(0),
    )?;
    let mut statement = conn.prepare_cached(sql!("batch/put_task"))?;
    for task in dag.stored() {
        let StoredTask { key, spec, .. } = task;
        let written =
            serde_json::to_string(spec).map_err(|e| defect("define_dag", format!("task {key:?}: {e}")))?;
        statement.execute((
            id,
            task.task,
            task.rule.as_str(),
            task.plain,
            number(task.predecessors.len()),
            key,
            &spec.kind,
            &spec.queue,
            spec.priority.get(),
            &spec.group,
            spec.max_attempts,
            spec.timeout.map(whole_ms),
            json!(task.reads).to_string(),
            written,
            json!(task.successors).to_string(),
            json!(task.predecessors).to_string(),
        ))?;
    }
    Ok(id)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Returns the versions that a listing query selects.
pub(super) fn list(
    conn: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<VersionView>, Failure> {
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_map(values, view)?.collect::<rusqlite::Result<_>>()?)
}

/// Returns the id of a version, or of the latest one.
pub(super) fn find(conn: &Connection, name: &str, version: Option<Version>) -> Result<i64, Failure> {
    let latest = conn
        .prepare_cached(sql!("batch/version_latest"))?
        .query_row([name], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::Batch(InvalidBatch::NoSuchDag { name: name.to_owned() }))?;
    let Some(version) = version.map(|version| version.to_string()) else { return Ok(latest) };
    let found = conn
        .prepare_cached(sql!("batch/version_id"))?
        .query_row((name, &version), |row| row.get(0))
        .optional()?;
    let none = || StoreError::Batch(InvalidBatch::NoSuchVersion { name: name.to_owned(), version });
    Ok(found.ok_or_else(none)?)
}

/// Returns a version with its content.
pub(super) fn content(
    conn: &Connection,
    name: &str,
    version: Option<Version>,
) -> Result<(VersionView, Definition), Failure> {
    let id = find(conn, name, version)?;
    Ok(conn.prepare_cached(sql!("batch/version"))?.query_row([id], |row| {
        let text = row.get_ref(10)?.as_str()?;
        let definition = serde_json::from_str(text).map_err(|e| row::odd(10, Type::Text, e))?;
        Ok((view(row)?, definition))
    })?)
}

/// Returns the number of a version among those of its DAG, from 1.
pub(super) fn number_of(conn: &Connection, id: i64) -> rusqlite::Result<u32> {
    conn.prepare_cached(sql!("batch/version"))?.query_row([id], |row| row.get(2))
}

/// Returns the JSON Schema for the input of batches of a version.
pub(super) fn input_schema(conn: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached(sql!("batch/version"))?.query_row([id], |row| row.get(9))
}

fn view(row: &Row<'_>) -> rusqlite::Result<VersionView> {
    Ok(VersionView {
        dag: row.get(1)?,
        number: row.get(2)?,
        version: row::word(row, 3)?,
        latest: row.get(4)?,
        tasks: row.get(5)?,
        edges: row.get(6)?,
        depth: row.get(7)?,
        created_at: row::time(row, 8)?,
    })
}

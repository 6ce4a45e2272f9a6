//! Checks that SQLite accepts the statements and can read chunks through an index.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::sql;
use rusqlite::Connection;

use super::spec::{Applied, Spec};
use crate::error::Failure;

/// Prepares every statement and checks the query plan of the source.
pub(super) fn check(conn: &Connection, spec: &Spec) -> Result<(), Failure> {
    // EXPLAIN alone uses the schema that the connection last saw, so the schema is read first.
    conn.prepare_cached(sql!("bulk/schema"))?.query_row((), |_| Ok(()))?;
    let statements = &spec.statements;
    let page = prepare(conn, &statements.page, "source")?;
    let columns: Vec<&str> = page.column_names().collect();
    for key in spec.source.key() {
        if !columns.contains(&key.as_str()) {
            let selected = columns.join(", ");
            return Err(refuse(InvalidBulk::NoKeyColumn { column: key.clone(), selected }));
        }
    }
    if let Applied::Handler(handler) = &spec.applied
        && let Some(column) = handler.columns().into_iter().find(|column| !columns.contains(column))
    {
        let (column, selected) = (column.to_owned(), columns.join(", "));
        return Err(refuse(InvalidBulk::NoColumn { column, selected }));
    }
    for pages in [&statements.first, &statements.next, &statements.failures] {
        prepare(conn, &pages.bound, "source")?;
        prepare(conn, &pages.count, "source")?;
        prepare(conn, &pages.rows, "source")?;
        if let Some(apply) = &pages.apply {
            prepare(conn, apply, "apply")?;
        }
    }
    check_order(conn, spec)
}

fn prepare<'conn>(
    conn: &'conn Connection,
    sql: &str,
    part: &'static str,
) -> Result<rusqlite::Statement<'conn>, Failure> {
    conn.prepare(sql).map_err(|error| match error {
        rusqlite::Error::SqlInputError { msg, .. } => refuse(InvalidBulk::NotPrepared { part, why: msg }),
        rusqlite::Error::SqliteFailure(code, Some(why))
            if code.extended_code == rusqlite::ffi::SQLITE_ERROR =>
        {
            refuse(InvalidBulk::NotPrepared { part, why })
        }
        error => error.into(),
    })
}

/// Refuses a source that sorts for every chunk.
fn check_order(conn: &Connection, spec: &Spec) -> Result<(), Failure> {
    let explain = format!("explain query plan {}", spec.statements.page);
    let mut statement = conn.prepare(&explain)?;
    // No parameters are bound, because the plan does not depend on them.
    let lines = statement.raw_query().mapped(|row| Ok((row.get::<_, i64>(1)?, row.get::<_, String>(3)?)));
    let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
    if lines.iter().any(|(parent, words)| *parent == 0 && words.contains("TEMP B-TREE FOR ORDER BY")) {
        let plan: Vec<String> = lines.into_iter().map(|(_, words)| words).collect();
        let (key, plan) = (spec.source.key().join(", "), plan.join("; "));
        return Err(refuse(InvalidBulk::NoIndex { problem: "sorts".to_owned(), key, plan }));
    }
    Ok(())
}

fn refuse(invalid: InvalidBulk) -> Failure {
    Failure::Told(invalid.into())
}

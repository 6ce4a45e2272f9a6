//! Objects in a file that do not belong to Milepost.

use std::collections::HashSet;

use milepost_core::port::StoreResult;
use milepost_core::sql;
use rusqlite::Connection;

use crate::error::Failure;
use crate::migrate;

/// Returns the tables, views, indexes and triggers of an open file that no migration of this binary created, each as `table orders`.
/// Changes nothing; the file need not contain Milepost's tables.
///
/// # Errors
/// [`Database`](milepost_core::error::StoreError::Database) if the file cannot be read or is not an SQLite file.
pub fn foreign_objects(conn: &Connection) -> StoreResult<Vec<String>> {
    find(conn).map_err(|failure| failure.at("foreign_objects", conn.path().unwrap_or_default()))
}

fn find(conn: &Connection) -> Result<Vec<String>, Failure> {
    let mut blank = Connection::open_in_memory()?;
    let tx = blank.transaction()?;
    migrate::migrate(&tx)?;
    for recording in [sql!("event/record_job_changes"), sql!("event/record_batch_changes")] {
        tx.execute_batch(recording)?;
    }
    let own: HashSet<String> = objects(&tx)?.into_iter().collect();
    Ok(objects(conn)?.into_iter().filter(|object| !own.contains(object)).collect())
}

fn objects(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    conn.prepare(sql!("objects"))?.query_map((), |row| row.get(0))?.collect()
}

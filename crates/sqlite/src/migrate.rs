//! The schema: embedded, forward-only migrations.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::schema::{Migrated, checksum};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::clock::now_ms;
use crate::error::Failure;

/// Every migration, in order; its version is its position, from 1. A released migration is never edited.
const MIGRATIONS: &[(&str, &str)] = &[("baseline", BASELINE)];

/// The tables of the first release, one file for each subject.
const BASELINE: &str = concat!(
    include_str!("../migrations/0001/jobs.sql"),
    include_str!("../migrations/0001/schedules.sql"),
    include_str!("../migrations/0001/limits.sql"),
    include_str!("../migrations/0001/retention.sql"),
    include_str!("../migrations/0001/audit.sql"),
    include_str!("../migrations/0001/move.sql"),
    include_str!("../migrations/0001/bulk.sql"),
    include_str!("../migrations/0001/batches.sql"),
    include_str!("../migrations/0001/events.sql"),
    include_str!("../migrations/0001/subscriptions.sql"),
    include_str!("../migrations/0001/inbox.sql"),
    include_str!("../migrations/0001/changes.sql"),
    include_str!("../migrations/0001/tokens.sql")
);

/// The schema version that this binary needs.
const KNOWN: i64 = MIGRATIONS.len() as i64;

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS milepost_schema_migration (
    version       INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL,
    checksum      TEXT    NOT NULL,
    applied_at_ms INTEGER NOT NULL
) STRICT";
const FIND_LEDGER: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'milepost_schema_migration'";
const READ_LEDGER: &str = "SELECT version, checksum FROM milepost_schema_migration ORDER BY version";
const NOTE_APPLIED: &str =
    "INSERT INTO milepost_schema_migration (version, name, checksum, applied_at_ms) VALUES (?1, ?2, ?3, ?4)";

/// Applies the missing migrations.
pub(crate) fn migrate(tx: &Transaction<'_>) -> Result<Migrated, Failure> {
    let from = found(tx)?;
    tx.execute(CREATE_LEDGER, ())?;
    for (version, (name, sql)) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > from) {
        tx.execute_batch(sql)?;
        tx.execute(NOTE_APPLIED, (version, name, checksum(sql), now_ms()))?;
        tracing::debug!(version, name, "migrated");
    }
    Ok(Migrated { from, to: KNOWN })
}

/// Refuses a schema of another version.
pub(crate) fn check(conn: &Connection) -> Result<(), Failure> {
    match found(conn)? {
        KNOWN => Ok(()),
        found => Err(refuse(SchemaError::TooOld { found, known: KNOWN })),
    }
}

/// Returns the schema version of the file, 0 for an empty one. Refuses newer and altered schemas.
fn found(conn: &Connection) -> Result<i64, Failure> {
    let has_ledger = conn.query_row(FIND_LEDGER, (), |_| Ok(())).optional()?;
    if has_ledger.is_none() {
        return Ok(0);
    }
    let mut ledger = conn.prepare(READ_LEDGER)?;
    let applied = ledger
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
    let found = applied.last().map_or(0, |(version, _)| *version);
    if found > KNOWN {
        return Err(refuse(SchemaError::TooNew { found, known: KNOWN }));
    }
    for (version, applied_checksum) in applied {
        let known = usize::try_from(version - 1).ok().and_then(|at| MIGRATIONS.get(at));
        if known.is_none_or(|(_, sql)| checksum(sql) != applied_checksum) {
            return Err(refuse(SchemaError::Altered { version }));
        }
    }
    Ok(found)
}

fn refuse(error: SchemaError) -> Failure {
    Failure::Told(StoreError::Schema(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_released_migration_was_edited() {
        let checksums: Vec<String> = MIGRATIONS.iter().map(|(_, sql)| checksum(sql)).collect();
        assert_eq!(checksums, ["a3980df14d7c8bec"], "add a migration instead of editing a released one");
    }
}

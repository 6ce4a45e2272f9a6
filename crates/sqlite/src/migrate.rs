//! The schema: embedded, forward-only migrations.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::schema::Migrated;
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::clock::now_ms;
use crate::error::Failure;

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

/// All migrations, oldest first. A released migration is never changed.
const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "jobs", sql: include_str!("../migrations/0001_jobs.sql") },
    Migration { version: 2, name: "schedules", sql: include_str!("../migrations/0002_schedules.sql") },
    Migration { version: 3, name: "limits", sql: include_str!("../migrations/0003_limits.sql") },
    Migration { version: 4, name: "retention", sql: include_str!("../migrations/0004_retention.sql") },
    Migration { version: 5, name: "audit", sql: include_str!("../migrations/0005_audit.sql") },
    Migration { version: 6, name: "move", sql: include_str!("../migrations/0006_move.sql") },
    Migration { version: 7, name: "bulk", sql: include_str!("../migrations/0007_bulk.sql") },
    Migration { version: 8, name: "staged", sql: include_str!("../migrations/0008_staged.sql") },
    Migration { version: 9, name: "bulk_place", sql: include_str!("../migrations/0009_bulk_place.sql") },
    Migration { version: 10, name: "batches", sql: include_str!("../migrations/0010_batches.sql") },
    Migration { version: 11, name: "events", sql: include_str!("../migrations/0011_events.sql") },
    Migration { version: 12, name: "relay", sql: include_str!("../migrations/0012_relay.sql") },
    Migration { version: 13, name: "inbox", sql: include_str!("../migrations/0013_inbox.sql") },
    Migration { version: 14, name: "changes", sql: include_str!("../migrations/0014_changes.sql") },
    Migration { version: 15, name: "tokens", sql: include_str!("../migrations/0015_tokens.sql") },
];

/// The schema version that this binary needs.
const KNOWN: i64 = MIGRATIONS[MIGRATIONS.len() - 1].version;

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
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        tx.execute_batch(migration.sql)?;
        let checksum = checksum(migration.sql);
        tx.execute(NOTE_APPLIED, (migration.version, migration.name, checksum, now_ms()))?;
        tracing::debug!(version = migration.version, name = migration.name, "migrated");
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
        let same = MIGRATIONS
            .iter()
            .any(|known| known.version == version && checksum(known.sql) == applied_checksum);
        if !same {
            return Err(refuse(SchemaError::Altered { version }));
        }
    }
    Ok(found)
}

fn refuse(error: SchemaError) -> Failure {
    Failure::Told(StoreError::Schema(error))
}

/// Returns the FNV-1a hash (64 bits). It detects accidental changes, not attacks.
fn checksum(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

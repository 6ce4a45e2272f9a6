//! The schema: embedded, forward-only migrations.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::port::StoreResult;
use milepost_core::schema::{Applied, Migrated, Migration, MigrationPlan, Migrations, checksum};
use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::clock::now_ms;
use crate::error::Failure;

/// Every migration. A released one is never edited.
const MIGRATIONS: Migrations = Migrations(&[
    Migration { name: "baseline", summary: "creates the tables", compatible_from: 1, sql: BASELINE },
    Migration {
        name: "replayed",
        summary: "marks parked events that are published again, of which there are few",
        compatible_from: 1,
        sql: include_str!("../migrations/0002/replayed.sql"),
    },
    Migration {
        name: "rollups",
        summary: "creates the tables of numbers for charts",
        compatible_from: 1,
        sql: include_str!("../migrations/0003/rollups.sql"),
    },
    Migration {
        name: "used_sequences",
        summary: "adds columns to positions of consumers, and builds an index of dead letters of inboxes again",
        compatible_from: 1,
        sql: include_str!("../migrations/0004/used_sequences.sql"),
    },
    Migration {
        name: "reserved_starts",
        summary: "adds columns to jobs and to the buckets of groups, and an index of the jobs whose start is reserved",
        compatible_from: 1,
        sql: include_str!("../migrations/0005/reserved_starts.sql"),
    },
    Migration {
        name: "statements",
        summary: "adds a column to the definitions of bulk jobs, of which there are few",
        compatible_from: 1,
        sql: include_str!("../migrations/0006/statements.sql"),
    },
    Migration {
        name: "slots",
        summary: "adds a column to workers, of which there are few",
        compatible_from: 1,
        sql: include_str!("../migrations/0007/slots.sql"),
    },
    Migration {
        name: "retention_settings",
        summary: "creates a table of retention periods that operators set",
        compatible_from: 1,
        sql: include_str!("../migrations/0008/retention_settings.sql"),
    },
    Migration {
        name: "alerts",
        summary: "creates tables of alerts, and of the messages about them",
        compatible_from: 1,
        sql: include_str!("../migrations/0009/alerts.sql"),
    },
    Migration {
        name: "token_scopes",
        summary: "adds a column to tokens, of which there are few",
        compatible_from: 1,
        sql: include_str!("../migrations/0010/token_scopes.sql"),
    },
    Migration {
        name: "waits",
        summary: "creates tables of waits and signals of batches, and an index of the tasks of DAGs that wait, of which there are none",
        compatible_from: 1,
        sql: include_str!("../migrations/0011/waits.sql"),
    },
    Migration {
        name: "oidc",
        summary: "adds columns to console sessions, of which there are few, and a table of sign-ins with a provider",
        compatible_from: 1,
        sql: include_str!("../migrations/0012/oidc.sql"),
    },
    Migration {
        name: "duplicates",
        summary: "adds a column to jobs, without rewriting them, and the verb of edits",
        compatible_from: 1,
        sql: include_str!("../migrations/0013/duplicates.sql"),
    },
    Migration {
        name: "event_work",
        summary: "creates a table of events that have started work",
        compatible_from: 1,
        sql: include_str!("../migrations/0014/event_work.sql"),
    },
]);

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

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS milepost_schema_migration (
    version       INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL,
    checksum      TEXT    NOT NULL,
    applied_at_ms INTEGER NOT NULL
) STRICT";
const FIND_LEDGER: &str =
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'milepost_schema_migration'";
/// Files of early builds have no such column: their migrations allow the programs of their version.
const FIND_COMPATIBLE_FROM: &str =
    "SELECT 1 FROM pragma_table_info('milepost_schema_migration') WHERE name = 'compatible_from'";
const ADD_COMPATIBLE_FROM: &str = "ALTER TABLE milepost_schema_migration ADD COLUMN compatible_from INTEGER";
const READ_LEDGER: &str = "SELECT version, checksum, coalesce(compatible_from, version) FROM milepost_schema_migration ORDER BY version";
const READ_EARLY_LEDGER: &str =
    "SELECT version, checksum, version FROM milepost_schema_migration ORDER BY version";
const NOTE_APPLIED: &str = "INSERT INTO milepost_schema_migration (version, name, checksum, applied_at_ms, compatible_from) VALUES (?1, ?2, ?3, ?4, ?5)";

/// Applies the missing migrations. A newer file that allows this program stays as it is.
pub(crate) fn migrate(tx: &Transaction<'_>) -> Result<Migrated, Failure> {
    let from = MIGRATIONS.found(&applied(tx)?).map_err(refuse)?;
    if from > MIGRATIONS.known() {
        return Ok(Migrated { from, to: from });
    }
    tx.execute(CREATE_LEDGER, ())?;
    if !exists(tx, FIND_COMPATIBLE_FROM)? {
        tx.execute(ADD_COMPATIBLE_FROM, ())?;
    }
    for (version, its) in MIGRATIONS.missing(from) {
        tx.execute_batch(its.sql)?;
        tx.execute(NOTE_APPLIED, (version, its.name, checksum(its.sql), now_ms(), its.compatible_from))?;
        tracing::debug!(version, its.name, "migrated");
    }
    Ok(Migrated { from, to: MIGRATIONS.known() })
}

/// Returns what a migration would do.
pub(crate) fn plan(conn: &Connection) -> Result<MigrationPlan, Failure> {
    MIGRATIONS.plan(&applied(conn)?).map_err(refuse)
}

/// Returns what a migration of a file that does not exist would do.
///
/// # Errors
/// None: nothing contradicts an empty file.
pub fn plan_for_new_file() -> StoreResult<MigrationPlan> {
    MIGRATIONS.plan(&[]).map_err(StoreError::Schema)
}

/// Refuses a file whose schema does not fit this program.
pub(crate) fn check(conn: &Connection) -> Result<(), Failure> {
    MIGRATIONS.check(&applied(conn)?).map_err(refuse)
}

/// Returns the migrations that the file has; none if it is not a store.
fn applied(conn: &Connection) -> Result<Vec<Applied>, Failure> {
    if !exists(conn, FIND_LEDGER)? {
        return Ok(Vec::new());
    }
    let read = if exists(conn, FIND_COMPATIBLE_FROM)? { READ_LEDGER } else { READ_EARLY_LEDGER };
    let mut ledger = conn.prepare(read)?;
    let applied = ledger.query_map((), |row| {
        Ok(Applied { version: row.get(0)?, checksum: row.get(1)?, compatible_from: row.get(2)? })
    })?;
    Ok(applied.collect::<rusqlite::Result<_>>()?)
}

fn exists(conn: &Connection, find: &str) -> Result<bool, Failure> {
    Ok(conn.query_row(find, (), |_| Ok(())).optional()?.is_some())
}

fn refuse(error: SchemaError) -> Failure {
    Failure::Told(StoreError::Schema(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_released_migration_was_edited() {
        let checksums: Vec<String> = MIGRATIONS.0.iter().map(|its| checksum(its.sql)).collect();
        assert_eq!(
            checksums,
            [
                "a3980df14d7c8bec",
                "bf73074594d96c95",
                "2a3979cc4c497de7",
                "8f9f8b5d34df3680",
                "3dc2dd66ab2ca438",
                "43661db54a2f2bf9",
                "1ddcae1c7273ecd8",
                "b4365887ad8e2289",
                "dcd30e24716de239",
                "5e4b59063d7f4990",
                "a1396442966a97da",
                "8c0a7f422bea5c32",
                "f6c736752942f2d8",
                "fc3b09d816a35407",
            ],
            "add a migration instead of editing a released one"
        );
    }
}

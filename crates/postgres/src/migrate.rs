//! Schema migrations, which only go forward and are checked at start-up.

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::port::StoreResult;
use milepost_core::schema::{Migrated, checksum};
use sqlx::Row;

use crate::row::{self, Decoded};
use crate::session::{Session, Sessions};

/// Every migration, in order; its version is its position, from 1. A released migration is never edited.
const MIGRATIONS: &[(&str, &str)] =
    &[("baseline", BASELINE), ("servers", include_str!("../migrations/0002/servers.sql"))];

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
    include_str!("../migrations/0001/tokens.sql"),
    include_str!("../migrations/0001/epoch.sql"),
    include_str!("../migrations/0001/text_limits.sql")
);

/// The functions of schema `milepost`, all replaced by each migration.
const API: &str = concat!(
    include_str!("../sql/documents.sql"),
    include_str!("../sql/epoch.sql"),
    include_str!("../sql/rates.sql"),
    include_str!("../sql/groups.sql"),
    include_str!("../sql/task_rules.sql"),
    include_str!("../sql/settle.sql"),
    include_str!("../sql/spread.sql"),
    include_str!("../sql/api.sql"),
    include_str!("../sql/bulk.sql"),
    include_str!("../sql/batches.sql"),
    include_str!("../sql/batch_versions.sql"),
    include_str!("../sql/batch_operations.sql"),
    include_str!("../sql/batch_reruns.sql"),
    include_str!("../sql/events.sql"),
    include_str!("../sql/changes.sql"),
    include_str!("../sql/relay.sql"),
    include_str!("../sql/subscriptions.sql"),
    include_str!("../sql/inbox.sql"),
    include_str!("../sql/audit.sql"),
    include_str!("../sql/repair.sql"),
    include_str!("../sql/move.sql")
);

const CREATE_TABLE: &str = "
    create schema if not exists milepost;
    create table if not exists milepost.schema_migration (
        version bigint primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now());";

/// The schema version that this binary needs.
const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Suppresses notices about existing objects, and lifts the role's statement time limits, which are not meant for
/// migrations.
const SET_UP: &str = "
    set local client_min_messages = warning;
    set local search_path = pg_catalog, pg_temp;
    select set_config(name, '0', true) from pg_catalog.pg_settings where name in ('statement_timeout', 'transaction_timeout');";

/// Serializes migrations of the database, with an advisory lock number that no other verb uses.
const LOCK: &str = "select pg_advisory_xact_lock(19792, 3)";

pub(crate) async fn migrate(sessions: &Sessions, place: &str) -> StoreResult<Migrated> {
    let mut first = None;
    loop {
        let step = sessions.atomically(migrate_once).await;
        let Migrated { from, to } = step.map_err(|e| crate::error::store_error(place, "migrate", e))??;
        let from = *first.get_or_insert(from);
        if to == KNOWN {
            return Ok(Migrated { from, to });
        }
    }
}

/// Applies the next migration, and after the last one the API. Each migration is a transaction: PostgreSQL cannot use a new value of an enum
/// in the transaction that adds it, unless that also creates the type. So an empty store gets all migrations in one: it is empty or complete,
/// and what creates stores does not have to continue a part.
async fn migrate_once(tx: &mut Session<'_>) -> Decoded<StoreResult<Migrated>> {
    tx.script(SET_UP).await?;
    tx.script(LOCK).await?;
    tx.script(CREATE_TABLE).await?;
    let from = match applied(tx).await? {
        Ok(found) if found > KNOWN => {
            return Ok(Err(StoreError::Schema(SchemaError::TooNew { found, known: KNOWN })));
        }
        Ok(found) => found,
        Err(altered) => return Ok(Err(altered)),
    };
    let count = if from == 0 { MIGRATIONS.len() } else { 1 };
    let mut to = from;
    for (version, (name, sql)) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > from).take(count) {
        tx.script(sql).await?;
        record(tx, version, name, sql).await?;
        to = version;
    }
    if to == KNOWN {
        tx.script(API).await?;
    }
    Ok(Ok(Migrated { from, to }))
}

pub(crate) async fn check(sessions: &Sessions, place: &str) -> StoreResult<()> {
    let found = sessions.run(version).await;
    match found.map_err(|e| crate::error::store_error(place, "check_schema", e))?? {
        found if found > KNOWN => Err(StoreError::Schema(SchemaError::TooNew { found, known: KNOWN })),
        found if found < KNOWN => Err(StoreError::Schema(SchemaError::TooOld { found, known: KNOWN })),
        _ => Ok(()),
    }
}

/// Returns the newest version applied; 0 if nothing was migrated yet.
async fn version(session: &mut Session<'_>) -> Decoded<StoreResult<i64>> {
    let exists = sqlx::query("select to_regclass('milepost.schema_migration') is not null");
    let exists: bool = session.row(exists).await.and_then(row::value)?;
    if exists { applied(session).await } else { Ok(Ok(0)) }
}

/// Returns the newest version applied, after comparing the applied migrations with those of this binary.
async fn applied(session: &mut Session<'_>) -> Decoded<StoreResult<i64>> {
    let all = "select version, checksum from milepost.schema_migration order by version";
    let mut newest = 0;
    for row in session.rows(sqlx::query(all)).await? {
        let version: i64 = row.try_get("version")?;
        let found: String = row.try_get("checksum")?;
        let known = usize::try_from(version - 1).ok().and_then(|at| MIGRATIONS.get(at));
        if known.is_some_and(|(_, sql)| checksum(sql) != found) {
            return Ok(Err(StoreError::Schema(SchemaError::Altered { version })));
        }
        newest = version;
    }
    Ok(Ok(newest))
}

/// Returns whether an object of this name in schema `milepost` is created by a migration or is a function of the API.
pub(crate) fn makes(name: &str) -> bool {
    let qualified = format!("milepost.{name}");
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let names_it =
        |sql: &str| sql.match_indices(&qualified).any(|(at, _)| !goes_on(&sql[at + qualified.len()..]));
    MIGRATIONS.iter().map(|(_, sql)| *sql).chain([CREATE_TABLE, API]).any(names_it)
}

async fn record(tx: &mut Session<'_>, version: i64, name: &str, sql: &str) -> Decoded<()> {
    let insert = "insert into milepost.schema_migration (version, name, checksum) values ($1, $2, $3)";
    tx.execute(sqlx::query(insert).bind(version).bind(name).bind(checksum(sql))).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_released_migration_was_edited() {
        let checksums: Vec<String> = MIGRATIONS.iter().map(|(_, sql)| checksum(sql)).collect();
        assert_eq!(
            checksums,
            ["76012f6ed6cf869d", "a0bb6f118691954a"],
            "add a migration instead of editing a released one"
        );
    }
}

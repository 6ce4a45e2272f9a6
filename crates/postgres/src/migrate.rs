//! Schema migrations, which only go forward and are checked at start-up.

use std::time::{Duration, Instant};

use milepost_core::error::{SchemaError, StoreError};
use milepost_core::port::StoreResult;
use milepost_core::schema::{Applied, Migrated, Migration, MigrationPlan, checksum};
use milepost_core::sql;
use sqlx::Row;

use crate::error::{database_error, store_error};
use crate::migrations::{API, MIGRATIONS};
use crate::row::{self, Decoded};
use crate::session::{Session, Sessions};
use crate::verbs;

const CREATE_TABLE: &str = "
    create schema if not exists milepost;
    create table if not exists milepost.schema_migration (
        version bigint primary key, name text not null, checksum text not null,
        applied_at timestamptz not null default now());
    do $$ begin
        -- Only if it is missing: the statement locks the table even if there is nothing to add.
        if not exists (select from pg_attribute
            where attrelid = 'milepost.schema_migration'::regclass and attname = 'compatible_from' and not attisdropped) then
            alter table milepost.schema_migration add column compatible_from bigint;
        end if;
    end $$;";

/// Whether the store has a table of migrations. From the rows of the catalog, not with `to_regclass`: that answers from a cache, which a session that
/// waited for [`LOCK`] may not have refreshed since another migration created the table.
const HAS_TABLE: &str = "
    select exists (
        select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'milepost' and c.relname = 'schema_migration')";

/// Migrations that the store has. Those of early builds do not say which programs they allow; they allow those of their version. The column is
/// read from the whole row, because these stores do not have it.
const READ_TABLE: &str = "
    select version, checksum, coalesce((to_jsonb(m) ->> 'compatible_from')::bigint, version) as compatible_from
    from milepost.schema_migration m order by version";

/// The schema version that this binary needs.
const KNOWN: i64 = MIGRATIONS.known();

/// Suppresses notices about existing objects, and lifts the role's statement time limits, which are not meant for
/// migrations. Others wait behind a statement that waits for a lock, so it waits for half a
/// second at most: [`LOCK_WAIT_MS`]. Heartbeats wait, too, so that is short for all leases of a second or more, and shorter than `deadlock_timeout` (1 s), after which
/// PostgreSQL could end the transaction of another session.
const SET_UP: &str = "
    set local client_min_messages = warning;
    set local search_path = pg_catalog, pg_temp;
    set local lock_timeout = '500ms';
    select set_config(name, '0', true) from pg_catalog.pg_settings where name in ('statement_timeout', 'transaction_timeout');";

/// How long a statement of a migration waits for a lock, before the migration is rolled back and tried again. Milliseconds.
const LOCK_WAIT_MS: u64 = 500;
/// The pause before it is tried again, in which those who waited behind it go on.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval in which it is logged that it waits.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// How long it is tried again.
const TRIES_MAX: Duration = Duration::from_secs(300);

/// Serializes migrations of the database, with an advisory lock number that no other verb uses.
const LOCK: &str = "select pg_advisory_xact_lock(19792, 3)";

/// Applies the missing migrations. Waits at most [`LOCK_WAIT_MS`] for a lock, and tries again if that was not enough.
pub(crate) async fn migrate(sessions: &Sessions, place: &str) -> StoreResult<Migrated> {
    let complete =
        sessions.run(complete_without_rights).await.map_err(|e| store_error(place, "migrate", e))?;
    if let Some(version) = complete {
        return Ok(Migrated { from: version, to: version });
    }
    // An index of a large table can take hours.
    let patient = sessions.without_time_limit();
    let (began, mut first, mut told) = (Instant::now(), None, None);
    loop {
        let step = match patient.atomically(migrate_once).await {
            Err(error) if others_are_in_the_way(&error) => {
                let others = in_the_way(sessions).await;
                if began.elapsed() > TRIES_MAX {
                    return Err(StoreError::Unavailable {
                        place: place.to_owned(),
                        cause: waited_for(&others).into(),
                    });
                }
                if told.is_none_or(|at: Instant| at.elapsed() > TELL_EVERY) {
                    told = Some(Instant::now());
                    tracing::warn!(store = place, others, "the migration waits for a table in use");
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            step => step,
        };
        let Migrated { from, to } = step.map_err(|e| store_error(place, "migrate", e))??;
        let from = *first.get_or_insert(from);
        if to >= KNOWN {
            verbs::add_missing(&patient, SET_UP).await.map_err(|e| store_error(place, "migrate", e))?;
            return Ok(Migrated { from, to });
        }
    }
}

/// Returns whether others were in the way: a lock was not free in time, or the migration and others waited for each other.
fn others_are_in_the_way(error: &sqlx::Error) -> bool {
    database_error(error).is_some_and(|error| matches!(error.code(), "55P03" | "40P01"))
}

fn waited_for(others: &str) -> String {
    let minutes = TRIES_MAX.as_secs() / 60;
    format!(
        "the migration could not get a lock for {minutes} minutes, in waits of {LOCK_WAIT_MS} ms each, and nothing was changed; \
         end these transactions, and run it again: {others}"
    )
}

/// Describes the sessions for which a migration may wait.
async fn in_the_way(sessions: &Sessions) -> String {
    let row = sessions.row(sqlx::query(sql!("in_the_way"))).await;
    let described = row.and_then(row::value::<Option<String>>).ok().flatten();
    described.unwrap_or_else(|| "none of them is open any more".to_owned())
}

/// Applies the next migration, and after the last one the API. Each migration is a transaction: PostgreSQL cannot use a new value of an enum
/// in the transaction that adds it. An empty store gets all migrations up to such a value in one: usually it is empty or complete, and what
/// creates stores does not have to continue a part. A newer store that allows this program keeps its newer API.
async fn migrate_once(tx: &mut Session<'_>) -> Decoded<StoreResult<Migrated>> {
    tx.script(SET_UP).await?;
    tx.script(LOCK).await?;
    if let Some(foreign) = foreign(tx).await? {
        return Ok(Err(StoreError::Schema(foreign)));
    }
    tx.script(CREATE_TABLE).await?;
    let from = match MIGRATIONS.found(&applied(tx).await?) {
        Ok(newer) if newer > KNOWN => return Ok(Ok(Migrated { from: newer, to: newer })),
        Ok(found) => found,
        Err(refused) => return Ok(Err(StoreError::Schema(refused))),
    };
    let mut to = from;
    for (version, migration) in MIGRATIONS.missing(from) {
        tx.script(migration.sql).await?;
        record(tx, version, migration).await?;
        to = version;
        if from > 0 || adds_enum_value(migration.sql) {
            break;
        }
    }
    if to == KNOWN {
        tx.script(API).await?;
    }
    Ok(Ok(Migrated { from, to }))
}

/// Returns whether a migration adds a value to an enum.
fn adds_enum_value(sql: &str) -> bool {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case("add") && pair[1].eq_ignore_ascii_case("value"))
}

/// Returns why the schema must not be touched: by triggers and functions in it, another role could act as this one.
async fn foreign(session: &mut Session<'_>) -> Decoded<Option<SchemaError>> {
    let is_recorded = !applied_if_any(session).await?.is_empty();
    let found = session.row(sqlx::query(sql!("untrusted_objects")).bind(is_recorded)).await?;
    let Some(row) = found else { return Ok(None) };
    let (object, owner): (String, Option<String>) = (row.try_get("what")?, row.try_get("owner")?);
    Ok(Some(match owner {
        Some(owner) => SchemaError::ForeignOwner { object, owner },
        None => SchemaError::ForeignObject { object },
    }))
}

/// Returns what a migration would do.
pub(crate) async fn plan(sessions: &Sessions, place: &str) -> StoreResult<MigrationPlan> {
    let looked = sessions.run(async |session| Ok((applied_if_any(session).await?, foreign(session).await?)));
    let (applied, foreign) = looked.await.map_err(|e| store_error(place, "plan_migration", e))?;
    let plan = MIGRATIONS.plan(&applied).map_err(StoreError::Schema)?;
    match foreign {
        Some(foreign) if !plan.steps.is_empty() => Err(StoreError::Schema(foreign)),
        _ => Ok(plan),
    }
}

/// Returns the version of a store that has all migrations and that this role cannot change, or whose server is a standby.
async fn complete_without_rights(session: &mut Session<'_>) -> Decoded<Option<i64>> {
    let Ok(found) = MIGRATIONS.found(&applied_if_any(session).await?) else { return Ok(None) };
    if found < KNOWN {
        return Ok(None);
    }
    let changeable =
        sqlx::query("select not pg_is_in_recovery() and has_schema_privilege('milepost', 'create')");
    let is_changeable: bool = session.row(changeable).await.and_then(row::value)?;
    Ok((!is_changeable).then_some(found))
}

/// Refuses a store whose schema does not fit this program.
pub(crate) async fn check(sessions: &Sessions, place: &str) -> StoreResult<()> {
    let applied = sessions.run(applied_if_any).await.map_err(|e| store_error(place, "check_schema", e))?;
    MIGRATIONS.check(&applied).map_err(StoreError::Schema)
}

/// Returns the migrations that the database has; none if it is not a store.
async fn applied_if_any(session: &mut Session<'_>) -> Decoded<Vec<Applied>> {
    let exists: bool = session.row(sqlx::query(HAS_TABLE)).await.and_then(row::value)?;
    if exists { applied(session).await } else { Ok(Vec::new()) }
}

async fn applied(session: &mut Session<'_>) -> Decoded<Vec<Applied>> {
    let rows = session.rows(sqlx::query(READ_TABLE)).await?;
    let read = |row: &sqlx::postgres::PgRow| {
        Ok(Applied {
            version: row.try_get("version")?,
            checksum: row.try_get("checksum")?,
            compatible_from: row.try_get("compatible_from")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Returns whether an object of this name in schema `milepost` is created by a migration or is a function of the API.
pub(crate) fn makes(name: &str) -> bool {
    let qualified = format!("milepost.{name}");
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let names_it =
        |sql: &str| sql.match_indices(&qualified).any(|(at, _)| !goes_on(&sql[at + qualified.len()..]));
    MIGRATIONS.0.iter().map(|its| its.sql).chain([CREATE_TABLE, API]).any(names_it)
}

async fn record(tx: &mut Session<'_>, version: i64, its: &Migration) -> Decoded<()> {
    let insert = "insert into milepost.schema_migration (version, name, checksum, compatible_from) values ($1, $2, $3, $4)";
    let insert =
        sqlx::query(insert).bind(version).bind(its.name).bind(checksum(its.sql)).bind(its.compatible_from);
    tx.execute(insert).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_that_adds_a_value_to_an_enum_ends_its_transaction() {
        assert!(adds_enum_value("ALTER TYPE milepost.verb\n    ADD VALUE 'hold';"));
        assert!(MIGRATIONS.0.iter().all(|its| !adds_enum_value(its.sql)), "an empty store gets all in one");
    }
}

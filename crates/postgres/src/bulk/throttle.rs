//! Throttles that measure the load of a PostgreSQL server.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::sql::{Dialect, check_probe};
use milepost_core::port::{StoreResult, Throttle};
use milepost_core::sql;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row, SqlSafeStr, TypeInfo, ValueRef};

use super::database::Database;
use crate::error::database_error;
use crate::session::Query;
use crate::store::PostgresStore;

/// Timeout for a measurement.
const PATIENCE: Duration = Duration::from_secs(5);

/// A measure of load and its limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// The lag of the slowest replica.
    ReplicaLag(Duration),
    /// The number of lock requests that wait.
    LockWaits(u32),
    /// The age of the oldest transaction that holds back vacuum.
    OldestSnapshot(Duration),
    /// A user's query that returns one value: true to continue, false to hold, or a text with the reason to hold.
    Sql(String),
}

/// Holds bulk jobs while the server exceeds a limit.
#[derive(Clone, Debug)]
pub struct ServerThrottle {
    database: Database,
    measure: Measure,
}

impl ServerThrottle {
    /// Creates a throttle that measures the store's server.
    #[must_use]
    pub fn new(store: &PostgresStore, measure: Measure) -> Self {
        Self { database: Database::of(store), measure }
    }

    /// Creates a throttle that measures the server of another database.
    #[must_use]
    pub fn on(database: &Database, measure: Measure) -> Self {
        Self { database: database.clone(), measure }
    }

    fn name(&self) -> &'static str {
        match self.measure {
            Measure::ReplicaLag(_) => "replica_lag",
            Measure::LockWaits(_) => "lock_waits",
            Measure::OldestSnapshot(_) => "oldest_snapshot",
            Measure::Sql(_) => "sql probe",
        }
    }

    fn query(&self) -> Query {
        match &self.measure {
            Measure::ReplicaLag(_) => sqlx::query(sql!("throttle/replica_lag")),
            Measure::LockWaits(_) => sqlx::query(sql!("throttle/lock_waits")),
            Measure::OldestSnapshot(_) => sqlx::query(sql!("throttle/oldest_snapshot")),
            Measure::Sql(sql) => sqlx::query(AssertSqlSafe(sql.clone()).into_sql_str()),
        }
    }

    /// Returns the reason to hold, if the measurement exceeds the limit.
    fn judge(&self, row: &PgRow) -> Result<Option<String>, sqlx::Error> {
        let late = |seconds: f64, max: Duration| (seconds > max.as_secs_f64()).then_some(seconds);
        Ok(match &self.measure {
            Measure::ReplicaLag(max) => {
                if !row.try_get::<bool, _>(1)? {
                    return Ok(Some("it is not visible; grant pg_monitor to the worker's role".to_owned()));
                }
                late(row.try_get(0)?, *max).map(|s| format!("{s:.1} s behind, more than {max:?}"))
            }
            Measure::LockWaits(max) => {
                let waits: i64 = row.try_get(0)?;
                (waits > i64::from(*max)).then(|| format!("{waits} lock requests wait, more than {max}"))
            }
            Measure::OldestSnapshot(max) => {
                late(row.try_get(0)?, *max).map(|s| format!("one is open for {s:.1} s, more than {max:?}"))
            }
            Measure::Sql(_) => answer(row)?,
        })
    }
}

/// Interprets the value that a user's query returned.
fn answer(row: &PgRow) -> Result<Option<String>, sqlx::Error> {
    let value = row.try_get_raw(0)?;
    if value.is_null() {
        return Ok(Some("it returned null; it must return true, false or a text".to_owned()));
    }
    match value.type_info().name() {
        "BOOL" => Ok(if row.try_get(0)? { None } else { Some("it returned false".to_owned()) }),
        "TEXT" | "VARCHAR" | "UNKNOWN" | "NAME" | "BPCHAR" | "CHAR" => row.try_get(0).map(Some),
        other => {
            Ok(Some(format!("it returned a value of type {other}; it must return true, false or a text")))
        }
    }
}

#[async_trait]
impl Throttle for ServerThrottle {
    async fn check(&self) -> StoreResult<()> {
        let Measure::Sql(sql) = &self.measure else { return Ok(()) };
        check_probe(sql, Dialect::Postgres).map_err(InvalidBulk::Throttle)?;
        let explain = sqlx::query(AssertSqlSafe(format!("explain {sql}")).into_sql_str());
        match self.database.sessions.rows(explain).await {
            Ok(_) => Ok(()),
            Err(error) => match database_error(&error) {
                Some(said) if said.code().starts_with("42") => {
                    let why = said.message().to_owned();
                    Err(InvalidBulk::NotPrepared { part: "throttle", why }.into())
                }
                _ => Err(self.database.fail(error)),
            },
        }
    }

    async fn holds(&self) -> Option<String> {
        let asked = tokio::time::timeout(PATIENCE, self.database.sessions.row(self.query())).await;
        let why = match asked {
            Err(_) => Some(format!("it did not finish within {PATIENCE:?}")),
            Ok(Ok(Some(row))) => self.judge(&row).unwrap_or_else(|error| Some(error.to_string())),
            Ok(Ok(None)) => Some("it returned no row; it must return true, false or a text".to_owned()),
            Ok(Err(error)) => Some(format!("it failed: {}", self.database.fail(error).chain())),
        };
        why.map(|why| format!("{}: {why}", self.name()))
    }
}

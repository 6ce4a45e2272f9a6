//! Database of a bulk job's targets: the store's own, or another one.

use std::fmt;
use std::time::Duration;

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::error::{SchemaError, StoreError};
use milepost_core::ident::JobId;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, Row};

use crate::connect::{self, PATIENCE_OF_QUESTIONS, PostgresOptions, VERSION_NUM_MIN, WakeMode};
use crate::connection_reuse::IdleConnections;
use crate::error::store_error;
use crate::row;
use crate::session::Sessions;
use crate::store::PostgresStore;

/// Timeout for calls to another database.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of connections to another database that throttles and operators share.
const CALM_CONNECTIONS_MAX: u32 = 2;

/// A PostgreSQL database with targets of bulk jobs. Cheap to clone; clones share the connections that throttles use.
#[derive(Clone)]
pub struct Database {
    /// Options of dedicated connections; `None` behind a pooler without a direct address.
    direct: Option<PgConnectOptions>,
    /// Connections for queries of throttles and operators.
    pub(super) sessions: Sessions,
    place: String,
    patience: Duration,
    is_own: bool,
}

impl Database {
    /// Creates a handle to a database other than the store's, at `url` (`postgres://user:password@host:port/database`): the
    /// server itself, not a transaction pooler. `name` appears in messages. Does not connect yet; must be called within the
    /// runtime.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable) when the URL is not valid. The error does not contain the URL, which may
    /// hold a password.
    pub fn new(name: &str, url: &str) -> StoreResult<Self> {
        let unusable = |cause| StoreError::Unavailable {
            place: format!("database {name} (its URL is not usable)"),
            cause,
        };
        connect::check_url(url).map_err(|why| unusable(why.into()))?;
        let direct = connect::parse(url, WakeMode::Listen).map_err(|error| match error {
            StoreError::Unavailable { cause, .. } => unusable(cause),
            error => error,
        })?;
        let pool = PgPoolOptions::new().acquire_timeout(PATIENCE).max_connections(CALM_CONNECTIONS_MAX);
        let pool = pool.connect_lazy_with(direct.clone());
        let sessions = Sessions::lasting(
            IdleConnections::passing_on(pool),
            PostgresOptions::default().answer_timeout * PATIENCE_OF_QUESTIONS,
        );
        let place = format!("database {name} ({})", connect::place(&direct));
        Ok(Self { direct: Some(direct), sessions, place, patience: PATIENCE, is_own: false })
    }

    /// Cancels the statement that a run with targets in this database is executing, so that its chunk rolls back. Returns
    /// whether there was one.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable) when the database does not answer.
    pub async fn interrupt(&self, job: JobId) -> StoreResult<bool> {
        let query = sqlx::query(sql!("bulk/interrupt_visit")).bind(job.to_string());
        let stopped: Result<Vec<bool>, _> = self.sessions.rows(query).await.and_then(row::values);
        Ok(stopped.map_err(|e| self.fail(e))?.contains(&true))
    }

    /// Returns a handle to the store's own database.
    pub(super) fn of(store: &PostgresStore) -> Self {
        let its = &store.inner;
        Self {
            direct: its.direct.clone(),
            sessions: its.own.clone(),
            place: its.place.clone(),
            patience: its.options.acquire_timeout,
            is_own: true,
        }
    }

    /// Returns the name of the database for messages, without secrets.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns whether this is the store's own database, which contains its tables.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// Opens a dedicated connection, whose application name shows its purpose. The server ends the session, also in the middle of a statement,
    /// when its worker is gone or has dropped it.
    pub(super) async fn connect(&self, application_name: &str) -> StoreResult<PgConnection> {
        let direct = self.direct.clone().ok_or(InvalidBulk::NoDirect)?;
        let options = direct.application_name(application_name);
        let enter = async {
            let mut connection = PgConnection::connect_with(&options).await?;
            connection.execute(sql!("bulk/enter")).await?;
            Ok(connection)
        };
        let entered = tokio::time::timeout(self.patience, enter).await;
        entered.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|e| self.fail(e))
    }

    /// Opens a dedicated connection to a server whose version has not been checked yet.
    pub(super) async fn connect_remote(&self, application_name: &str) -> StoreResult<PgConnection> {
        let mut connection = self.connect(application_name).await?;
        if connection
            .server_version_num()
            .is_some_and(|version| i64::from(version) < i64::from(VERSION_NUM_MIN))
        {
            let found =
                connection.server_version_num().map_or_else(String::new, |version| version.to_string());
            return Err(StoreError::Schema(SchemaError::ServerTooOld { found, needed: "PostgreSQL 15" }));
        }
        // The server converts every other encoding. Of this one it returns bytes that are no text.
        let encoding = connection.fetch_one(sqlx::raw_sql("show server_encoding")).await;
        let encoding = encoding.and_then(|row| row.try_get::<String, _>(0)).map_err(|e| self.fail(e))?;
        if encoding == "SQL_ASCII" {
            return Err(StoreError::Schema(SchemaError::Encoding { found: encoding }));
        }
        Ok(connection)
    }

    /// Converts an error of the driver into an error of the domain.
    pub(super) fn fail(&self, error: sqlx::Error) -> StoreError {
        store_error(&self.place, "bulk", error)
    }
}

// The options contain a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("place", &self.place).finish_non_exhaustive()
    }
}

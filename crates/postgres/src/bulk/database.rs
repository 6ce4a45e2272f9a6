//! The database that targets are on: the store's own, or another one.

use std::fmt;
use std::time::Duration;

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::error::{SchemaError, StoreError};
use milepost_core::ident::JobId;
use milepost_core::port::StoreResult;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection};

use crate::connect::{self, PATIENCE_OF_QUESTIONS, PostgresOptions, VERSION_NUM_MIN, WakeMode};
use crate::error::store_error;
use crate::row;
use crate::session::Sessions;
use crate::shelf::Shelf;
use crate::statement;
use crate::store::PostgresStore;

/// How long another database may take to answer a call.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many connections to another database throttles and operators share.
const CALM_CONNECTIONS_MAX: u32 = 2;

/// A PostgreSQL database with targets of bulk jobs. Cheap to clone; clones share the connections that throttles use.
#[derive(Clone)]
pub struct Database {
    /// For connections that last; `None` behind a pooler when nobody said how.
    direct: Option<PgConnectOptions>,
    /// For questions.
    pub(super) calm: Sessions,
    place: String,
    patience: Duration,
    is_own: bool,
}

impl Database {
    /// Another database than the store's, under a name for people, at `url`
    /// (`postgres://user:password@host:port/database`): the server itself, not a transaction pooler. Connects to nothing
    /// yet; to be called within the runtime.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable) when the URL is none. It is not repeated, since it may hold a password.
    pub fn new(name: &str, url: &str) -> StoreResult<Self> {
        let direct = connect::parse(url, WakeMode::Listen).map_err(|error| match error {
            StoreError::Unavailable { cause, .. } => {
                StoreError::Unavailable { place: format!("database {name} (its URL is not usable)"), cause }
            }
            error => error,
        })?;
        let pool = PgPoolOptions::new().acquire_timeout(PATIENCE).max_connections(CALM_CONNECTIONS_MAX);
        let pool = pool.connect_lazy_with(direct.clone());
        let calm = Sessions::lasting(
            Shelf::passing_on(pool),
            PostgresOptions::default().answer_timeout * PATIENCE_OF_QUESTIONS,
        );
        let place = format!("database {name} ({})", connect::place(&direct));
        Ok(Self { direct: Some(direct), calm, place, patience: PATIENCE, is_own: false })
    }

    /// Stops the statement that a run with targets in this database is in, so that its chunk rolls back. Answers whether
    /// there was one.
    ///
    /// # Errors
    /// [`Unavailable`](StoreError::Unavailable) when the database does not answer.
    pub async fn interrupt(&self, job: JobId) -> StoreResult<bool> {
        let query = sqlx::query(statement::BULK_INTERRUPT_VISIT).bind(job.to_string());
        let stopped: Result<Vec<bool>, _> = self.calm.rows(query).await.and_then(row::values);
        Ok(stopped.map_err(|e| self.fail(e))?.contains(&true))
    }

    /// The store's own.
    pub(super) fn of(store: &PostgresStore) -> Self {
        let its = &store.inner;
        Self {
            direct: its.direct.clone(),
            calm: its.calm.clone(),
            place: its.place.clone(),
            patience: its.options.acquire_timeout,
            is_own: true,
        }
    }

    /// Which one it is, for people, without secrets.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether the store's tables are there.
    pub(super) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// A connection of its own, that shows what it is for.
    pub(super) async fn connect(&self, application_name: &str) -> StoreResult<PgConnection> {
        let direct = self.direct.clone().ok_or(InvalidBulk::NoDirect)?;
        let options = direct.application_name(application_name);
        let connect = tokio::time::timeout(self.patience, PgConnection::connect_with(&options));
        connect.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(|e| self.fail(e))
    }

    /// The same on a server that nobody has looked at yet, for chunks that end when their worker does.
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
        connection.execute(statement::BULK_ENTER).await.map_err(|e| self.fail(e))?;
        Ok(connection)
    }

    /// A driver's error, in the words of the domain.
    pub(super) fn fail(&self, error: sqlx::Error) -> StoreError {
        store_error(&self.place, "bulk", error)
    }
}

// Its options hold a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("place", &self.place).finish_non_exhaustive()
    }
}

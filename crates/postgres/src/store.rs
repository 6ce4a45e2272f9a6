//! The store itself: its pools, and what every verb shares.

use std::sync::Arc;

use milepost_core::port::StoreResult;
use milepost_core::schema::Migrated;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{Executor, PgConnection, Postgres, Transaction};

use crate::connect::{self, Pools, PostgresOptions, WakeMode};
use crate::error::store_error;
use crate::lane::Floors;
use crate::{migrate, statement};

/// Jobs in a PostgreSQL database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// For workers' verbs: plans pinned.
    pub(crate) hot: PgPool,
    /// For callers' verbs, which may wait for transactions of others: plans pinned.
    pub(crate) intake: PgPool,
    /// For people's questions: the planner's own plans.
    pub(crate) calm: PgPool,
    pub(crate) connect: PgConnectOptions,
    pub(crate) options: PostgresOptions,
    pub(crate) place: String,
    pub(crate) floors: Floors,
}

impl PostgresStore {
    /// Connects to the server at `url` (`postgres://user:password@host:port/database`).
    ///
    /// # Errors
    /// [`Unavailable`](milepost_core::error::StoreError::Unavailable) names host and cause, never the
    /// password; [`Schema`](milepost_core::error::StoreError::Schema) when the server is too old.
    pub async fn connect(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let connect = connect::parse(url, &options)?;
        let place = connect::place(&connect);
        let Pools { hot, intake, calm } =
            connect::pools(&connect, &options).await.map_err(|e| store_error(&place, "connect", e))?;
        connect::check_server(&calm, &place).await?;
        let floors = Floors::default();
        Ok(Self { inner: Arc::new(Inner { hot, intake, calm, connect, options, place, floors }) })
    }

    /// Brings the schema to this binary's version, in one transaction. Safe to call from many processes.
    ///
    /// # Errors
    /// [`Schema`](milepost_core::error::StoreError::Schema) when the store is newer than the binary or was
    /// altered.
    pub async fn migrate(&self) -> StoreResult<Migrated> {
        migrate::migrate(&self.inner).await
    }

    /// Checks that the schema is this binary's.
    ///
    /// # Errors
    /// [`Schema`](milepost_core::error::StoreError::Schema) says which is older and what to do.
    pub async fn check_schema(&self) -> StoreResult<()> {
        migrate::check(&self.inner).await
    }

    /// A pool on the same database, for a caller's own statements.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.inner.calm
    }

    /// Closes all connections; verbs that come later fail.
    pub async fn close(&self) {
        self.inner.hot.close().await;
        self.inner.intake.close().await;
        self.inner.calm.close().await;
    }

    /// A transaction for a hot verb of several statements.
    pub(crate) async fn begin(&self, verb: &'static str) -> StoreResult<Transaction<'static, Postgres>> {
        let mut tx = self.inner.hot.begin().await.map_err(|e| self.fail(verb, e))?;
        self.pin_locally(&mut tx).await.map_err(|e| self.fail(verb, e))?;
        Ok(tx)
    }

    /// Whether single statements need a transaction around them to pin their plans.
    pub(crate) fn pins_locally(&self) -> bool {
        self.inner.options.wake == WakeMode::Poll
    }

    async fn pin_locally(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.pins_locally() {
            connection.execute(sqlx::query(statement::PIN_PLANS).bind(true)).await?;
        }
        Ok(())
    }

    /// A driver's error of `verb`, in the words of the domain.
    pub(crate) fn fail(&self, verb: &'static str, error: sqlx::Error) -> milepost_core::error::StoreError {
        store_error(&self.inner.place, verb, error)
    }
}

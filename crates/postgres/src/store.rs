//! The store: its connection pools, and the parts that all verbs share.

use std::sync::Arc;

use milepost_core::audit::Actor;
use milepost_core::pool::PoolView;
use milepost_core::port::StoreResult;
use milepost_core::schema::{Migrated, MigrationPlan};
use sqlx::postgres::{PgConnectOptions, PgPool};

use crate::claim_lanes::Floors;
use crate::connect::{self, Pools, PostgresOptions};
use crate::error::store_error;
use crate::held_runs::HeldRuns;
use crate::migrate;
use crate::prune_position::Reached;
use crate::session::Sessions;

/// Jobs in a PostgreSQL database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
    /// The user or program whose actions are audited.
    pub(crate) actor: Option<Arc<Actor>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// For workers' verbs, with pinned plans.
    pub(crate) hot: Sessions,
    /// For callers' verbs, which may wait for other transactions, with pinned plans.
    pub(crate) intake: Sessions,
    /// For operators' queries, with the planner's own plans.
    pub(crate) calm: Sessions,
    /// For access checks.
    pub(crate) access: Sessions,
    /// For statements of callers and of bulk jobs.
    pub(crate) own: Sessions,
    pub(crate) connect: PgConnectOptions,
    /// For dedicated connections.
    pub(crate) direct: Option<PgConnectOptions>,
    pub(crate) options: PostgresOptions,
    pub(crate) place: String,
    pub(crate) floors: Floors,
    pub(crate) held: HeldRuns,
    pub(crate) reached: Reached,
}

impl Inner {
    /// Returns the connections for queries of rows whose keys are known: they are as fast as verbs and have their time limit.
    pub(crate) fn lookups(&self) -> Sessions {
        self.calm.answering_within(self.options.answer_timeout)
    }
}

impl PostgresStore {
    /// Connects to the server at `url` (`postgres://user:password@host:port/database`), directly or through a transaction
    /// pooler: `?pooler=transaction&direct=HOST:PORT` sets [`WakeMode::Poll`](crate::WakeMode::Poll) and
    /// [`PostgresOptions::direct`].
    ///
    /// # Errors
    /// [`Unavailable`](milepost_core::error::StoreError::Unavailable) names the host and the cause, never the password;
    /// [`Schema`](milepost_core::error::StoreError::Schema) when the server is too old.
    pub async fn connect(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        // Boxed because the future is large and would make the futures of all callers large.
        Box::pin(Self::open(url, options)).await
    }

    async fn open(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let (connect, options) = connect::read(url, options)?;
        let direct = connect::direct(&connect, &options)?;
        let place = connect::place(&connect);
        connect::check_server(&connect, &options, &place).await?;
        let Pools { hot, intake, calm, access, own } = connect::pools(&connect, &options);
        let (floors, held, reached) = (Floors::default(), HeldRuns::default(), Reached::default());
        let inner =
            Inner { hot, intake, calm, access, own, connect, direct, options, place, floors, held, reached };
        Ok(Self { inner: Arc::new(inner), actor: None })
    }

    /// Migrates the schema to this binary's version, each migration in one transaction. Several processes may call it at the same time, and
    /// others may use the store meanwhile. A statement waits at most half a second for a lock, because others wait behind it; then the
    /// migration is rolled back and tried again, for five minutes. A newer store that allows this binary stays as it is.
    ///
    /// # Errors
    /// [`Schema`](milepost_core::error::StoreError::Schema) when the store is too new for the binary or its migrations
    /// differ; [`Unavailable`](milepost_core::error::StoreError::Unavailable) when it got no lock, with the sessions that were in the way.
    pub async fn migrate(&self) -> StoreResult<Migrated> {
        migrate::migrate(&self.inner.calm, &self.inner.place).await
    }

    /// Returns what [`migrate`](Self::migrate) would do. Changes nothing.
    ///
    /// # Errors
    /// As [`check_schema`](Self::check_schema), except for a store that is too old.
    pub async fn plan_migration(&self) -> StoreResult<MigrationPlan> {
        migrate::plan(&self.inner.calm, &self.inner.place).await
    }

    /// Checks that the schema has this binary's version, or a newer one that allows this binary.
    ///
    /// # Errors
    /// [`Schema`](milepost_core::error::StoreError::Schema) names the older side and the remedy.
    pub async fn check_schema(&self) -> StoreResult<()> {
        migrate::check(&self.inner.calm, &self.inner.place).await
    }

    /// Returns a pool on the same database for a caller's own statements, without JIT compilation (`jit = off`). Behind a
    /// transaction pooler these statements must run in a transaction and use `persistent(false)`; see
    /// [`pooled`](crate::pooled).
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.inner.own.pool()
    }

    /// Returns the current use of the connections for workers' verbs, callers' verbs, operators' queries and access checks.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        let Inner { hot, intake, calm, access, .. } = self.inner.as_ref();
        vec![hot.view("workers"), intake.view("callers"), calm.view("questions"), access.view("access")]
    }

    /// Closes all connections; later verbs fail.
    pub async fn close(&self) {
        let Inner { hot, intake, calm, access, own, .. } = self.inner.as_ref();
        for sessions in [hot, intake, calm, access, own] {
            sessions.close().await;
        }
    }

    /// Returns the same store, with actions attributed to this actor.
    pub(crate) fn with_actor(&self, actor: Actor) -> Self {
        Self { inner: Arc::clone(&self.inner), actor: Some(Arc::new(actor)) }
    }

    /// Converts an error of the driver in `verb` into an error of the domain.
    pub(crate) fn fail(&self, verb: &'static str, error: sqlx::Error) -> milepost_core::error::StoreError {
        store_error(&self.inner.place, verb, error)
    }
}

//! The store itself: its pools, and what every verb shares.

use std::sync::Arc;

use milepost_core::audit::Actor;
use milepost_core::pool::PoolView;
use milepost_core::port::StoreResult;
use milepost_core::schema::Migrated;
use sqlx::postgres::{PgConnectOptions, PgPool};

use crate::connect::{self, Pools, PostgresOptions};
use crate::error::store_error;
use crate::lane::Floors;
use crate::migrate;
use crate::retention::Reached;
use crate::session::Sessions;

/// Jobs in a PostgreSQL database. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
    /// Who acts through it.
    pub(crate) actor: Option<Arc<Actor>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// For workers' verbs: plans pinned.
    pub(crate) hot: Sessions,
    /// For callers' verbs, which may wait for transactions of others: plans pinned.
    pub(crate) intake: Sessions,
    /// For people's questions: the planner's own plans.
    pub(crate) calm: Sessions,
    /// For who may come in.
    pub(crate) access: Sessions,
    pub(crate) connect: PgConnectOptions,
    /// For connections that must last.
    pub(crate) direct: Option<PgConnectOptions>,
    pub(crate) options: PostgresOptions,
    pub(crate) place: String,
    pub(crate) floors: Floors,
    pub(crate) reached: Reached,
}

impl PostgresStore {
    /// Connects to the server at `url` (`postgres://user:password@host:port/database`), or through a transaction pooler there:
    /// `?pooler=transaction&direct=HOST:PORT` is [`WakeMode::Poll`](crate::WakeMode::Poll) with
    /// [`PostgresOptions::direct`].
    ///
    /// # Errors
    /// [`Unavailable`](milepost_core::error::StoreError::Unavailable) names host and cause, never the
    /// password; [`Schema`](milepost_core::error::StoreError::Schema) when the server is too old.
    pub async fn connect(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        // Boxed: it is large, and would make the futures of all callers large.
        Box::pin(Self::open(url, options)).await
    }

    async fn open(url: &str, options: PostgresOptions) -> StoreResult<Self> {
        let (connect, options) = connect::read(url, options)?;
        let direct = connect::direct(&connect, &options)?;
        let place = connect::place(&connect);
        connect::check_server(&connect, &options, &place).await?;
        let Pools { hot, intake, calm, access } = connect::pools(&connect, &options);
        let (floors, reached) = (Floors::default(), Reached::default());
        let inner = Inner { hot, intake, calm, access, connect, direct, options, place, floors, reached };
        Ok(Self { inner: Arc::new(inner), actor: None })
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

    /// A pool on the same database, for a caller's own statements, which the server does not compile (`jit = off`). Behind a transaction pooler these belong in a
    /// transaction and want `persistent(false)`; see [`pooled`](crate::pooled).
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        self.inner.calm.pool()
    }

    /// How connections are used: those for workers' verbs, for callers', for people's questions, and for who may come in.
    #[must_use]
    pub fn pools(&self) -> Vec<PoolView> {
        let Inner { hot, intake, calm, access, .. } = self.inner.as_ref();
        vec![hot.view("workers"), intake.view("callers"), calm.view("questions"), access.view("access")]
    }

    /// Closes all connections; verbs that come later fail.
    pub async fn close(&self) {
        let Inner { hot, intake, calm, access, .. } = self.inner.as_ref();
        for sessions in [hot, intake, calm, access] {
            sessions.close().await;
        }
    }

    /// The same store, as this actor uses it.
    pub(crate) fn with_actor(&self, actor: Actor) -> Self {
        Self { inner: Arc::clone(&self.inner), actor: Some(Arc::new(actor)) }
    }

    /// A driver's error of `verb`, in the words of the domain.
    pub(crate) fn fail(&self, verb: &'static str, error: sqlx::Error) -> milepost_core::error::StoreError {
        store_error(&self.inner.place, verb, error)
    }
}

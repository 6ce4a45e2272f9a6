//! Sessions: the connections on which verbs run their statements.
//!
//! Dedicated connections keep settings and prepared statements: plans are pinned when a connection is made, each statement
//! is prepared once under a name, and a verb of one statement needs no transaction.
//!
//! Behind a transaction pooler nothing lasts longer than a transaction: the next message may use another server connection,
//! on which other clients have prepared their own statements. There each verb is one transaction that pins its plans for
//! itself, and statements have no names, so that they are never missing, never conflict with those of other clients, and are
//! not left behind.
//!
//! Verbs do not choose between the two: they get connections only as [`Sessions`], which handle the difference.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::pool::PoolView;
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::{Executor, PgConnection, Postgres};

use crate::connection_reuse::{IdleConnections, Taken};
use crate::error::is_outdated;

/// A statement with its arguments.
pub(crate) type Query = sqlx::query::Query<'static, Postgres, PgArguments>;

/// A set of connections on which verbs run.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    connections: Arc<IdleConnections>,
    /// Whether a connection keeps settings and prepared statements.
    lasting: bool,
    /// The statement that begins a transaction.
    begin: &'static str,
    /// Time limit of a statement, after which its connection counts as broken. Without it, a statement whose packets the
    /// network drops would wait until TCP's own timeout, a quarter of an hour, or forever.
    answers_within: Duration,
}

impl Sessions {
    /// Creates sessions on dedicated connections, which are configured when they are made.
    pub(crate) fn lasting(connections: Arc<IdleConnections>, answers_within: Duration) -> Self {
        Self { connections, lasting: true, begin: "begin", answers_within }
    }

    /// Creates sessions through a transaction pooler; `begin` configures each transaction.
    pub(crate) fn passing(
        connections: Arc<IdleConnections>,
        begin: &'static str,
        answers_within: Duration,
    ) -> Self {
        Self { connections, lasting: false, begin, answers_within }
    }

    /// Returns the same connections, on which statements may take any time.
    pub(crate) fn without_time_limit(&self) -> Self {
        Self { answers_within: Duration::MAX, ..self.clone() }
    }

    /// Returns the pool, for callers' own statements.
    pub(crate) fn pool(&self) -> &PgPool {
        self.connections.pool()
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.connections.close().await;
    }

    /// Returns the current use of the connections, under this name.
    pub(crate) fn view(&self, name: &'static str) -> PoolView {
        // Two separate reads, between which a connection may have been returned.
        let idle = u32::try_from(self.connections.idle()).unwrap_or(u32::MAX);
        let in_use = self.pool().size().saturating_sub(idle);
        let max = self.pool().options().get_max_connections();
        PoolView { name, in_use, idle, max, waits: self.connections.waits() }
    }

    /// Runs the statements of a verb, which need not be one transaction, but may be.
    pub(crate) async fn run<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if !self.lasting {
            return self.atomically(verb).await;
        }
        let mut taken = self.connections.take().await?;
        let mut session =
            Session { answers_within: Some(self.answers_within), ..Session::lasting(&mut taken.connection) };
        let answer = verb(&mut session).await;
        match &answer {
            Ok(_) => self.connections.bring_back(taken).await,
            Err(error) if is_silent(error) || is_outdated(error) => taken.connection.close_on_drop(),
            Err(_) => drop(taken),
        }
        answer
    }

    /// Runs the statements of a verb in one transaction.
    pub(crate) async fn atomically<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let answer = verb(&mut transaction.session()).await;
        match &answer {
            Ok(_) => transaction.end("commit").await?,
            Err(error) if is_silent(error) || is_outdated(error) => drop(transaction),
            // The verb's error counts, not that of the rollback.
            Err(_) => drop(transaction.end("rollback").await),
        }
        answer
    }

    /// Begins a transaction for a verb that takes several calls.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        // Not the driver's transaction type: if its future is dropped while it begins, the transaction stays open in the
        // pool.
        let taken = self.connections.take().await?;
        let mut transaction = Transaction {
            taken: Some(taken),
            connections: Arc::clone(&self.connections),
            named: self.lasting,
            answers_within: self.answers_within,
        };
        transaction.session().script(self.begin).await?;
        Ok(transaction)
    }

    /// Runs a verb of one statement and returns its rows.
    pub(crate) async fn rows(&self, query: Query) -> Result<Vec<PgRow>, sqlx::Error> {
        self.run(async |session| session.rows(query).await).await
    }

    /// Runs a verb of one statement and returns its row, if there is one.
    pub(crate) async fn row(&self, query: Query) -> Result<Option<PgRow>, sqlx::Error> {
        self.run(async |session| session.row(query).await).await
    }

    /// Runs a verb of one statement and returns the number of rows changed.
    pub(crate) async fn execute(&self, query: Query) -> Result<u64, sqlx::Error> {
        self.run(async |session| session.execute(query).await).await
    }
}

/// A connection in a transaction. If it is dropped before its end, the connection is closed: its state is unknown, and an
/// open transaction would hold locks and one of the pooler's few server connections.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// `Some` until the transaction has ended.
    taken: Option<Taken>,
    connections: Arc<IdleConnections>,
    named: bool,
    answers_within: Duration,
}

impl Transaction {
    /// Returns the session for its statements.
    #[allow(clippy::expect_used, reason = "only the end takes it, and that consumes the transaction")]
    pub(crate) fn session(&mut self) -> Session<'_> {
        let taken = self.taken.as_mut().expect("it has not ended");
        Session {
            connection: &mut taken.connection,
            named: self.named,
            answers_within: Some(self.answers_within),
        }
    }

    /// Ends the transaction with `commit` or `rollback`.
    pub(crate) async fn end(mut self, how: &'static str) -> Result<(), sqlx::Error> {
        self.session().script(how).await?;
        if let Some(taken) = self.taken.take() {
            self.connections.bring_back(taken).await;
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(taken) = &mut self.taken {
            taken.connection.close_on_drop();
        }
    }
}

/// A connection on which the statements of one verb run.
#[derive(Debug)]
pub(crate) struct Session<'c> {
    connection: &'c mut PgConnection,
    /// Whether statements are prepared under names.
    named: bool,
    /// Time limit of each statement; `None` on a caller's connection, which the caller is responsible for.
    answers_within: Option<Duration>,
}

impl<'c> Session<'c> {
    /// Uses a connection that keeps prepared statements, in the caller's transaction if there is one.
    pub(crate) fn lasting(connection: &'c mut PgConnection) -> Self {
        Self { connection, named: true, answers_within: None }
    }

    /// Uses a caller's transaction through a pooler.
    pub(crate) fn passing(connection: &'c mut PgConnection) -> Self {
        Self { connection, named: false, answers_within: None }
    }

    pub(crate) async fn rows(&mut self, query: Query) -> Result<Vec<PgRow>, sqlx::Error> {
        let rows = query.persistent(self.named).fetch_all(&mut *self.connection);
        answer(self.answers_within, rows).await
    }

    pub(crate) async fn row(&mut self, query: Query) -> Result<Option<PgRow>, sqlx::Error> {
        let row = query.persistent(self.named).fetch_optional(&mut *self.connection);
        answer(self.answers_within, row).await
    }

    /// Returns the number of rows changed.
    pub(crate) async fn execute(&mut self, query: Query) -> Result<u64, sqlx::Error> {
        let done = query.persistent(self.named).execute(&mut *self.connection);
        Ok(answer(self.answers_within, done).await?.rows_affected())
    }

    /// Runs any number of statements without arguments.
    pub(crate) async fn script(&mut self, script: &'static str) -> Result<(), sqlx::Error> {
        answer(self.answers_within, self.connection.execute(script)).await.map(drop)
    }
}

async fn answer<T>(
    within: Option<Duration>,
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let Some(within) = within else { return asked.await };
    tokio::time::timeout(within, asked).await.unwrap_or_else(|_| {
        let said = format!(
            "the server did not answer a statement within {} s; the result of the statement is unknown",
            within.as_secs()
        );
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, said)))
    })
}

/// Returns whether the connection did not answer in time, so that no further statement can be sent on it.
fn is_silent(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

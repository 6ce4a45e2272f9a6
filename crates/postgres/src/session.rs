//! Where the statements of a verb run.
//!
//! On connections of our own, what is set and prepared lasts: plans are pinned when a connection is made, each
//! statement is prepared once and kept under a name, and a verb of one statement needs no transaction.
//!
//! Behind a transaction pooler nothing lasts longer than a transaction: the next message may meet another server
//! connection, on which others have prepared what they like. There a verb is one transaction that pins its plans
//! for itself, and statements have no names, so that they are neither missed, nor in anybody's way, nor left behind.
//!
//! Verbs do not choose: connections come as [`Sessions`] only, and those know.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use milepost_core::pool::PoolView;
use sqlx::postgres::{PgArguments, PgPool, PgRow};
use sqlx::{Executor, PgConnection, Postgres};

use crate::shelf::{Shelf, Taken};

/// A statement with its arguments.
pub(crate) type Query = sqlx::query::Query<'static, Postgres, PgArguments>;

/// Connections of one sort, to run verbs on.
#[derive(Clone, Debug)]
pub(crate) struct Sessions {
    shelf: Arc<Shelf>,
    /// Whether a connection keeps what was set and prepared.
    lasting: bool,
    /// What begins a transaction.
    begin: &'static str,
    /// How long a statement waits for its answer before its connection counts as broken: without it, one that the
    /// network swallowed would wait until TCP gives up, which takes a quarter of an hour, or for ever.
    answers_within: Duration,
}

impl Sessions {
    /// Connections that are ours alone, set up when they are made.
    pub(crate) fn lasting(shelf: Arc<Shelf>, answers_within: Duration) -> Self {
        Self { shelf, lasting: true, begin: "begin", answers_within }
    }

    /// Connections through a transaction pooler, where `begin` sets each transaction up.
    pub(crate) fn passing(shelf: Arc<Shelf>, begin: &'static str, answers_within: Duration) -> Self {
        Self { shelf, lasting: false, begin, answers_within }
    }

    /// The connections themselves, for callers' own statements.
    pub(crate) fn pool(&self) -> &PgPool {
        self.shelf.pool()
    }

    /// Closes all connections.
    pub(crate) async fn close(&self) {
        self.shelf.close().await;
    }

    /// How they are used now, under this name.
    pub(crate) fn view(&self, name: &'static str) -> PoolView {
        // Two looks, between which one may have come back.
        let idle = u32::try_from(self.shelf.idle()).unwrap_or(u32::MAX);
        let in_use = self.pool().size().saturating_sub(idle);
        let max = self.pool().options().get_max_connections();
        PoolView { name, in_use, idle, max, waits: self.shelf.waits() }
    }

    /// Runs the statements of a verb that need not be one commit, though they may be.
    pub(crate) async fn run<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        if !self.lasting {
            return self.atomically(verb).await;
        }
        let mut taken = self.shelf.take().await?;
        let mut session =
            Session { answers_within: Some(self.answers_within), ..Session::lasting(&mut taken.connection) };
        let answer = verb(&mut session).await;
        match &answer {
            Ok(_) => self.shelf.bring_back(taken).await,
            Err(error) if is_silent(error) => taken.connection.close_on_drop(),
            Err(_) => drop(taken),
        }
        answer
    }

    /// Runs the statements of a verb as one commit, or not at all.
    pub(crate) async fn atomically<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut transaction = self.begin().await?;
        let answer = verb(&mut transaction.session()).await;
        match &answer {
            Ok(_) => transaction.end("commit").await?,
            Err(error) if is_silent(error) => drop(transaction),
            // What the verb said counts.
            Err(_) => drop(transaction.end("rollback").await),
        }
        answer
    }

    /// Begins a transaction of a verb that takes several calls.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        // Not the driver's transaction: one that is given up while it begins stays open in the pool.
        let taken = self.shelf.take().await?;
        let mut transaction = Transaction {
            taken: Some(taken),
            shelf: Arc::clone(&self.shelf),
            named: self.lasting,
            answers_within: self.answers_within,
        };
        transaction.session().script(self.begin).await?;
        Ok(transaction)
    }

    /// The rows of a verb that is one statement.
    pub(crate) async fn rows(&self, query: Query) -> Result<Vec<PgRow>, sqlx::Error> {
        self.run(async |session| session.rows(query).await).await
    }

    /// The row, if there is one, of a verb that is one statement.
    pub(crate) async fn row(&self, query: Query) -> Result<Option<PgRow>, sqlx::Error> {
        self.run(async |session| session.row(query).await).await
    }

    /// Does a verb that is one statement; answers how many rows it changed.
    pub(crate) async fn execute(&self, query: Query) -> Result<u64, sqlx::Error> {
        self.run(async |session| session.execute(query).await).await
    }
}

/// A connection in a transaction. One that is given up half way is closed: nobody knows where it stands, and as long
/// as its transaction is open it holds locks, and one of the pooler's few server connections.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// There until it has ended.
    taken: Option<Taken>,
    shelf: Arc<Shelf>,
    named: bool,
    answers_within: Duration,
}

impl Transaction {
    /// For its statements.
    #[allow(clippy::expect_used, reason = "only the end takes it, and that consumes the transaction")]
    pub(crate) fn session(&mut self) -> Session<'_> {
        let taken = self.taken.as_mut().expect("it has not ended");
        Session {
            connection: &mut taken.connection,
            named: self.named,
            answers_within: Some(self.answers_within),
        }
    }

    /// Ends it by `commit` or `rollback`.
    pub(crate) async fn end(mut self, how: &'static str) -> Result<(), sqlx::Error> {
        self.session().script(how).await?;
        if let Some(taken) = self.taken.take() {
            self.shelf.bring_back(taken).await;
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

/// A connection for the statements of one verb.
#[derive(Debug)]
pub(crate) struct Session<'c> {
    connection: &'c mut PgConnection,
    /// Whether statements are kept under names.
    named: bool,
    /// How long each statement waits for its answer; on a caller's connection that is the caller's affair.
    answers_within: Option<Duration>,
}

impl<'c> Session<'c> {
    /// On a connection that keeps what was prepared, in the caller's transaction if there is one.
    pub(crate) fn lasting(connection: &'c mut PgConnection) -> Self {
        Self { connection, named: true, answers_within: None }
    }

    /// In a caller's transaction through a pooler.
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

    /// Answers how many rows were changed.
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
            "the server did not answer a statement within {} s; what it did is not known",
            within.as_secs()
        );
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, said)))
    })
}

/// Whether the connection did not answer in time, so that nothing can be said on it either.
fn is_silent(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

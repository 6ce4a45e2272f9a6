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
use std::time::{Duration, Instant};

use milepost_core::pool::PoolView;
use milepost_core::sql;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgPool, PgRow, PgTypeInfo};
use sqlx::{Encode, Execute, Executor, PgConnection, Postgres, SqlStr};

use crate::connection_reuse::{IdleConnections, Taken};
use crate::error::{is_lock_timeout, is_outdated};
use crate::lock_wait::{HELD_MAX, LockWaits, Pauses};

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
    lock_waits: Arc<LockWaits>,
    /// How long a verb is repeated while another transaction holds what it needs.
    held_max: Duration,
}

impl Sessions {
    /// Creates sessions on dedicated connections, which are configured when they are made.
    pub(crate) fn lasting(connections: Arc<IdleConnections>, answers_within: Duration) -> Self {
        let lock_waits = Arc::new(LockWaits::new(connections.pool().options().get_max_connections()));
        Self { connections, lasting: true, begin: "begin", answers_within, lock_waits, held_max: HELD_MAX }
    }

    /// Creates sessions through a transaction pooler; `begin` configures each transaction.
    pub(crate) fn passing(
        connections: Arc<IdleConnections>,
        begin: &'static str,
        answers_within: Duration,
    ) -> Self {
        Self { lasting: false, begin, ..Self::lasting(connections, answers_within) }
    }

    /// Returns the same connections, on which a statement has another time limit.
    pub(crate) fn answering_within(&self, answers_within: Duration) -> Self {
        Self { answers_within, ..self.clone() }
    }

    /// Returns the same connections, on which statements may take any time, and each verb is tried once.
    pub(crate) fn without_time_limit(&self) -> Self {
        Self { answers_within: Duration::MAX, ..self.once() }
    }

    /// Returns the same connections, on which a verb is tried once, also if another transaction holds what it needs.
    pub(crate) fn once(&self) -> Self {
        Self { held_max: Duration::ZERO, ..self.clone() }
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

    /// Runs the statements of a verb, which need not be one transaction, but may be. While another transaction holds what it needs, it is
    /// repeated, so it must not change anything before a statement that can wait.
    pub(crate) async fn run<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error> + Clone,
    ) -> Result<T, sqlx::Error> {
        let first = match self.lock_waits.of_first() {
            None if self.lasting => self.try_without_transaction(verb.clone()).await,
            lock_wait => self.try_in_transaction(lock_wait, verb.clone()).await,
        };
        self.repeat_while_held(first, verb).await
    }

    /// Runs the statements of a verb in one transaction. It is repeated while another transaction holds what it needs.
    pub(crate) async fn atomically<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error> + Clone,
    ) -> Result<T, sqlx::Error> {
        let first = self.try_in_transaction(self.lock_waits.of_first(), verb.clone()).await;
        self.repeat_while_held(first, verb).await
    }

    /// Runs the statements of a verb in one transaction, once, and waits only a moment for each lock.
    pub(crate) async fn try_briefly<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        self.try_in_transaction(Some(sql!("lock_wait/crowded")), verb).await
    }

    /// Repeats a verb in pauses, without a connection in between, while its attempts end because another transaction held a lock.
    async fn repeat_while_held<T>(
        &self,
        mut attempt: Result<T, sqlx::Error>,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error> + Clone,
    ) -> Result<T, sqlx::Error> {
        let mut waiting = None;
        while attempt.as_ref().is_err_and(is_lock_timeout) {
            self.lock_waits.note_stopped(Instant::now());
            if waiting.is_none() {
                waiting = self.lock_waits.place().map(|place| (place, Pauses::within(self.held_max)));
            }
            let Some((_, pauses)) = &mut waiting else { break };
            if !pauses.pause().await {
                break;
            }
            let _turn = self.lock_waits.turn().await;
            attempt = self.try_in_transaction(Some(self.lock_waits.of_repeated()), verb.clone()).await;
        }
        attempt
    }

    async fn try_without_transaction<T>(
        &self,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
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

    /// Runs a verb in a transaction, after the statement that sets how long it waits for locks.
    async fn try_in_transaction<T>(
        &self,
        lock_wait: Option<&'static str>,
        verb: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, sqlx::Error>,
    ) -> Result<T, sqlx::Error> {
        let mut transaction = self.begin_waiting(lock_wait).await?;
        let answer = verb(&mut transaction.session()).await;
        match &answer {
            Ok(_) => transaction.end("commit").await?,
            Err(error) if is_silent(error) || is_outdated(error) => drop(transaction),
            // The verb's error counts, not that of the rollback.
            Err(_) => drop(transaction.end("rollback").await),
        }
        answer
    }

    /// Begins a transaction for a verb that takes several calls, and so cannot be repeated.
    pub(crate) async fn begin(&self) -> Result<Transaction, sqlx::Error> {
        self.begin_waiting(Some(sql!("lock_wait/patient"))).await
    }

    async fn begin_waiting(&self, lock_wait: Option<&'static str>) -> Result<Transaction, sqlx::Error> {
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
        if let Some(lock_wait) = lock_wait {
            transaction.session().script(lock_wait).await?;
        }
        Ok(transaction)
    }

    /// Runs a verb of one statement and returns its rows.
    pub(crate) async fn rows(&self, query: Query) -> Result<Vec<PgRow>, sqlx::Error> {
        let query = Repeatable::of(query);
        self.run(async |session| session.rows(query).await).await
    }

    /// Runs a verb of one statement and returns its row, if there is one.
    pub(crate) async fn row(&self, query: Query) -> Result<Option<PgRow>, sqlx::Error> {
        let query = Repeatable::of(query);
        self.run(async |session| session.row(query).await).await
    }

    /// Runs a verb of one statement and returns the number of rows changed.
    pub(crate) async fn execute(&self, query: Query) -> Result<u64, sqlx::Error> {
        let query = Repeatable::of(query);
        self.run(async |session| session.execute(query).await).await
    }
}

/// A statement that can be run more than once.
#[derive(Clone)]
pub(crate) struct Repeatable {
    sql: SqlStr,
    /// The error of an argument that cannot be encoded.
    arguments: Result<PgArguments, String>,
}

impl Repeatable {
    pub(crate) fn of(mut query: Query) -> Self {
        let arguments = query.take_arguments().map(Option::unwrap_or_default).map_err(|e| e.to_string());
        Self { sql: query.sql(), arguments }
    }
}

impl From<Repeatable> for Query {
    fn from(Repeatable { sql, arguments }: Repeatable) -> Self {
        match arguments {
            Ok(arguments) => sqlx::query_with(sql, arguments),
            Err(why) => sqlx::query(sql).bind(Unencodable(why)),
        }
    }
}

/// An argument whose error is reported when the statement runs, as the driver does.
struct Unencodable(String);

impl sqlx::Type<Postgres> for Unencodable {
    fn type_info() -> PgTypeInfo {
        <str as sqlx::Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Unencodable {
    fn encode_by_ref(&self, _buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Err(self.0.clone().into())
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

    /// Sets a time limit for each statement.
    pub(crate) fn answering_within(self, limit: Duration) -> Self {
        Self { answers_within: Some(limit), ..self }
    }

    pub(crate) async fn rows(&mut self, query: impl Into<Query>) -> Result<Vec<PgRow>, sqlx::Error> {
        let rows = query.into().persistent(self.named).fetch_all(&mut *self.connection);
        answer(self.answers_within, rows).await
    }

    pub(crate) async fn row(&mut self, query: impl Into<Query>) -> Result<Option<PgRow>, sqlx::Error> {
        let row = query.into().persistent(self.named).fetch_optional(&mut *self.connection);
        answer(self.answers_within, row).await
    }

    /// Returns the number of rows changed.
    pub(crate) async fn execute(&mut self, query: impl Into<Query>) -> Result<u64, sqlx::Error> {
        let done = query.into().persistent(self.named).execute(&mut *self.connection);
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

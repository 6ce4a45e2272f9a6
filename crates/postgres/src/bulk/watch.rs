//! Detection of silent networks under the dedicated connection of a run.
//!
//! A statement of a bulk job may take any time, so its answer has no time limit. If the network drops the packets of the connection, for
//! example because a firewall has forgotten it, the answer never arrives. Therefore, while a call takes long, another connection asks the
//! server whether it still works for the call.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::progress::{Taken, TargetRange};
use milepost_core::bulk::run::{Chunked, Parts, Rest, Surveyed, Target};
use milepost_core::error::StoreError;
use milepost_core::job::NewJob;
use milepost_core::port::{BulkRun, BulkVisit, StoreResult};
use milepost_core::sql;
use milepost_core::transition::Verb;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use super::database::Database;
use crate::row;
use crate::session::Session;

/// The interval at which the server is asked about a call that takes long.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// How long an answer that the server has sent may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(2);

/// A call that has begun.
type Call<'c, T> = Pin<Box<dyn Future<Output = T> + Send + 'c>>;

/// The session of a dedicated connection at the server.
#[derive(Clone)]
pub(super) struct Watch {
    database: Database,
    pid: i32,
    /// When the session began, in the server's notation: process ids are used again.
    began: String,
}

impl Watch {
    /// Identifies the session of this connection.
    pub(super) async fn of(database: &Database, connection: &mut PgConnection) -> StoreResult<Self> {
        let mut session = Session::lasting(connection).answering_within(ASK_EVERY + ARRIVES_WITHIN);
        let found = session.row(sqlx::query(sql!("bulk/own_session"))).await;
        let read = |row: PgRow| Ok((row.try_get(0)?, row.try_get(1)?));
        let found = found.and_then(|row| read(row.ok_or(sqlx::Error::RowNotFound)?));
        let (pid, began) = found.map_err(|e| database.fail(e))?;
        Ok(Self { database: database.clone(), pid, began })
    }

    /// Waits for a call on the connection, as long as the server works for it.
    ///
    /// # Errors
    /// Those of the call; [`Unavailable`](StoreError::Unavailable) when the server does not work for it any more and no answer arrives.
    pub(super) fn over<'c, T: 'c>(
        &'c self,
        call: impl Future<Output = StoreResult<T>> + Send + 'c,
    ) -> Call<'c, StoreResult<T>> {
        let call: Call<'c, _> = Box::pin(call);
        Box::pin(self.wait_for(call))
    }

    async fn wait_for<T>(&self, mut call: Call<'_, StoreResult<T>>) -> StoreResult<T> {
        loop {
            if let Ok(done) = tokio::time::timeout(ASK_EVERY, &mut call).await {
                return done;
            }
            if self.has_ended().await {
                let answer = tokio::time::timeout(ARRIVES_WITHIN, &mut call).await;
                return answer.unwrap_or_else(|_| Err(self.silent()));
            }
        }
    }

    /// Returns whether the session has ended or waits for a statement. If the server cannot be asked, this is unknown, and the answer is no.
    async fn has_ended(&self) -> bool {
        let query = sqlx::query(sql!("bulk/is_at_work")).bind(self.pid).bind(self.began.clone());
        let found = self.database.sessions.answering_within(ASK_EVERY).row(query).await;
        matches!(found.and_then(row::value::<bool>), Ok(false))
    }

    fn silent(&self) -> StoreError {
        let place = self.database.place().to_owned();
        StoreError::Unavailable {
            place,
            cause: "the server has ended the statement, but its answer does not arrive".into(),
        }
    }
}

/// A run or a visit, with each call on its connection watched.
pub(super) struct Watched<R> {
    inner: R,
    watch: Watch,
}

impl<R> Watched<R> {
    pub(super) fn new(inner: R, watch: Watch) -> Box<Self> {
        Box::new(Self { inner, watch })
    }
}

#[async_trait]
impl<R: BulkRun> BulkRun for Watched<R> {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        self.watch.over(self.inner.survey()).await
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        self.watch.over(self.inner.chunk(rows)).await
    }

    async fn read(&mut self, rows: u32) -> StoreResult<Result<Vec<String>, Verb>> {
        self.watch.over(self.inner.read(rows)).await
    }

    async fn pass(&mut self) -> StoreResult<Chunked> {
        self.watch.over(self.inner.pass()).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        self.watch.over(self.inner.rest(rest)).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.watch.over(self.inner.end(then)).await
    }
}

#[async_trait]
impl<V: BulkVisit + Sync> BulkVisit for Watched<V> {
    fn since(&self) -> &str {
        self.inner.since()
    }

    async fn settle(&mut self, taken: &Taken) -> StoreResult<()> {
        self.watch.over(self.inner.settle(taken)).await
    }

    async fn survey(&mut self, since: &str) -> StoreResult<Surveyed> {
        self.watch.over(self.inner.survey(since)).await
    }

    async fn apply(&mut self, range: &TargetRange, rows: u32) -> StoreResult<Parts> {
        self.watch.over(self.inner.apply(range, rows)).await
    }

    async fn read(&mut self, range: &TargetRange, rows: u32) -> StoreResult<(Vec<Target>, Parts)> {
        self.watch.over(self.inner.read(range, rows)).await
    }
}

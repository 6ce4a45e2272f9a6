//! Targets on another database than the store's: chunks are transactions there, and the progress is stored in the store.

use std::fmt;

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::progress::{Taken, TargetRange};
use milepost_core::bulk::run::{Order, Parts, Rehearsal, Surveyed, Target, Trial};
use milepost_core::bulk::sql::Dialect;
use milepost_core::bulk::statements::Statements;
use milepost_core::ident::Run;
use milepost_core::port::{BulkTargets, BulkVisit, StoreResult};
use milepost_core::sql;
use sqlx::Executor;

use super::database::Database;
use super::plan;
use super::spec::{Applied, Effect, Spec};
use super::visit::Visit;
use super::watch::Watched;
use crate::row;

/// The targets of a bulk job on a PostgreSQL server; the store may be of any kind and elsewhere.
#[derive(Clone)]
pub struct PostgresTargets(Spec);

impl PostgresTargets {
    /// Parses a source with its key columns, and the effect on its targets; `None` if they are only read. Does not query the
    /// database; [`check`](BulkTargets::check) does.
    ///
    /// # Errors
    /// Describes what is missing in either.
    pub fn new(
        database: &Database,
        source: &str,
        key: &[String],
        effect: Option<Effect>,
    ) -> Result<Self, InvalidBulk> {
        let applied =
            effect.map_or(Ok(Applied::Elsewhere), |effect| Applied::read(effect, key, Dialect::Postgres))?;
        Spec::read(database.clone(), source, key, applied).map(Self)
    }

    /// Requires the source to select these columns too; [`check`](BulkTargets::check) refuses it otherwise.
    #[must_use]
    pub fn reading<'a>(mut self, columns: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.columns.extend(columns.into_iter().map(str::to_owned));
        self
    }

    async fn enter(&self, order: &Order) -> StoreResult<Visit> {
        let connection = self.0.database.connect_remote(&session_name(order.run)).await?;
        Visit::open(&self.0, connection, order).await
    }
}

impl fmt::Debug for PostgresTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresTargets")
            .field("database", &self.0.database)
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

/// Returns the application name by which a run's sessions are found, since that database has no tables of Milepost: at most
/// 61 bytes.
fn session_name(Run { job, token }: Run) -> String {
    format!("milepost bulk {job} {token}")
}

#[async_trait]
impl BulkTargets for PostgresTargets {
    fn place(&self) -> String {
        self.0.database.place().to_owned()
    }

    fn statements(&self) -> Option<Statements> {
        Some(self.0.applied.statements(&self.0.source))
    }

    async fn check(&self) -> StoreResult<()> {
        plan::check_all(&self.0, self.0.database.connect_remote("milepost bulk check").await?).await
    }

    async fn visit(&self, order: &Order) -> StoreResult<Box<dyn BulkVisit>> {
        let mut visit = self.enter(order).await?;
        let watch = visit.watch.clone();
        let since = watch.over(visit.row(sqlx::query(sql!("bulk/since")))).await?;
        let since = row::value(since).map_err(|e| visit.fail(e))?;
        Ok(Watched::new(Remote { visit, since }, watch))
    }

    async fn rehearse(&self, order: &Order, trial: &Trial) -> StoreResult<Rehearsal> {
        let mut visit = self.enter(order).await?;
        visit.watch.clone().over(visit.rehearse(trial)).await
    }
}

/// The session of a run on the other database.
struct Remote {
    visit: Visit,
    /// Transactions that were writing when the session began.
    since: String,
}

impl Remote {
    /// Ends the open transaction: commits on success, rolls back otherwise.
    async fn end<T>(&mut self, done: StoreResult<T>) -> StoreResult<T> {
        match &done {
            Ok(_) => self.visit.script("commit").await?,
            Err(_) => drop(self.visit.connection.execute("rollback").await),
        }
        done
    }

    /// Begins the transaction of a chunk.
    async fn begin(&mut self, range: &TargetRange) -> StoreResult<()> {
        let failed = range.failed.as_ref().map(serde_json::to_string).transpose();
        self.visit.failed = failed.map_err(|e| self.visit.fail(sqlx::Error::Encode(e.into())))?;
        self.visit.script(sql!("bulk/begin_chunk")).await
    }
}

#[async_trait]
impl BulkVisit for Remote {
    fn since(&self) -> &str {
        &self.since
    }

    async fn settle(&mut self, taken: &Taken) -> StoreResult<()> {
        (self.visit.origin, self.visit.over_failures) = (taken.position.origin, taken.failures.is_some());
        let Run { job, token } = self.visit.order.run;
        self.visit.execute(sqlx::query(sql!("bulk/end_sessions")).bind(job.to_string()).bind(token.0)).await
    }

    async fn survey(&mut self, since: &str) -> StoreResult<Surveyed> {
        let surveyed = self.visit.survey(since).await?;
        if matches!(surveyed, Surveyed::Frozen(_)) {
            self.visit.script("commit").await?;
        }
        Ok(surveyed)
    }

    async fn apply(&mut self, range: &TargetRange, rows: u32) -> StoreResult<Parts> {
        let Some(upper) = &range.upper else {
            return Ok(Parts { exhausted: true, ..Parts::behind(range.cursor.clone()) });
        };
        self.begin(range).await?;
        let applied = self.visit.apply_parts(range.cursor.clone(), upper, rows).await;
        self.end(applied).await
    }

    async fn read(&mut self, range: &TargetRange, rows: u32) -> StoreResult<(Vec<Target>, Parts)> {
        self.begin(range).await?;
        let read = self.visit.read_targets(range.cursor.as_ref(), range.upper.as_ref(), rows).await;
        self.end(read).await
    }
}

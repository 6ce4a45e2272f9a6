//! Session of a run on the database of its targets. It reads and applies targets and does not depend on the run's progress.

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::parameters::{Parameter, Parameters};
use milepost_core::bulk::run::{Order, Rehearsal, Survey, Surveyed, Total, Trial};
use milepost_core::bulk::staged::ORIGIN;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row, SqlSafeStr};

use super::data_error::data_error;
use super::row::plan;
use super::spec::Spec;
use super::sql::{Slot, Statement};
use super::staging::stage;
use super::target::{Pages, Targets};
use super::watch::Watch;
use crate::row::{self, Decoded};
use crate::session::{Query, Session};

/// Time limit for counting targets, after which their number is estimated.
const COUNT_TIMEOUT: &str = "set local statement_timeout = '3s'";

/// A dedicated connection with the statements of a run.
pub(super) struct Visit {
    pub(super) spec: Spec,
    pub(super) connection: PgConnection,
    pub(super) watch: Watch,
    targets: Targets,
    pub(super) order: Order,
    parameters: Parameters,
    /// The job whose source selects the targets: the run itself, or the one whose failures it retries.
    pub(super) origin: JobId,
    /// Whether the targets are the failures of another run.
    pub(super) over_failures: bool,
    /// The failures of the chunk, as JSON, if they are not stored in this database.
    pub(super) failed: Option<String>,
}

impl Visit {
    /// Opens a session on this connection, and checks the run's parameters.
    pub(super) async fn open(spec: &Spec, mut connection: PgConnection, order: &Order) -> StoreResult<Self> {
        let watch = Watch::of(&spec.database, &mut connection).await?;
        watch.over(Self::open_watched(spec, connection, order, watch.clone())).await
    }

    async fn open_watched(
        spec: &Spec,
        mut connection: PgConnection,
        order: &Order,
        watch: Watch,
    ) -> StoreResult<Self> {
        let targets = Targets::prepare(spec, &mut connection).await?;
        let parameters = Parameters::read(&order.payload).ok_or(InvalidBulk::NotAnObject)?;
        let mut visit = Self {
            spec: spec.clone(),
            connection,
            watch,
            targets,
            order: order.clone(),
            parameters,
            origin: order.run.job,
            over_failures: false,
            failed: None,
        };
        visit.check_parameters()?;
        visit.check_values().await?;
        Ok(visit)
    }

    /// Lets the planner cast each parameter value to its type. Found in a chunk, an invalid value would look like an error
    /// of each target.
    async fn check_values(&mut self) -> StoreResult<()> {
        let first = &self.targets.of_source.first;
        let plan = Statement { sql: format!("explain {}", first.sql), slots: first.slots.clone() };
        let query = self.bind(&plan, None, None, 1);
        match Session::lasting(&mut self.connection).rows(query).await {
            Ok(_) => Ok(()),
            Err(error) => match data_error(&error) {
                Some((_, why)) => Err(InvalidBulk::BadParameter { why }.into()),
                None => Err(self.fail(error)),
            },
        }
    }

    fn check_parameters(&self) -> StoreResult<()> {
        let exists = |name: &str| self.parameter(name).is_some();
        Ok(self.spec.applied.check_parameters(&self.spec.source, exists)?)
    }

    /// Returns the statements that read the targets of this run.
    pub(super) fn pages(&self) -> &Pages {
        if self.over_failures { &self.targets.of_failures } else { &self.targets.of_source }
    }

    /// Returns a user's statement with its values bound, each as text.
    pub(super) fn bind(
        &self,
        statement: &Statement,
        cursor: Option<&Key>,
        upper: Option<&Key>,
        limit: u32,
    ) -> Query {
        let column = |key: Option<&Key>, at: usize| key.and_then(|key| text_of(key.0.get(at)?));
        let text = |slot: &Slot| match slot {
            Slot::Parameter(name) => self.parameter(name).flatten(),
            Slot::Cursor(at) if self.over_failures && cursor.is_none() => (*at == 0).then(|| "0".to_owned()),
            Slot::Cursor(at) => column(cursor, *at),
            Slot::Upper(at) => column(upper, *at),
            Slot::Limit => Some(limit.to_string()),
            Slot::Run => Some(self.order.run.job.to_string()),
            Slot::Failed => self.failed.clone(),
        };
        let query = sqlx::query(AssertSqlSafe(statement.sql.clone()).into_sql_str());
        statement.slots.iter().fold(query, |query, slot| query.bind(text(slot)))
    }

    /// Returns the value of a parameter; `None` if it does not exist, `Some(None)` if it is null.
    fn parameter(&self, name: &str) -> Option<Option<String>> {
        match name {
            "bulk_id" | ORIGIN => Some(Some(self.origin.to_string())),
            "run_id" => Some(Some(self.order.run.job.to_string())),
            "nominal_at" => Some(self.order.nominal_at.map(|at| at.to_string())),
            name => self.parameters.get(name).map(Parameter::into_text),
        }
    }

    /// Begins a transaction and finds the last target in it, after all transactions that were writing at `since` have ended.
    pub(super) async fn survey(&mut self, since: &str) -> StoreResult<Surveyed> {
        if self.spec.source.is_staged() {
            return Err(InvalidBulk::NotStaged { job: self.order.run.job }.into());
        }
        let query = sqlx::query(sql!("bulk/horizon")).bind(since.to_owned());
        let horizon = self.row(query).await?.ok_or(StoreError::Fenced(self.order.run))?;
        if !self.get::<bool>(&horizon, "passed")? {
            return Ok(Surveyed::Held(self.writers(&horizon)?));
        }
        self.script(sql!("bulk/begin_chunk")).await?;
        self.find_targets().await.map(Surveyed::Frozen)
    }

    async fn find_targets(&mut self) -> StoreResult<Survey> {
        let last = self.bind(&self.targets.last, None, None, 1);
        let last = self.row(last).await?;
        let upper = last.map(|row| key_at(&row)).transpose().map_err(|e| self.fail(e))?;
        let total = match &upper {
            Some(upper) => self.count(upper).await?,
            None => Some(Total { rows: 0, exact: true }),
        };
        Ok(Survey { upper, total })
    }

    /// Describes the transactions that were writing when the run began and still are.
    fn writers(&self, row: &PgRow) -> StoreResult<String> {
        let sessions: Option<String> = self.get(row, "sessions")?;
        let prepared: Option<String> = self.get(row, "prepared")?;
        let sessions = sessions.map(|pids| format!("server processes {pids}"));
        let prepared = prepared.map(|names| format!("prepared transactions {names}"));
        let who: Vec<String> = sessions.into_iter().chain(prepared).collect();
        let who = if who.is_empty() { "of sessions that are not visible".to_owned() } else { who.join("; ") };
        Ok(format!("transactions that were writing when it began and may still add targets ({who})"))
    }

    /// Counts the targets, or returns the planner's estimate if counting takes too long.
    async fn count(&mut self, upper: &Key) -> StoreResult<Option<Total>> {
        self.script("savepoint count").await?;
        self.script(COUNT_TIMEOUT).await?;
        let count = self.bind(&self.targets.count, None, Some(upper), 0);
        match Session::lasting(&mut self.connection).row(count).await.and_then(row::value::<i64>) {
            Ok(rows) => {
                self.script("release count").await?;
                self.script("set local statement_timeout = 0").await?;
                Ok(Some(Total { rows: rows.unsigned_abs(), exact: true }))
            }
            Err(error) if is_canceled(&error) => {
                self.script("rollback to count").await?;
                self.estimate().await
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    async fn estimate(&mut self) -> StoreResult<Option<Total>> {
        let query = self.bind(&self.targets.estimate, None, None, 0);
        let plan = self.row(query).await?.map(|row| plan(&row)).transpose().map_err(|e| self.fail(e))?;
        let rows = plan.and_then(|plan| plan["Plan Rows"].as_f64());
        Ok(rows.map(|rows| Total { rows: rows as u64, exact: false }))
    }

    /// Applies chunks and rolls them back.
    pub(super) async fn rehearse(&mut self, trial: &Trial) -> StoreResult<Rehearsal> {
        self.script(sql!("bulk/begin_chunk")).await?;
        let rehearsed = self.try_chunks(trial).await;
        drop(self.connection.execute("rollback").await);
        rehearsed
    }

    async fn try_chunks(&mut self, trial: &Trial) -> StoreResult<Rehearsal> {
        if !trial.staged.is_empty() {
            let mut session = Session::lasting(&mut self.connection);
            let staged = stage(&mut session, self.origin, 1, trial.staged.clone()).await;
            staged.map_err(|e| self.fail(e))?;
        }
        let Survey { upper, total } = self.find_targets().await?;
        let mut rehearsal = Rehearsal { chunks: Vec::new(), total, failure: None };
        let Some(upper) = upper else { return Ok(rehearsal) };
        let mut cursor = None;
        for _ in 0..trial.chunks {
            let begun = std::time::Instant::now();
            let part = self.apply_parts(cursor.clone(), &upper, trial.rows).await?;
            rehearsal.chunks.push((part.targets, begun.elapsed()));
            rehearsal.failure = rehearsal.failure.or(part.failures.into_iter().next());
            if part.exhausted {
                break;
            }
            cursor = part.cursor;
        }
        Ok(rehearsal)
    }

    pub(super) async fn row(&mut self, query: Query) -> StoreResult<Option<PgRow>> {
        Session::lasting(&mut self.connection).row(query).await.map_err(|e| self.fail(e))
    }

    pub(super) async fn execute(&mut self, query: Query) -> StoreResult<()> {
        let done = Session::lasting(&mut self.connection).execute(query).await;
        done.map(drop).map_err(|e| self.fail(e))
    }

    pub(super) async fn script(&mut self, script: &'static str) -> StoreResult<()> {
        self.connection.execute(script).await.map(drop).map_err(|e| self.fail(e))
    }

    pub(super) fn fail(&self, error: sqlx::Error) -> StoreError {
        self.spec.database.fail(error)
    }

    pub(super) fn get<'r, T>(&self, row: &'r PgRow, column: impl sqlx::ColumnIndex<PgRow>) -> StoreResult<T>
    where
        T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        row.try_get(column).map_err(|e| self.fail(e))
    }
}

/// Returns a value as the text that PostgreSQL parses; `None` for null.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

fn key_at(row: &PgRow) -> Decoded<Key> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text)
        .map_err(|e| sqlx::Error::ColumnDecode { index: "0".to_owned(), source: Box::new(e) })
}

fn is_canceled(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "57014")
}

//! A run in the hands of this process: taken over, surveyed, ended. Its chunks are in `chunk.rs`.

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::run::{
    Chunked, Order, Position, Rehearsal, Rest, Settings, Survey, Surveyed, TargetFailure, Total, Trial,
};
use milepost_core::bulk::staged::ORIGIN;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::{BulkRun, StoreResult};
use serde_json::{Map, Value};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row, SqlSafeStr};

use super::chunk::data_error;
use super::row::{counts, key, plan, settings, total};
use super::sql::{Slot, Statement};
use super::staging::stage;
use super::target::{Pages, Targets};
use super::work::{Applied, SqlBulk};
use crate::error::enqueue_error;
use crate::row;
use crate::session::{Query, Session};
use crate::statement;
use crate::{enqueue, row::Decoded};

/// How long targets are counted before their number is estimated.
const COUNT_TIMEOUT: &str = "set local statement_timeout = '3s'";

/// A run, its own connection, and its statements.
pub(super) struct Run {
    pub(super) bulk: SqlBulk,
    pub(super) connection: PgConnection,
    pub(super) targets: Targets,
    pub(super) order: Order,
    payload: Map<String, Value>,
    /// Whose targets these are.
    pub(super) origin: JobId,
    /// Whether they are the failures of another run.
    pub(super) over_failures: bool,
}

impl Run {
    /// Takes it from whoever had it.
    pub(super) async fn take(bulk: &SqlBulk, order: &Order) -> StoreResult<(Position, Self)> {
        let mut run = Self::open(bulk, order).await?;
        let (job, token) = (order.run.job.0, order.run.token.0);
        // One that has stopped in the middle of a chunk would hold it until the server ends it.
        run.execute(sqlx::query(statement::BULK_UNSEAT).bind(job).bind(token)).await?;
        run.script(statement::BULK_TAKE_BEGIN).await?;
        let take = sqlx::query(statement::BULK_TAKE).bind(job).bind(token).bind(&bulk.fingerprint);
        let taken = run.row(take).await?.ok_or(StoreError::Fenced(order.run))?;
        let position = run.position(&taken)?;
        let set = run.row(sqlx::query(statement::BULK_SETTINGS).bind(job)).await?;
        let settings = set.map_or(Ok(Settings::default()), |row| settings(&row, ""));
        let settings = settings.map_err(|e| run.fail(e))?;
        run.script("commit").await?;
        Ok((Position { settings, ..position }, run))
    }

    /// On a connection of its own, without taking anything.
    pub(super) async fn open(bulk: &SqlBulk, order: &Order) -> StoreResult<Self> {
        let mut connection = bulk.connect().await?;
        let targets = Targets::prepare(bulk, &mut connection).await?;
        let payload = match serde_json::from_str(&order.payload) {
            Ok(Value::Object(payload)) => payload,
            _ => return Err(InvalidBulk::NotAnObject.into()),
        };
        let mut run = Self {
            bulk: bulk.clone(),
            connection,
            targets,
            order: order.clone(),
            payload,
            origin: order.run.job,
            over_failures: false,
        };
        run.check_parameters()?;
        run.check_values().await?;
        Ok(run)
    }

    /// Lets the planner read every value as its type. Found in a chunk, a value that is none would look like a fault of
    /// each target.
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
        let apply = match &self.bulk.applied {
            Applied::Sql(apply) => apply.parameters(),
            Applied::Handler(_) | Applied::Elsewhere => Vec::new(),
        };
        let all = [("source", self.bulk.source.parameters()), ("apply", apply)];
        for (part, names) in all {
            if let Some(name) = names.into_iter().find(|name| self.parameter(name).is_none()) {
                return Err(InvalidBulk::NoParameter { name: name.to_owned(), part }.into());
            }
        }
        Ok(())
    }

    /// Where the run is; also whose targets it has.
    fn position(&mut self, row: &PgRow) -> StoreResult<Position> {
        let job = self.order.run.job;
        let ended: bool = self.get(row, "ended")?;
        if ended {
            return Err(InvalidBulk::Done { job }.into());
        }
        let fingerprint: Option<String> = self.get(row, "fingerprint")?;
        if fingerprint.as_deref() != Some(self.bulk.fingerprint.as_str()) {
            return Err(InvalidBulk::Changed { job }.into());
        }
        self.origin = JobId(self.get(row, "origin")?);
        self.over_failures = self.get::<Option<uuid::Uuid>>(row, "retry_of")?.is_some();
        let position = || -> Decoded<Position> {
            Ok(Position {
                cursor: key(row, "cursor_key")?,
                surveyed: row.try_get("surveyed")?,
                total: total(row)?,
                counts: counts(row)?,
                chunk_rows: row.try_get::<Option<i32>, _>("chunk_rows")?.map(i32::unsigned_abs),
                settings: Settings::default(),
            })
        };
        position().map_err(|e| self.fail(e))
    }

    /// The statements by which its targets are read.
    pub(super) fn pages(&self) -> &Pages {
        if self.over_failures { &self.targets.of_failures } else { &self.targets.of_source }
    }

    /// A statement of the users' with its values, each as text.
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
        };
        let query = sqlx::query(AssertSqlSafe(statement.sql.clone()).into_sql_str());
        statement.slots.iter().fold(query, |query, slot| query.bind(text(slot)))
    }

    /// The value of a parameter; `None` when there is none, `Some(None)` when it is null.
    fn parameter(&self, name: &str) -> Option<Option<String>> {
        match name {
            "bulk_id" | ORIGIN => Some(Some(self.origin.to_string())),
            "nominal_at" => Some(self.order.nominal_at.map(|at| at.to_string())),
            name => self.payload.get(name).map(text_of),
        }
    }

    async fn survey_source(&mut self) -> StoreResult<Surveyed> {
        if self.bulk.source.is_staged() {
            return Err(InvalidBulk::NotStaged { job: self.order.run.job }.into());
        }
        let job = self.order.run.job.0;
        let query = sqlx::query(statement::BULK_HORIZON).bind(job);
        let horizon = self.row(query).await?.ok_or(StoreError::Fenced(self.order.run))?;
        if !self.get::<bool>(&horizon, "passed")? {
            return Ok(Surveyed::Held(self.writers(&horizon)?));
        }
        self.script(statement::BULK_BEGIN_CHUNK).await?;
        let last = self.bind(&self.targets.last, None, None, 1);
        let last = self.row(last).await?;
        let upper = last.map(|row| key_at(&row)).transpose().map_err(|e| self.fail(e))?;
        let total = match &upper {
            Some(upper) => self.count(upper).await?,
            None => Some(Total { rows: 0, exact: true }),
        };
        Ok(Surveyed::Frozen(Survey { upper, total }))
    }

    /// Who was writing when it began and still is.
    fn writers(&self, row: &PgRow) -> StoreResult<String> {
        let sessions: Option<String> = self.get(row, "sessions")?;
        let prepared: Option<String> = self.get(row, "prepared")?;
        let sessions = sessions.map(|pids| format!("server processes {pids}"));
        let prepared = prepared.map(|names| format!("prepared transactions {names}"));
        let who: Vec<String> = sessions.into_iter().chain(prepared).collect();
        let who = if who.is_empty() { "of sessions that cannot be seen".to_owned() } else { who.join("; ") };
        Ok(format!("transactions that were writing when it began and may still add targets ({who})"))
    }

    async fn survey_failures(&mut self) -> StoreResult<Surveyed> {
        self.script(statement::BULK_BEGIN_CHUNK).await?;
        let query = sqlx::query(statement::BULK_FAILURES_LEFT).bind(self.order.run.job.0);
        let row = self.row(query).await?.ok_or(StoreError::Fenced(self.order.run))?;
        let (last, rows): (Option<i64>, i64) = (self.get(&row, 0)?, self.get(&row, 1)?);
        let total = Some(Total { rows: rows.unsigned_abs(), exact: true });
        let upper = last.map(|pos| Key(vec![Value::from(pos.to_string())]));
        Ok(Surveyed::Frozen(Survey { upper, total }))
    }

    /// How many targets there are: counted, if that is quick, else as the planner thinks.
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

    async fn freeze(&mut self, survey: &Survey) -> StoreResult<()> {
        let query = sqlx::query(statement::BULK_FREEZE)
            .bind(self.order.run.job.0)
            .bind(self.order.run.token.0)
            .bind(survey.upper.as_ref().map(json))
            .bind(survey.total.map(|total| total.rows.cast_signed()))
            .bind(survey.total.map(|total| total.exact));
        self.row(query).await?.ok_or(StoreError::Fenced(self.order.run))?;
        self.script("commit").await
    }

    pub(super) async fn row(&mut self, query: Query) -> StoreResult<Option<PgRow>> {
        Session::lasting(&mut self.connection).row(query).await.map_err(|e| self.bulk.store.fail("bulk", e))
    }

    pub(super) async fn execute(&mut self, query: Query) -> StoreResult<()> {
        let done = Session::lasting(&mut self.connection).execute(query).await;
        done.map(drop).map_err(|e| self.bulk.store.fail("bulk", e))
    }

    pub(super) async fn script(&mut self, script: &'static str) -> StoreResult<()> {
        self.connection.execute(script).await.map(drop).map_err(|e| self.bulk.store.fail("bulk", e))
    }

    pub(super) fn fail(&self, error: sqlx::Error) -> StoreError {
        self.bulk.store.fail("bulk", error)
    }

    pub(super) fn get<'r, T>(&self, row: &'r PgRow, column: impl sqlx::ColumnIndex<PgRow>) -> StoreResult<T>
    where
        T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        row.try_get(column).map_err(|e| self.fail(e))
    }
}

#[async_trait]
impl BulkRun for Run {
    async fn survey(&mut self) -> StoreResult<Surveyed> {
        let surveyed =
            if self.over_failures { self.survey_failures().await? } else { self.survey_source().await? };
        if let Surveyed::Frozen(survey) = &surveyed {
            self.freeze(survey).await?;
        }
        Ok(surveyed)
    }

    async fn chunk(&mut self, rows: u32) -> StoreResult<Chunked> {
        self.do_chunk(rows).await
    }

    async fn rest(&mut self, rest: &Rest) -> StoreResult<()> {
        let query = sqlx::query(statement::BULK_REST)
            .bind(self.order.run.job.0)
            .bind(self.order.run.token.0)
            .bind(rest.throttle.clone())
            .bind(whole_ms(rest.held));
        self.execute(query).await
    }

    async fn end(&mut self, then: Option<&NewJob>) -> StoreResult<()> {
        self.script(statement::BULK_BEGIN_CHUNK).await?;
        let query = sqlx::query(statement::BULK_END).bind(self.order.run.job.0).bind(self.order.run.token.0);
        let completed = self.row(query).await?;
        let completed = completed.map(|row| self.get::<bool>(&row, 0)).transpose()?;
        if completed != Some(true) {
            self.script("rollback").await?;
            return Err(StoreError::Fenced(self.order.run));
        }
        if let Some(job) = then {
            enqueue::check(std::slice::from_ref(job), PAYLOAD_BYTES_MAX)?;
            let started = start(&mut Session::lasting(&mut self.connection), job, None).await;
            started.map_err(|e| enqueue_error(&self.bulk.store.inner.place, e))?;
        }
        self.script("commit").await
    }
}

/// Enqueues a checked job and keeps that it is a bulk job, over the failures of another if there is one.
pub(super) async fn start(
    session: &mut Session<'_>,
    job: &NewJob,
    retry_of: Option<JobId>,
) -> Decoded<Enqueued> {
    let made = enqueue::insert_one(session, job).await?;
    if !made.duplicate {
        let parent = retry_of.map(|job| job.0);
        session.execute(sqlx::query(statement::BULK_BEGIN_RUN).bind(made.job.0).bind(parent)).await?;
    }
    Ok(made)
}

impl Run {
    /// Chunks that the caller rolls back.
    pub(super) async fn rehearse(&mut self, trial: &Trial) -> StoreResult<Rehearsal> {
        self.script(statement::BULK_BEGIN_CHUNK).await?;
        let mut session = Session::lasting(&mut self.connection);
        let staged = stage(&mut session, self.origin, 1, trial.staged.clone()).await;
        staged.map_err(|e| self.fail(e))?;
        let last = self.bind(&self.targets.last, None, None, 1);
        let last = self.row(last).await?;
        let upper = last.map(|row| key_at(&row)).transpose().map_err(|e| self.fail(e))?;
        let mut rehearsal = Rehearsal { chunks: Vec::new(), total: None, failure: None };
        let Some(upper) = upper else { return Ok(rehearsal) };
        rehearsal.total = self.count(&upper).await?;
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
}

/// A failure that was not kept yet.
pub(super) fn failure(key: Key, code: String, message: String) -> TargetFailure {
    TargetFailure { pos: 0, key, code, message, at: jiff::Timestamp::UNIX_EPOCH, retried_by: None }
}

/// A value as the text that PostgreSQL reads; `None`: null.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

pub(super) fn json(key: &Key) -> String {
    Value::from(key.0.clone()).to_string()
}

fn key_at(row: &PgRow) -> Decoded<Key> {
    let text: &str = row.try_get(0)?;
    serde_json::from_str(text)
        .map_err(|e| sqlx::Error::ColumnDecode { index: "0".to_owned(), source: Box::new(e) })
}

fn is_canceled(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "57014")
}

//! Progress of a run: its row in the store. If the targets are in the store's own database, these steps run in the
//! transactions of the chunks; if they are on another database, each step is a separate verb.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::progress::{BeforeChunk, FailedTarget, Step, Taken, TargetRange};
use milepost_core::bulk::run::{ChunkDone, Counts, Parts, Position, Rest, Survey, TargetFailure, Total};
use milepost_core::bulk::settings::Settings;
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::{JobId, Run};
use milepost_core::job::{Enqueued, NewJob, PAYLOAD_BYTES_MAX};
use milepost_core::port::{BulkProgress, StoreResult};
use milepost_core::sql;
use milepost_core::text::without_nul;
use milepost_core::transition::Verb;
use serde_json::Value;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::row::{self, counts, key, settings, total};
use crate::row::{Decoded, stop_verb};
use crate::session::{Query, Session};
use crate::store::PostgresStore;
use crate::{enqueue, error};

/// The beginning of a chunk: the range of keys, and the operator's settings or stop request.
pub(super) struct Begun {
    pub(super) cursor: Option<Key>,
    pub(super) upper: Option<Key>,
    pub(super) word: Result<Settings, Verb>,
}

/// Converts an error of a step. Each step reads the row with the run's token; if there is none, the run is fenced.
pub(super) fn told(run: Run, error: sqlx::Error, fail: impl FnOnce(sqlx::Error) -> StoreError) -> StoreError {
    match error {
        sqlx::Error::RowNotFound => StoreError::Fenced(run),
        error => fail(error),
    }
}

async fn found(session: &mut Session<'_>, query: Query) -> Decoded<PgRow> {
    session.row(query).await?.ok_or(sqlx::Error::RowNotFound)
}

/// Takes a run over. `since` lists the transactions to wait for if the targets are on another database.
pub(super) async fn take(
    session: &mut Session<'_>,
    run: Run,
    fingerprint: &str,
    since: Option<&str>,
) -> Decoded<StoreResult<Taken>> {
    let job = run.job;
    let take = sqlx::query(sql!("bulk/take")).bind(job.0).bind(run.token.0);
    let row = found(session, take.bind(fingerprint.to_owned()).bind(since.map(str::to_owned))).await?;
    if row.try_get("ended")? {
        return Ok(Err(InvalidBulk::Done { job }.into()));
    }
    if row.try_get::<Option<&str>, _>("fingerprint")? != Some(fingerprint) {
        return Ok(Err(InvalidBulk::Changed { job }.into()));
    }
    let set = session.row(sqlx::query(sql!("bulk/settings")).bind(job.0)).await?;
    let position = Position {
        origin: JobId(row.try_get("origin")?),
        cursor: key(&row, "cursor_key")?,
        surveyed: row.try_get("surveyed")?,
        total: total(&row)?,
        counts: counts(&row)?,
        chunk_rows: row.try_get::<Option<i32>, _>("chunk_rows")?.map(i32::unsigned_abs),
        settings: set.map_or(Ok(Settings::default()), |row| settings(&row, ""))?,
    };
    let failures = match row.try_get::<Option<uuid::Uuid>, _>("retry_of")? {
        Some(_) => Some(failures_left(session, job).await?),
        None => None,
    };
    Ok(Ok(Taken { position, since: row.try_get("since")?, failures }))
}

/// Returns the range and the number of failures that a run retries.
async fn failures_left(session: &mut Session<'_>, job: JobId) -> Decoded<Survey> {
    let row = found(session, sqlx::query(sql!("bulk/failures_left")).bind(job.0)).await?;
    let (last, rows): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
    let total = Some(Total { rows: rows.unsigned_abs(), exact: true });
    Ok(Survey { upper: last.map(|pos| Key(vec![Value::from(pos.to_string())])), total })
}

pub(super) async fn freeze(session: &mut Session<'_>, run: Run, survey: &Survey) -> Decoded<()> {
    let query = sqlx::query(sql!("bulk/freeze"))
        .bind(run.job.0)
        .bind(run.token.0)
        .bind(survey.upper.as_ref().map(json))
        .bind(survey.total.map(|total| total.rows.cast_signed()))
        .bind(survey.total.map(|total| total.exact));
    found(session, query).await.map(drop)
}

/// Locks the run's progress, then reads its settings and any stop request. Two statements, so that the second one sees
/// requests that were made while the first one waited.
pub(super) async fn lock(session: &mut Session<'_>, run: Run) -> Decoded<Begun> {
    let (job, token) = (run.job.0, run.token.0);
    let locked = found(session, sqlx::query(sql!("bulk/lock")).bind(job).bind(token)).await?;
    let word = found(session, sqlx::query(sql!("bulk/instructions")).bind(job).bind(token)).await?;
    if !word.try_get::<bool, _>("holds")? {
        return Err(sqlx::Error::RowNotFound);
    }
    let told = match stop_verb(&word, "stop_verb")? {
        Some(verb) => Err(verb),
        None => Ok(settings(&word, "")?),
    };
    Ok(Begun { cursor: key(&locked, "cursor_key")?, upper: key(&locked, "upper_key")?, word: told })
}

/// Stores the size of the current chunk, in rows.
pub(super) async fn keep_size(session: &mut Session<'_>, run: Run, rows: u32) -> Decoded<()> {
    let keep = sqlx::query(sql!("bulk/keep_size"));
    session.execute(keep.bind(run.job.0).bind(run.token.0).bind(rows.cast_signed())).await.map(drop)
}

pub(super) async fn keep_failures(
    session: &mut Session<'_>,
    run: Run,
    failures: &[TargetFailure],
) -> Decoded<()> {
    for TargetFailure { key, code, message, .. } in failures {
        let fail = sqlx::query(sql!("bulk/fail")).bind(run.job.0).bind(json(key));
        session.execute(fail.bind(without_nul(code)).bind(without_nul(message))).await?;
    }
    Ok(())
}

/// Moves the cursor past these parts of a chunk of `rows` rows.
pub(super) async fn advance(
    session: &mut Session<'_>,
    run: Run,
    parts: &Parts,
    rows: u32,
    took: Duration,
) -> Decoded<Counts> {
    let query = sqlx::query(sql!("bulk/advance"))
        .bind(run.job.0)
        .bind(run.token.0)
        .bind(parts.cursor.as_ref().map(json))
        .bind(i64::from(parts.targets.saturating_sub(parts.failed)))
        .bind(i64::from(parts.failures_count()))
        .bind(rows.cast_signed())
        .bind(whole_ms(took));
    counts(&found(session, query).await?)
}

/// Moves the cursor past a chunk that was read in an earlier transaction. Completed work counts even if a stop was requested
/// in the meantime.
pub(super) async fn pass(session: &mut Session<'_>, run: Run, step: &Step) -> Decoded<ChunkDone> {
    let Step { from, parts, rows, took } = step;
    let begun = lock(session, run).await?;
    if begun.cursor != *from {
        return Err(sqlx::Error::RowNotFound);
    }
    keep_failures(session, run, &parts.failures).await?;
    let counts = advance(session, run, parts, *rows, *took).await?;
    Ok(parts.done(counts, begun.word.unwrap_or_default()))
}

pub(super) async fn rest(session: &mut Session<'_>, run: Run, rest: &Rest) -> Decoded<()> {
    let query = sqlx::query(sql!("bulk/rest"))
        .bind(run.job.0)
        .bind(run.token.0)
        .bind(rest.throttle.clone())
        .bind(whole_ms(rest.held));
    session.execute(query).await.map(drop)
}

/// Ends a run and its job, and starts a checked job if there is one.
pub(super) async fn end(session: &mut Session<'_>, run: Run, then: Option<&NewJob>) -> Decoded<()> {
    let query = sqlx::query(sql!("bulk/end")).bind(run.job.0).bind(run.token.0);
    if !found(session, query).await?.try_get::<bool, _>(0)? {
        return Err(sqlx::Error::RowNotFound);
    }
    match then {
        Some(job) => start(session, job, None).await.map(drop),
        None => Ok(()),
    }
}

/// Enqueues a checked job and registers it as a bulk job, over the failures of `retry_of` if given.
pub(super) async fn start(
    session: &mut Session<'_>,
    job: &NewJob,
    retry_of: Option<JobId>,
) -> Decoded<Enqueued> {
    let made = enqueue::insert_run(session, job).await?;
    if !made.duplicate {
        let parent = retry_of.map(|job| job.0);
        session.execute(sqlx::query(sql!("bulk/begin_run")).bind(made.job.0).bind(parent)).await?;
    }
    Ok(made)
}

pub(super) fn json(key: &Key) -> String {
    Value::from(key.0.clone()).to_string()
}

#[async_trait]
impl BulkProgress for PostgresStore {
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken> {
        let taken =
            self.inner.hot.atomically(async |session| take(session, run, fingerprint, Some(since)).await);
        taken.await.map_err(|e| self.told(run, e))?
    }

    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()> {
        let frozen = self.inner.hot.atomically(async |session| freeze(session, run, survey).await);
        frozen.await.map_err(|e| self.told(run, e))
    }

    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<BeforeChunk> {
        let looked = self.inner.hot.atomically(async |session| {
            let Begun { cursor, upper, word } = lock(session, run).await?;
            keep_size(session, run, rows).await?;
            let failed = next_failures(session, run.job, cursor.as_ref(), rows).await?;
            Ok(BeforeChunk { range: TargetRange { cursor, upper, failed }, stop: word.err() })
        });
        looked.await.map_err(|e| self.told(run, e))
    }

    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone> {
        let advanced = self.inner.hot.atomically(async |session| pass(session, run, step).await);
        advanced.await.map_err(|e| self.told(run, e))
    }

    async fn rest_bulk(&self, run: Run, its: &Rest) -> StoreResult<()> {
        let rested = self.inner.hot.run(async |session| rest(session, run, its).await);
        rested.await.map_err(|e| self.told(run, e))
    }

    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()> {
        if let Some(job) = then {
            enqueue::check(std::slice::from_ref(job), PAYLOAD_BYTES_MAX)?;
        }
        let ended = self.inner.hot.atomically(async |session| end(session, run, then).await);
        ended.await.map_err(|e| told(run, e, |e| error::enqueue_error(&self.inner.place, e)))
    }
}

impl PostgresStore {
    fn told(&self, run: Run, error: sqlx::Error) -> StoreError {
        told(run, error, |e| self.fail("bulk", e))
    }
}

/// Returns the next failures to retry, if the run retries failures.
async fn next_failures(
    session: &mut Session<'_>,
    job: JobId,
    cursor: Option<&Key>,
    limit: u32,
) -> Decoded<Option<Vec<FailedTarget>>> {
    let next =
        sqlx::query(sql!("bulk/next_failures")).bind(job.0).bind(cursor.map(json)).bind(i64::from(limit));
    session.rows(next).await?.first().map(row::failed_targets).transpose()
}

//! Progress of a run: its row in the store. If the targets are in the store's own file, these steps are part of the chunks' transactions;
//! if they are on another database, each step is a separate verb.

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
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::port::{BulkProgress, StoreResult};
use milepost_core::sql;
use milepost_core::text::without_nul;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use serde_json::Value;

use super::row::{counts, id_opt, key, settings, total};
use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::row::{Id, word_opt};
use crate::store::SqliteStore;
use crate::{enqueue, finish};

/// The start of a chunk, and its stop request.
pub(super) struct Begun {
    pub(super) cursor: Option<Key>,
    pub(super) upper: Option<Key>,
    pub(super) stop: Option<Verb>,
    over_failures: bool,
}

/// Takes a run over. `since`: if the targets are on another database, the snapshot of the transactions to wait for.
pub(super) fn take(
    tx: &Transaction<'_>,
    run: Run,
    fingerprint: &str,
    since: Option<&str>,
) -> Result<Taken, Failure> {
    let job = run.job;
    let values = (Id(&job), run.token.0, fingerprint, now_ms(), since);
    let taken = tx.prepare_cached(sql!("bulk/take"))?.query_row(values, |row| {
        let position = position(row, job)?;
        let (over_failures, its) = (id_opt(row, 1)?.is_some(), row.get::<_, String>(10)?);
        Ok((position, over_failures, its, row.get::<_, bool>(11)?, row.get::<_, Option<String>>(12)?))
    });
    let (position, over_failures, its, ended, since) = taken.optional()?.ok_or(StoreError::Fenced(run))?;
    if ended {
        return Err(Failure::Told(InvalidBulk::Done { job }.into()));
    }
    if its != fingerprint {
        return Err(Failure::Told(InvalidBulk::Changed { job }.into()));
    }
    let position = Position { settings: set(tx, job)?, ..position };
    let failures = if over_failures { Some(failures_left(tx, job)?) } else { None };
    Ok(Taken { position, since: since.unwrap_or_default(), failures })
}

fn position(row: &Row<'_>, job: JobId) -> rusqlite::Result<Position> {
    Ok(Position {
        origin: id_opt(row, 0)?.unwrap_or(job),
        cursor: key(row, 2)?,
        surveyed: row.get(3)?,
        total: total(row, 4)?,
        counts: counts(row, 6)?,
        chunk_rows: row.get(9)?,
        settings: Settings::default(),
    })
}

/// Returns the settings made by operators.
fn set(conn: &Connection, job: JobId) -> rusqlite::Result<Settings> {
    let found = conn.prepare_cached(sql!("bulk/settings"))?.query_row([Id(&job)], |row| settings(row, 0));
    Ok(found.optional()?.unwrap_or_default())
}

/// Returns the failures that a run is to retry.
pub(super) fn failures_left(conn: &Connection, job: JobId) -> rusqlite::Result<Survey> {
    let left = conn
        .prepare_cached(sql!("bulk/failures_left"))?
        .query_row([Id(&job)], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, i64>(1)?)));
    let (last, rows) = left?;
    let total = Some(Total { rows: rows.unsigned_abs(), exact: true });
    Ok(Survey { upper: last.map(|pos| Key(vec![pos.into()])), total })
}

pub(super) fn freeze(tx: &Transaction<'_>, run: Run, survey: &Survey) -> Result<(), Failure> {
    let frozen = tx.prepare_cached(sql!("bulk/freeze"))?.execute((
        Id(&run.job),
        run.token.0,
        survey.upper.as_ref().map(json),
        survey.total.map(|total| total.rows.cast_signed()),
        survey.total.map(|total| total.exact),
        now_ms(),
    ))?;
    if frozen == 1 { Ok(()) } else { Err(StoreError::Fenced(run).into()) }
}

/// Returns the cursor of the run, and its stop request.
pub(super) fn stand(conn: &Connection, run: Run) -> Result<Begun, Failure> {
    let found = conn.prepare_cached(sql!("bulk/cursor"))?.query_row((Id(&run.job), run.token.0), |row| {
        let (cursor, upper) = (key(row, 0)?, key(row, 1)?);
        Ok(Begun { cursor, upper, stop: word_opt(row, 2)?, over_failures: row.get(3)? })
    });
    Ok(found.optional()?.ok_or(StoreError::Fenced(run))?)
}

/// Stores the planned size of the current chunk, so that the chunk is the same when it is read again.
pub(super) fn keep_size(tx: &Transaction<'_>, run: Run, rows: u32) -> Result<(), Failure> {
    tx.prepare_cached(sql!("bulk/keep_size"))?.execute((Id(&run.job), run.token.0, rows))?;
    Ok(())
}

/// Stores the failures and moves the cursor past these parts of a chunk of `rows` planned rows.
pub(super) fn advance(
    tx: &Transaction<'_>,
    run: Run,
    parts: &Parts,
    rows: u32,
    took: Duration,
) -> Result<ChunkDone, Failure> {
    keep_failures(tx, run.job, &parts.failures)?;
    let values = (
        Id(&run.job),
        run.token.0,
        parts.cursor.as_ref().map(json),
        parts.targets.saturating_sub(parts.failed),
        parts.failures_count(),
        rows,
        whole_ms(took),
        now_ms(),
    );
    let advanced = tx.prepare_cached(sql!("bulk/advance"))?.query_row(values, |row| counts(row, 0));
    let counts: Counts = advanced.optional()?.ok_or(StoreError::Fenced(run))?;
    Ok(parts.done(counts, set(tx, run.job)?))
}

fn keep_failures(tx: &Transaction<'_>, job: JobId, failures: &[TargetFailure]) -> Result<(), Failure> {
    let mut statement = tx.prepare_cached(sql!("bulk/fail"))?;
    for TargetFailure { key, code, message, .. } in failures {
        statement.execute((Id(&job), json(key), without_nul(code), without_nul(message), now_ms()))?;
    }
    Ok(())
}

/// Moves the cursor past a chunk that was read before. Targets that were applied are counted even if the run has been asked to stop since.
pub(super) fn pass(tx: &Transaction<'_>, run: Run, step: &Step) -> Result<ChunkDone, Failure> {
    let Step { from, parts, rows, took } = step;
    if stand(tx, run)?.cursor != *from {
        return Err(StoreError::Fenced(run).into());
    }
    advance(tx, run, parts, *rows, *took)
}

pub(super) fn rest(tx: &Transaction<'_>, run: Run, rest: &Rest) -> Result<(), Failure> {
    let values = (Id(&run.job), run.token.0, &rest.throttle, whole_ms(rest.held), now_ms());
    tx.prepare_cached(sql!("bulk/rest"))?.execute(values)?;
    Ok(())
}

/// Ends a run and its job, and starts the follow-up job if there is one.
pub(super) fn end(tx: &Transaction<'_>, run: Run, then: Option<&NewJob>) -> Result<(), Failure> {
    let values = (Id(&run.job), run.token.0, now_ms());
    let ended = tx.prepare_cached(sql!("bulk/end"))?.query_row(values, |row| row.get::<_, String>(0));
    let result = ended.optional()?.ok_or(StoreError::Fenced(run))?;
    finish::complete(tx, run, Some(&result))?;
    then.map_or(Ok(()), |job| start(tx, job, None).map(drop))
}

/// Enqueues a job and records it as a bulk job, over the failures of another run if given.
pub(super) fn start(
    tx: &Transaction<'_>,
    job: &NewJob,
    retry_of: Option<JobId>,
) -> Result<Enqueued, Failure> {
    let made = enqueue::insert_one(tx, job)?;
    if !made.duplicate {
        tx.prepare_cached(sql!("bulk/begin_run"))?.execute((Id(&made.job), retry_of.as_ref().map(Id)))?;
    }
    if let (false, Some(parent)) = (made.duplicate, retry_of) {
        let given = tx.prepare_cached(sql!("bulk/give_failures"))?.execute((Id(&parent), Id(&made.job)))?;
        if given == 0 {
            return Err(Failure::Told(InvalidBulk::NoFailures { job: parent }.into()));
        }
        tx.prepare_cached(sql!("bulk/note_given"))?.execute((Id(&parent), given as i64, now_ms()))?;
    }
    Ok(made)
}

/// Returns the next failures that a run is to retry, after a position.
fn next_failures(
    conn: &Connection,
    job: JobId,
    cursor: Option<&Key>,
    limit: u32,
) -> Result<Vec<FailedTarget>, Failure> {
    // Positions come back from another database as text.
    let place = |place: &Value| place.as_i64().or_else(|| place.as_str()?.parse().ok());
    let after = cursor.and_then(|cursor| place(cursor.0.first()?)).unwrap_or_default();
    let mut statement = conn.prepare_cached(sql!("bulk/next_failures"))?;
    let failed = statement.query_map((Id(&job), after, limit), |row| {
        Ok(FailedTarget { pos: row.get(0)?, key: key(row, 1)?.unwrap_or_else(|| Key(Vec::new())) })
    });
    Ok(failed?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn json(key: &Key) -> String {
    Value::from(key.0.clone()).to_string()
}

#[async_trait]
impl BulkProgress for SqliteStore {
    async fn take_bulk(&self, run: Run, fingerprint: &str, since: &str) -> StoreResult<Taken> {
        let (fingerprint, since) = (fingerprint.to_owned(), since.to_owned());
        self.write("bulk", Hint::NONE, move |tx| take(tx, run, &fingerprint, Some(&since))).await
    }

    async fn freeze_bulk(&self, run: Run, survey: &Survey) -> StoreResult<()> {
        let survey = survey.clone();
        self.write("bulk", Hint::NONE, move |tx| freeze(tx, run, &survey)).await
    }

    async fn look_bulk(&self, run: Run, rows: u32) -> StoreResult<BeforeChunk> {
        let look = move |tx: &Transaction<'_>| {
            let Begun { cursor, upper, stop, over_failures } = stand(tx, run)?;
            keep_size(tx, run, rows)?;
            let next = || next_failures(tx, run.job, cursor.as_ref(), rows);
            let failed = if over_failures { Some(next()?) } else { None };
            Ok(BeforeChunk { range: TargetRange { cursor, upper, failed }, stop })
        };
        self.write("bulk", Hint::NONE, look).await
    }

    async fn advance_bulk(&self, run: Run, step: &Step) -> StoreResult<ChunkDone> {
        let step = step.clone();
        self.write("bulk", Hint::NONE, move |tx| pass(tx, run, &step)).await
    }

    async fn rest_bulk(&self, run: Run, its: &Rest) -> StoreResult<()> {
        let its = its.clone();
        self.write("bulk", Hint::NONE, move |tx| rest(tx, run, &its)).await
    }

    async fn end_bulk(&self, run: Run, then: Option<&NewJob>) -> StoreResult<()> {
        let then = then.cloned();
        self.write("bulk", Hint::READY, move |tx| end(tx, run, then.as_ref())).await
    }
}

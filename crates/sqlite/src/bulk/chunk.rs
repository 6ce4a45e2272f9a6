//! One chunk in one write transaction: checks for a stop request, applies the next targets, and moves the cursor past them.

use std::time::{Duration, Instant};

use milepost_core::bulk::error::InvalidBulk;
use milepost_core::bulk::key::Key;
use milepost_core::bulk::run::{
    BadTarget, Chunk, Chunked, Parts, Rehearsal, Survey, Target, TargetFailure, Trial,
};
use milepost_core::error::{Cause, StoreError};
use rusqlite::{Connection, ErrorCode, Transaction};
use serde_json::{Map, Value};

use super::facts::{Facts, Selection, key_of, targets as targets_of};
use super::progress::{self, Begun};
use super::row::to_json;
use super::spec::Applied;
use super::staging::stage_for_trial;
use crate::error::Failure;

/// A dry run applies no further rows after this time, since all other writers of the file wait for it …
const TRIAL_MAX: Duration = Duration::from_millis(100);
/// … and begins with this number of rows, then twice as many each time, since their cost is unknown.
const TRIAL_ROWS: u32 = 10;

/// The result of applying part of a chunk.
struct Part {
    targets: u32,
    last: Option<Key>,
    /// Whether there are no more targets.
    exhausted: bool,
}

/// Why a part could not be applied.
enum Trouble {
    /// One of its targets is invalid.
    Data {
        code: String,
        message: String,
    },
    Other(Failure),
}

/// Runs the next chunk, unless the run has a stop request.
pub(super) fn chunk(tx: &Transaction<'_>, facts: &Facts, rows: u32) -> Result<Chunked, Failure> {
    let begun = Instant::now();
    let Begun { cursor, upper, stop, .. } = progress::stand(tx, facts.order.run)?;
    if let Some(verb) = stop {
        return Ok(Chunked::Stopped(verb));
    }
    let parts = match &upper {
        Some(upper) => apply_parts(tx, facts, cursor, upper, rows)?,
        None => Parts { exhausted: true, ..Parts::behind(cursor) },
    };
    progress::advance(tx, facts.order.run, &parts, rows, begun.elapsed()).map(Chunked::Done)
}

/// Runs a few chunks and rolls them back.
pub(super) fn rehearse(
    tx: &Transaction<'_>,
    facts: &Facts,
    survey: Option<Survey>,
    trial: &Trial,
) -> Result<Rehearsal, Failure> {
    tx.prepare_cached("SAVEPOINT rehearsal")?.execute(())?;
    stage_for_trial(tx, facts.origin, &trial.staged)?;
    let survey = survey.map_or_else(|| targets_of(tx, facts), Ok)?;
    let rehearsal = try_chunks(tx, facts, &survey, trial)?;
    tx.prepare_cached("ROLLBACK TO rehearsal")?.execute(())?;
    tx.prepare_cached("RELEASE rehearsal")?.execute(())?;
    Ok(rehearsal)
}

fn try_chunks(
    tx: &Transaction<'_>,
    facts: &Facts,
    survey: &Survey,
    trial: &Trial,
) -> Result<Rehearsal, Failure> {
    let mut rehearsal = Rehearsal { chunks: Vec::new(), total: survey.total, failure: None };
    let Some(upper) = &survey.upper else { return Ok(rehearsal) };
    let (began, mut cursor) = (Instant::now(), None);
    for _ in 0..trial.chunks {
        let (begun, mut rows, mut step) = (Instant::now(), 0, TRIAL_ROWS);
        let is_last = loop {
            let parts = apply_parts(tx, facts, cursor, upper, step.min(trial.rows - rows))?;
            rows += parts.targets.min(trial.rows - rows);
            rehearsal.failure = rehearsal.failure.or(parts.failures.into_iter().next());
            cursor = parts.cursor;
            let is_last = parts.exhausted || began.elapsed() >= TRIAL_MAX;
            if is_last || rows >= trial.rows {
                break is_last;
            }
            step = step.saturating_mul(2);
        };
        rehearsal.chunks.push((rows, begun.elapsed()));
        if is_last {
            break;
        }
    }
    Ok(rehearsal)
}

/// Applies up to `rows` targets. A part that contains a bad target is rolled back and halved until the bad target is alone. After that, the
/// part size grows again.
fn apply_parts(
    tx: &Transaction<'_>,
    facts: &Facts,
    cursor: Option<Key>,
    upper: &Key,
    rows: u32,
) -> Result<Parts, Failure> {
    facts.spec.applied.check_applies().map_err(|invalid| Failure::Told(invalid.into()))?;
    let mut parts = Parts::behind(cursor);
    let (mut left, mut size) = (rows, rows);
    while left > 0 && !parts.exhausted && parts.failures.len() < Parts::FAILURES_MAX {
        let part = find_part(tx, facts, parts.cursor.as_ref(), upper, size)?;
        tx.prepare_cached("SAVEPOINT part")?.execute(())?;
        let applied = apply(tx, facts, parts.cursor.as_ref(), &part);
        if applied.is_err() {
            tx.prepare_cached("ROLLBACK TO part")?.execute(())?;
        }
        tx.prepare_cached("RELEASE part")?.execute(())?;
        match applied {
            Ok(()) => {}
            Err(Trouble::Other(failure)) => return Err(failure),
            Err(Trouble::Data { .. }) if size > 1 => {
                size /= 2;
                continue;
            }
            Err(Trouble::Data { code, message }) => {
                let key = part.last.clone().unwrap_or_else(|| Key(Vec::new()));
                parts.failures.push(TargetFailure::new(key, code, message));
                parts.failed += part.targets;
            }
        }
        parts.targets += part.targets;
        parts.exhausted = part.exhausted;
        parts.cursor = part.last.or(parts.cursor);
        left = left.saturating_sub(size);
        size = size.saturating_mul(2).min(left);
    }
    Ok(parts)
}

/// Finds the last key of the next `size` targets. Targets with equal keys stay in one part.
fn find_part(
    conn: &Connection,
    facts: &Facts,
    cursor: Option<&Key>,
    upper: &Key,
    size: u32,
) -> Result<Part, Failure> {
    let pages = facts.pages(cursor);
    let mut bound = conn.prepare_cached(&pages.bound)?;
    facts
        .bind(&mut bound, Selection { cursor, upper: Some(upper), skip: size - 1, ..Selection::default() })?;
    let found = bound.raw_query().next()?.map(key_of).transpose()?;
    let exhausted = found.is_none() || found.as_ref() == Some(upper);
    let last = found.unwrap_or_else(|| upper.clone());
    let mut count = conn.prepare_cached(&pages.count)?;
    facts.bind(&mut count, Selection { cursor, bound: Some(&last), ..Selection::default() })?;
    let found = count.raw_query().next()?.map(|row| Ok::<_, rusqlite::Error>((row.get(0)?, row.get(1)?)));
    let (targets, passed): (u32, u32) = found.transpose()?.unwrap_or_default();
    if let (Some(cursor), 1..) = (cursor, passed) {
        let stands = InvalidBulk::Stands { cursor: cursor.to_string(), answered: last.to_string() };
        return Err(Failure::Told(stands.into()));
    }
    Ok(Part { targets, last: Some(last), exhausted })
}

fn apply(tx: &Transaction<'_>, facts: &Facts, cursor: Option<&Key>, part: &Part) -> Result<(), Trouble> {
    let place = Selection { cursor, bound: part.last.as_ref(), ..Selection::default() };
    let pages = facts.pages(cursor);
    match (&facts.spec.applied, &pages.apply) {
        (Applied::Handler(handler), _) => {
            let targets = targets(tx, facts, place).map_err(Trouble::Other)?;
            let (run, origin) = (facts.order.run, facts.origin);
            let payload = facts.order.payload.as_str();
            let chunk = Chunk { run, origin, payload, cursor, targets: &targets };
            if targets.is_empty() { Ok(()) } else { handler.apply(&chunk, tx).map_err(blame) }
        }
        (_, Some(sql)) => execute(tx, facts, sql, place).map_err(|error| match tx.prepare(sql) {
            Ok(_) => trouble(error),
            // The statement itself is invalid, for example because a table was dropped.
            Err(_) => Trouble::Other(error.into()),
        }),
        (_, None) => Ok(()),
    }
}

fn execute(tx: &Transaction<'_>, facts: &Facts, sql: &str, place: Selection<'_>) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(sql)?;
    facts.bind(&mut statement, place)?;
    // The returned rows are ignored, but SQLite applies the statement as they are read.
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

/// Returns the targets in the order of their keys.
pub(super) fn targets(
    conn: &Connection,
    facts: &Facts,
    place: Selection<'_>,
) -> Result<Vec<Target>, Failure> {
    let mut statement = conn.prepare_cached(&facts.pages(place.cursor).rows)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    facts.bind(&mut statement, place)?;
    let mut rows = statement.raw_query();
    let mut targets = Vec::new();
    while let Some(row) = rows.next()? {
        let mut object = Map::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            object.insert(name.clone(), to_json(row.get_ref(at)?));
        }
        let key = facts.spec.source.key().iter().map(|name| object.get(name).cloned().unwrap_or_default());
        targets.push(Target { key: Key(key.collect()), row: Value::Object(object).to_string() });
    }
    Ok(targets)
}

/// Returns the next targets, their last key and number, and whether they are the last ones.
pub(super) fn next_targets(
    conn: &Connection,
    facts: &Facts,
    cursor: Option<&Key>,
    upper: &Key,
    rows: u32,
) -> Result<(Vec<Target>, Parts), Failure> {
    let part = find_part(conn, facts, cursor, upper, rows)?;
    let targets =
        targets(conn, facts, Selection { cursor, bound: part.last.as_ref(), ..Selection::default() })?;
    let Part { targets: found, last, exhausted } = part;
    Ok((targets, Parts { targets: found, exhausted, ..Parts::behind(last) }))
}

/// Returns whether an SQLite error is caused by a target.
fn trouble(error: rusqlite::Error) -> Trouble {
    let about_data = match &error {
        rusqlite::Error::SqliteFailure(code, words) => {
            let kind = matches!(
                code.code,
                ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig
            );
            // Raised by a function about its argument, such as malformed JSON; the statement itself can be prepared.
            let raised = code.extended_code == rusqlite::ffi::SQLITE_ERROR;
            (kind || raised).then(|| {
                let name =
                    if kind { format!("sqlite_{}", code.extended_code) } else { "sqlite_error".to_owned() };
                (name, words.clone().unwrap_or_else(|| code.to_string()))
            })
        }
        _ => None,
    };
    match about_data {
        Some((code, message)) => Trouble::Data { code, message },
        None => Trouble::Other(error.into()),
    }
}

/// Returns whether a handler's error is caused by a target.
fn blame(cause: Cause) -> Trouble {
    let cause = match cause.downcast::<BadTarget>() {
        Ok(bad) => return Trouble::Data { code: bad.code, message: bad.message },
        Err(cause) => cause,
    };
    let cause = match cause.downcast::<rusqlite::Error>() {
        Ok(error) => return trouble(*error),
        Err(cause) => cause,
    };
    match cause.downcast::<StoreError>() {
        Ok(error) => match *error {
            StoreError::Invalid { invalid, .. } => {
                Trouble::Data { code: "invalid_job".to_owned(), message: invalid.to_string() }
            }
            StoreError::Event { invalid, .. } => {
                Trouble::Data { code: "invalid_event".to_owned(), message: invalid.to_string() }
            }
            error => Trouble::Other(error.into()),
        },
        Err(cause) => Trouble::Other(StoreError::Database { verb: "bulk chunk", cause }.into()),
    }
}

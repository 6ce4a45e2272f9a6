//! Leaving a store: the mark that its jobs go to another one, and the triggers that keep everybody from it meanwhile.

use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_core::relocation::{Departure, MoveError, MoveId};
use rusqlite::ffi::SQLITE_CONSTRAINT_TRIGGER;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use crate::clock::now_ms;
use crate::command::Hint;
use crate::failure::Failure;
use crate::store::SqliteStore;
use crate::{query, row};

/// How the words begin with which closed tables refuse a change.
const CLOSED: &str = "the jobs of this store ";

impl SqliteStore {
    /// The mark that the jobs of this store go, or went, to another one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn departure(&self) -> StoreResult<Option<Departure>> {
        self.read("departure", departure).await
    }

    /// Marks the store as being left for the one at `to`. From the commit on, nothing in it can be changed, by
    /// whatever process and version; it can be read.
    ///
    /// # Errors
    /// [`WorkersLive`](MoveError::WorkersLive) when a worker's lease holds; [`Closed`](MoveError::Closed) when the
    /// store bears a mark already.
    pub async fn depart(&self, id: MoveId, to: &str) -> StoreResult<()> {
        let to = to.to_owned();
        self.write("depart", Hint::NONE, move |tx| depart(tx, id, &to)).await
    }

    /// Notes that all has arrived. The store stays as it is, to be read. Does nothing when that was noted before.
    ///
    /// # Errors
    /// [`NotUnderWay`](MoveError::NotUnderWay) when the store bears no mark of this move.
    pub async fn depart_for_good(&self, id: MoveId) -> StoreResult<()> {
        self.write("depart_for_good", Hint::NONE, move |tx| depart_for_good(tx, id)).await
    }

    /// Takes the mark of a move back that is not complete: the store can be used as before. Answers whether it bore
    /// one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub async fn stay(&self, id: MoveId) -> StoreResult<bool> {
        self.write("stay", Hint::READY, move |tx| stay(tx, id)).await
    }

    /// The workers and relays whose lease holds, for people.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn living_workers(&self) -> StoreResult<Vec<String>> {
        self.read("living_workers", living_workers).await
    }
}

/// Whether a change was refused because the store was left.
pub(crate) fn is_closed(error: &rusqlite::Error) -> bool {
    words(error).is_some_and(|words| words.starts_with(CLOSED))
}

/// What those are told who try.
pub(crate) fn refusal(error: &rusqlite::Error) -> StoreError {
    MoveError::Closed { words: words(error).unwrap_or(CLOSED).to_owned() }.into()
}

/// What a trigger said.
fn words(error: &rusqlite::Error) -> Option<&str> {
    match error {
        rusqlite::Error::SqliteFailure(code, Some(words))
            if code.extended_code == SQLITE_CONSTRAINT_TRIGGER =>
        {
            Some(words)
        }
        _ => None,
    }
}

pub(crate) fn departure(conn: &Connection) -> Result<Option<Departure>, Failure> {
    let mut statement = conn.prepare_cached(query::DEPARTURE)?;
    let found = statement.query_row((), |row| {
        Ok(Departure {
            id: MoveId(Uuid::from_bytes(row.get(0)?)),
            to: row.get(1)?,
            began_at: row::time(row, 2)?,
            completed_at: row::time_opt(row, 3)?,
        })
    });
    Ok(found.optional()?)
}

fn depart(conn: &Connection, id: MoveId, to: &str) -> Result<(), Failure> {
    if let Some(before) = departure(conn)? {
        let words = format!("{CLOSED}are bound for {} already (move {})", before.to, before.id);
        return Err(StoreError::from(MoveError::Closed { words }).into());
    }
    let workers = living_workers(conn)?;
    if !workers.is_empty() {
        return Err(StoreError::from(MoveError::WorkersLive { workers }).into());
    }
    conn.prepare(query::DEPART)?.execute((id.0.as_bytes(), to, now_ms()))?;
    let words = format!(
        "{CLOSED}are being moved to {to} (move {id}); go on there when `milepost move` has finished, or give the move up with --give-up"
    );
    change_tables(conn, query::CLOSE_TABLES, [words])
}

fn depart_for_good(conn: &Connection, id: MoveId) -> Result<(), Failure> {
    let Some(Departure { to, completed_at, .. }) = departure(conn)?.filter(|found| found.id == id) else {
        return Err(StoreError::from(MoveError::NotUnderWay(id)).into());
    };
    if completed_at.is_some() {
        return Ok(());
    }
    conn.prepare(query::DEPART_FOR_GOOD)?.execute((id.0.as_bytes(), now_ms()))?;
    change_tables(conn, query::OPEN_TABLES, [])?;
    let words = format!("{CLOSED}were moved to {to} (move {id}); use that store");
    change_tables(conn, query::CLOSE_TABLES, [words])
}

fn stay(conn: &Connection, id: MoveId) -> Result<bool, Failure> {
    if conn.prepare(query::STAY)?.execute([id.0.as_bytes()])? == 0 {
        return Ok(false);
    }
    change_tables(conn, query::OPEN_TABLES, [])?;
    Ok(true)
}

/// Runs the statements that a statement answers.
fn change_tables<const N: usize>(
    conn: &Connection,
    statements: &str,
    words: [String; N],
) -> Result<(), Failure> {
    let mut statements = conn.prepare(statements)?;
    let statements = statements.query_map(rusqlite::params_from_iter(words), |row| row.get(0))?;
    for statement in statements.collect::<rusqlite::Result<Vec<String>>>()? {
        conn.execute_batch(&statement)?;
    }
    Ok(())
}

fn living_workers(conn: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare(query::LIVING_WORKERS)?;
    let workers = statement.query_map([now_ms()], |row| row.get(0))?;
    Ok(workers.collect::<rusqlite::Result<_>>()?)
}

/// Refuses when the store does not bear the mark of this move any more.
pub(crate) fn check(conn: &Connection, id: MoveId) -> Result<(), Failure> {
    match departure(conn)? {
        Some(found) if found.id == id => Ok(()),
        _ => Err(StoreError::from(MoveError::NotUnderWay(id)).into()),
    }
}

//! Moving away from a store: the record of the move, and the triggers that reject all changes during it.

use milepost_core::error::StoreError;
use milepost_core::port::StoreResult;
use milepost_core::relocation::{Departure, MoveError, MoveId};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::closed::CLOSED;
use crate::clock::now_ms;
use crate::command::Hint;
use crate::error::Failure;
use crate::row;
use crate::store::SqliteStore;

impl SqliteStore {
    /// Returns the record of this store's move to another store, in progress or completed.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn departure(&self) -> StoreResult<Option<Departure>> {
        self.read("departure", departure).await
    }

    /// Marks the store as being moved to the store at `to`. From the commit on, no process of any version can change anything in it; it can
    /// still be read.
    ///
    /// # Errors
    /// [`WorkersLive`](MoveError::WorkersLive) if a worker's lease has not expired; [`Closed`](MoveError::Closed) if the store is already
    /// marked.
    pub async fn depart(&self, id: MoveId, to: &str) -> StoreResult<()> {
        let to = to.to_owned();
        self.write("depart", Hint::NONE, move |tx| depart(tx, id, &to)).await
    }

    /// Records that the move has completed. The store stays readable. Does nothing if that is already recorded.
    ///
    /// # Errors
    /// [`NotUnderWay`](MoveError::NotUnderWay) if the store is not marked with this move.
    pub async fn depart_for_good(&self, id: MoveId) -> StoreResult<()> {
        self.write("depart_for_good", Hint::NONE, move |tx| depart_for_good(tx, id)).await
    }

    /// Removes the mark of a move that has not completed, so that the store can be used as before. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn stay(&self, id: MoveId) -> StoreResult<bool> {
        self.write("stay", Hint::READY, move |tx| stay(tx, id)).await
    }

    /// Returns the active workers and relays (those whose lease has not expired), as text for operators.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn living_workers(&self) -> StoreResult<Vec<String>> {
        self.read("living_workers", living_workers).await
    }
}

pub(crate) fn departure(conn: &Connection) -> Result<Option<Departure>, Failure> {
    let mut statement = conn.prepare_cached(sql!("move/departure"))?;
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
        let words = format!("{CLOSED}are already being moved to {} (move {})", before.to, before.id);
        return Err(StoreError::from(MoveError::Closed { words }).into());
    }
    let workers = living_workers(conn)?;
    if !workers.is_empty() {
        return Err(StoreError::from(MoveError::WorkersLive { workers }).into());
    }
    conn.prepare(sql!("move/begin_move"))?.execute((id.0.as_bytes(), to, now_ms()))?;
    let words = format!(
        "{CLOSED}are being moved to {to} (move {id}); use that store when `milepost move` has finished, or cancel the move with --give-up"
    );
    change_tables(conn, sql!("move/close_tables"), [words])
}

fn depart_for_good(conn: &Connection, id: MoveId) -> Result<(), Failure> {
    let Some(Departure { to, completed_at, .. }) = departure(conn)?.filter(|found| found.id == id) else {
        return Err(StoreError::from(MoveError::NotUnderWay(id)).into());
    };
    if completed_at.is_some() {
        return Ok(());
    }
    conn.prepare(sql!("move/complete_move"))?.execute((id.0.as_bytes(), now_ms()))?;
    change_tables(conn, sql!("move/open_tables"), [])?;
    let words = format!("{CLOSED}were moved to {to} (move {id}); use that store");
    change_tables(conn, sql!("move/close_tables"), [words])
}

fn stay(conn: &Connection, id: MoveId) -> Result<bool, Failure> {
    if conn.prepare(sql!("move/give_up_move"))?.execute([id.0.as_bytes()])? == 0 {
        return Ok(false);
    }
    change_tables(conn, sql!("move/open_tables"), [])?;
    Ok(true)
}

/// Runs the statements that a query returns.
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
    let mut statement = conn.prepare(sql!("move/living_workers"))?;
    let workers = statement.query_map([now_ms()], |row| row.get(0))?;
    Ok(workers.collect::<rusqlite::Result<_>>()?)
}

/// Refuses if the store is not marked with this move.
pub(crate) fn check(conn: &Connection, id: MoveId) -> Result<(), Failure> {
    match departure(conn)? {
        Some(found) if found.id == id => Ok(()),
        _ => Err(StoreError::from(MoveError::NotUnderWay(id)).into()),
    }
}

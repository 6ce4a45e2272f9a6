//! The work that earlier pages of batches deferred.

use milepost_core::batch::due::{Becomes, DueTask};
use milepost_core::sql;
use rusqlite::Connection;

use super::settle::Settler;
use super::wait;
use crate::error::Failure;
use crate::row;

/// How many batches with due tasks are searched for, and how many of them one page processes.
const BATCHES: u32 = 100;
const BATCHES_A_PAGE: usize = 10;

/// Returns whether any work is deferred, without writing.
pub(crate) fn is_needed(conn: &Connection) -> Result<bool, Failure> {
    Ok(wait::is_any_due(conn)?
        || conn.prepare_cached(sql!("batch/any_spread"))?.exists(())?
        || conn.prepare_cached(sql!("batch/due_batches"))?.exists([1])?)
}

/// Processes one page; returns the number of tasks that were processed, and the tasks that are too large for a transaction.
pub(super) fn advance(conn: &Connection) -> Result<(u64, Vec<DueTask>), Failure> {
    let mut settler = Settler::new(conn);
    settler.settle_waits()?;
    if conn.prepare_cached(sql!("batch/any_spread"))?.exists(())? {
        settler.spread_lines()?;
    } else {
        let mut due = conn.prepare_cached(sql!("batch/due_batches"))?;
        let found = due.query_map([BATCHES], |row| row::batch_id(row, 0))?;
        let mut found = found.collect::<rusqlite::Result<Vec<_>>>()?;
        // Each page starts at a random batch, so that a batch with many due tasks does not delay the others. The clock would not do: a busy system
        // wakes processes at multiples of its timer's period.
        fastrand::shuffle(&mut found);
        settler.last_due = *found.first().unwrap_or(&settler.last_due);
        settler.due = found.into_iter().take(BATCHES_A_PAGE).collect();
    }
    settler.finish()?;
    Ok((settler.looked, settler.large))
}

/// Applies the results of tasks that were evaluated outside of a transaction; returns the number that was applied.
pub(super) fn become_all(conn: &Connection, worked_out: &[(DueTask, Becomes)]) -> Result<u64, Failure> {
    let mut settler = Settler::new(conn);
    for (due, becomes) in worked_out {
        settler.become_as_worked_out(due, becomes.clone())?;
    }
    let changed = settler.looked;
    settler.finish()?;
    Ok(changed)
}

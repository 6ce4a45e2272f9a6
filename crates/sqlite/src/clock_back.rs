//! Repair of times that were computed while the clock was ahead.

use milepost_core::clock::{self, DELETION_WAIT_MS, Noted, OF_DELETION, OF_PUBLISHERS, OF_WORKERS};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::now_ms;
use crate::error::Failure;

/// Each moves back one kind of times: those that jobs and retention wait for.
const OF_JOBS: [&str; 3] =
    [sql!("clock/move_turn"), sql!("clock/move_kind_rates"), sql!("clock/move_group_rates")];
/// Those that publishers wait for.
const OF_RELAY: [&str; 2] = [sql!("clock/move_publishers"), sql!("clock/move_parked")];

/// Returns what to do with the time that workers have noted.
pub(crate) fn noted(conn: &Connection) -> Result<Noted, Failure> {
    noted_as(conn, OF_WORKERS)
}

fn noted_as(conn: &Connection, name: &str) -> Result<Noted, Failure> {
    let seen = conn.prepare_cached(sql!("clock/seen"))?.query_row((now_ms(), name), |row| row.get(0));
    Ok(Noted::of(seen.optional()?))
}

/// Returns whether retention may delete by the clock.
pub(crate) fn may_delete(conn: &Connection) -> Result<bool, Failure> {
    let names = (now_ms(), OF_WORKERS, OF_PUBLISHERS, OF_DELETION);
    let (noted_ms, waits) =
        conn.prepare_cached(sql!("clock/steady"))?.query_row(names, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(clock::may_delete(noted_ms, waits))
}

/// Notes the time for workers. If the clock was set back since, moves back the times that retention and rates wait for; those are never reached
/// otherwise before the clock has been ahead once more.
pub(crate) fn follow(conn: &Connection) -> Result<(), Failure> {
    follow_as(conn, OF_WORKERS, &OF_JOBS)
}

/// As [`follow`], for publishers: their leases, and the next attempts of parked events.
pub(crate) fn follow_publishers(conn: &Connection) -> Result<(), Failure> {
    follow_as(conn, OF_PUBLISHERS, &OF_RELAY)
}

fn follow_as(conn: &Connection, name: &str, moves: &[&str]) -> Result<(), Failure> {
    let (noted, now_ms) = (noted_as(conn, name)?, now_ms());
    if noted == Noted::Recently {
        return Ok(());
    }
    conn.prepare_cached(sql!("clock/note"))?.execute((now_ms, name))?;
    if let Noted::Jumped(_) = noted {
        conn.prepare_cached(sql!("clock/note"))?.execute((now_ms + DELETION_WAIT_MS, OF_DELETION))?;
        tracing::info!(
            "no worker ran for a day, or the clock was put forward; retention waits for ten minutes"
        );
    }
    if let Noted::Ahead(back_ms) = noted {
        for sql in moves {
            conn.prepare(sql)?.execute([now_ms, back_ms])?;
        }
        tracing::warn!(back_ms, "the clock was set back; times computed before are moved back, too");
    }
    Ok(())
}

//! Groups: a job that has one runs only while it owns the group's slot.

use milepost_core::ident::{JobId, RunToken};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension};

use crate::change::{Change, Recorder};
use crate::failure::Failure;
use crate::query;
use crate::row::{self, Id};

/// Takes the slot for a job, if it is free.
pub(crate) fn take_slot(conn: &Connection, group: &str, job: &JobId) -> rusqlite::Result<bool> {
    let taken = conn.prepare_cached(query::TAKE_SLOT)?.execute((group, Id(job)))?;
    Ok(taken == 1)
}

/// Gives the slot that a job held to the next that waits for it.
pub(crate) fn hand_over(conn: &Connection, group: &str, holder: &JobId, now_ms: i64) -> Result<(), Failure> {
    let freed = conn
        .prepare_cached(query::FREE_SLOT)?
        .execute((group, Id(holder)))?;
    if freed == 1 {
        fill(conn, group, now_ms)?;
    }
    Ok(())
}

/// Gives every free slot to the next that waits for it; answers how many found one.
pub(crate) fn fill_all(conn: &Connection, groups: &[String], now_ms: i64) -> Result<u64, Failure> {
    let mut filled = 0;
    for group in groups {
        filled += u64::from(fill(conn, group, now_ms)?);
    }
    Ok(filled)
}

/// Groups that somebody waits for and nobody holds.
pub(crate) fn unfilled(conn: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare_cached(query::UNFILLED_GROUPS)?;
    let groups = statement.query_map((), |row| row.get(0))?;
    Ok(groups.collect::<rusqlite::Result<_>>()?)
}

struct Waiter {
    job: JobId,
    due_at_ms: i64,
    attempt: u32,
    token: RunToken,
}

fn fill(conn: &Connection, group: &str, now_ms: i64) -> Result<bool, Failure> {
    let waiter = conn
        .prepare_cached(query::NEXT_WAITING)?
        .query_row([group], |row| {
            Ok(Waiter {
                job: row::job_id(row, 0)?,
                due_at_ms: row.get::<_, Option<i64>>(1)?.unwrap_or(now_ms),
                attempt: row.get(2)?,
                token: row::token(row, 3)?,
            })
        })
        .optional()?;
    let Some(waiter) = waiter else {
        return Ok(false);
    };
    if !take_slot(conn, group, &waiter.job)? {
        return Ok(false);
    }
    let ready_at_ms = waiter.due_at_ms.max(now_ms);
    conn.prepare_cached(query::REST)?.execute((
        Id(&waiter.job),
        JobState::Pending.as_str(),
        ready_at_ms,
        None::<i64>,
        waiter.attempt,
        None::<u32>,
    ))?;
    Recorder::new(conn)?.record(&Change {
        job: &waiter.job,
        at_ms: now_ms,
        verb: Verb::Release,
        from: Some(JobState::Blocked),
        to: JobState::Pending,
        attempt: waiter.attempt,
        token: waiter.token,
        worker: None,
        ready_at_ms: Some(ready_at_ms),
        failure: None,
        note: None,
    })?;
    Ok(true)
}

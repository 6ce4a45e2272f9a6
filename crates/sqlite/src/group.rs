//! Groups: a job that has one runs only while it owns a slot of it.

use milepost_core::ident::{JobId, RunToken};
use milepost_core::limit::{Rate, SLOTS_DEFAULT, class_of};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension};

use crate::change::{Change, Recorder};
use crate::clock::micros;
use crate::error::Failure;
use crate::row::{self, Id};

/// The shortest time until the next check of a group.
const LOOK_AGAIN_US: i64 = 1000;

/// The limits of one group.
pub(crate) struct GroupLimit {
    /// `None`: no limit.
    pub(crate) slots: Option<u32>,
    pub(crate) rate: Option<Rate>,
}

/// Returns the limit of a group: its own, otherwise that of its class, otherwise one slot.
pub(crate) fn limit_of(conn: &Connection, group: &str) -> rusqlite::Result<GroupLimit> {
    let mut statement = conn.prepare_cached(sql!("group_limit"))?;
    let mut named = |name: &str| {
        let limit = statement.query_row([name], |row| {
            let rate = row::rate_opt(row, 1)?;
            Ok(GroupLimit { slots: row.get(0)?, rate })
        });
        limit.optional()
    };
    if let Some(own) = named(group)? {
        return Ok(own);
    }
    let classes = class_of(group).map(|class| named(&class)).transpose()?.flatten();
    Ok(classes.unwrap_or(GroupLimit { slots: Some(SLOTS_DEFAULT), rate: None }))
}

/// Returns when the bucket of a group is full; 0 if it was not used recently.
pub(crate) fn full_at_us(conn: &Connection, group: &str) -> rusqlite::Result<i64> {
    let found = conn.prepare_cached(sql!("group_bucket"))?.query_row([group], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(0))
}

/// Takes a slot for a job if the job is due, a slot is free, the rate allows it and no job waits before it. Otherwise a later check of the
/// group is planned if necessary.
pub(crate) fn admit(
    conn: &Connection,
    group: &str,
    job: &JobId,
    due_at_ms: i64,
    now_ms: i64,
) -> rusqlite::Result<bool> {
    if due_at_ms > now_ms {
        return Ok(false);
    }
    let limit = limit_of(conn, group)?;
    let Some(rate) = limit.rate else {
        return take_slot(conn, group, job, limit.slots);
    };
    if conn.prepare_cached(sql!("next_waiting"))?.exists([group])? {
        return Ok(false);
    }
    let now_us = micros(now_ms);
    let full_at_us = full_at_us(conn, group)?;
    if rate.allows(full_at_us, now_us) == 0 {
        let look_at_us = look_again_us(rate, full_at_us, now_us);
        keep_bucket(conn, group, full_at_us, Some(look_at_us))?;
        return Ok(false);
    }
    let taken = take_slot(conn, group, job, limit.slots)?;
    if taken {
        let full_at_us = rate.debit(full_at_us, now_us, 1);
        keep_bucket(conn, group, full_at_us, Some(full_at_us))?;
    }
    Ok(taken)
}

/// Takes a free slot for a job that an operator releases. The start is counted against the rate, but not limited by it.
pub(crate) fn force(conn: &Connection, group: &str, job: &JobId, now_ms: i64) -> rusqlite::Result<bool> {
    let taken = take_slot(conn, group, job, limit_of(conn, group)?.slots)?;
    if taken {
        count_start(conn, group, now_ms)?;
    }
    Ok(taken)
}

/// Counts a start of a job that keeps its slot, if the group has a rate. The bucket may become negative.
pub(crate) fn count_start(conn: &Connection, group: &str, now_ms: i64) -> rusqlite::Result<()> {
    if let Some(rate) = limit_of(conn, group)?.rate {
        let full_at_us = rate.debit(full_at_us(conn, group)?, micros(now_ms), 1);
        conn.prepare_cached(sql!("debit_group_bucket"))?.execute((group, full_at_us))?;
    }
    Ok(())
}

fn take_slot(conn: &Connection, group: &str, job: &JobId, slots: Option<u32>) -> rusqlite::Result<bool> {
    let taken = conn.prepare_cached(sql!("take_slot"))?.execute((group, Id(job), slots))?;
    Ok(taken == 1)
}

fn keep_bucket(
    conn: &Connection,
    group: &str,
    full_at_us: i64,
    look_at_us: Option<i64>,
) -> rusqlite::Result<()> {
    conn.prepare_cached(sql!("keep_group_bucket"))?.execute((group, full_at_us, look_at_us))?;
    Ok(())
}

/// Returns when a group has tokens again, plus a small margin so that they are certainly available.
fn look_again_us(rate: Rate, full_at_us: i64, now_us: i64) -> i64 {
    (rate.opens_at_us(full_at_us) + 2).max(now_us + LOOK_AGAIN_US)
}

/// Assigns the slot that a job held to the next waiting job.
pub(crate) fn hand_over(conn: &Connection, group: &str, holder: &JobId, now_ms: i64) -> Result<(), Failure> {
    let freed = conn.prepare_cached(sql!("free_slot"))?.execute([Id(holder)])?;
    if freed == 1 {
        fill(conn, group, now_ms)?;
    }
    Ok(())
}

/// Assigns every free slot to the next waiting job; returns how many were assigned.
pub(crate) fn fill_all(conn: &Connection, groups: &[String], now_ms: i64) -> Result<u64, Failure> {
    let mut filled = 0;
    for group in groups {
        filled += u64::from(fill(conn, group, now_ms)?);
    }
    Ok(filled)
}

/// Returns groups with waiting jobs and a free slot, and groups whose tokens are available again.
pub(crate) fn unfilled(conn: &Connection, now_ms: i64) -> Result<Vec<String>, Failure> {
    let mut statement = conn.prepare_cached(sql!("unfilled_groups"))?;
    let groups = statement.query_map((), |row| row.get(0))?;
    let mut groups = groups.collect::<rusqlite::Result<Vec<String>>>()?;
    groups.extend(due(conn, now_ms)?);
    Ok(groups)
}

fn due(conn: &Connection, now_ms: i64) -> rusqlite::Result<Vec<String>> {
    conn.prepare_cached(sql!("due_groups"))?.query_map([micros(now_ms)], |row| row.get(0))?.collect()
}

/// Applies due times and rates: jobs whose time has come start to wait for a slot, as if they were enqueued now, and groups whose tokens
/// are available again are filled.
pub(crate) fn pace(conn: &Connection, now_ms: i64) -> Result<(), Failure> {
    let mut groups: Vec<String> = conn
        .prepare_cached(sql!("begin_to_wait"))?
        .query_map([now_ms], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    groups.sort_unstable();
    groups.dedup();
    groups.extend(due(conn, now_ms)?);
    fill_all(conn, &groups, now_ms).map(drop)
}

struct Waiter {
    job: JobId,
    due_at_ms: i64,
    attempt: u32,
    token: RunToken,
}

/// Assigns free slots of a group to waiting jobs, as far as its rate allows; returns how many.
fn fill(conn: &Connection, group: &str, now_ms: i64) -> Result<u32, Failure> {
    let limit = limit_of(conn, group)?;
    let now_us = micros(now_ms);
    let full_at_us = if limit.rate.is_some() { full_at_us(conn, group)? } else { 0 };
    let allowed = limit.rate.map_or(u32::MAX, |rate| rate.allows(full_at_us, now_us));
    let mut released = 0;
    let mut waiter = next_waiting(conn, group, now_ms)?;
    let mut full = false;
    while released < allowed
        && let Some(first) = &waiter
    {
        full = !take_slot(conn, group, &first.job, limit.slots)?;
        if full {
            break;
        }
        release(conn, first, now_ms)?;
        released += 1;
        waiter = next_waiting(conn, group, now_ms)?;
    }
    match limit.rate {
        Some(rate) => {
            let full_at_us = if released > 0 { rate.debit(full_at_us, now_us, released) } else { full_at_us };
            let look_at_us = match waiter {
                // The end of a holder triggers the next check.
                Some(_) if full => None,
                Some(_) => Some(look_again_us(rate, full_at_us, now_us)),
                None => Some(full_at_us),
            };
            if waiter.is_none() && full_at_us <= now_us {
                forget_bucket(conn, group)?;
            } else {
                keep_bucket(conn, group, full_at_us, look_at_us)?;
            }
        }
        None => forget_bucket(conn, group)?,
    }
    Ok(released)
}

fn forget_bucket(conn: &Connection, group: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql!("forget_group_bucket"))?.execute([group])?;
    Ok(())
}

fn next_waiting(conn: &Connection, group: &str, now_ms: i64) -> rusqlite::Result<Option<Waiter>> {
    conn.prepare_cached(sql!("next_waiting"))?
        .query_row([group], |row| {
            Ok(Waiter {
                job: row::job_id(row, 0)?,
                due_at_ms: row.get::<_, Option<i64>>(1)?.unwrap_or(now_ms),
                attempt: row.get(2)?,
                token: row::token(row, 3)?,
            })
        })
        .optional()
}

/// Moves a job that got a slot into the wait for a worker.
fn release(conn: &Connection, waiter: &Waiter, now_ms: i64) -> rusqlite::Result<()> {
    let ready_at_ms = waiter.due_at_ms.max(now_ms);
    conn.prepare_cached(sql!("rest"))?.execute((
        Id(&waiter.job),
        JobState::Pending.as_str(),
        ready_at_ms,
        None::<i64>,
        waiter.attempt,
        None::<u32>,
        now_ms,
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
    })
}

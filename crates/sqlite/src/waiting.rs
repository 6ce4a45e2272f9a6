//! The reason why a waiting job does not run now.

use jiff::Timestamp;
use milepost_core::limit::{Rate, Target};
use milepost_core::listing::{JobRow, Waiting};
use milepost_core::sql;
use milepost_core::state::JobState;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::micros;
use crate::error::Failure;
use crate::group::{full_at_us, limit_of};
use crate::row::{self, Id};

pub(crate) fn waiting_for(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Waiting>, Failure> {
    match job.state {
        JobState::Blocked => group(conn, job, now_ms),
        JobState::Pending | JobState::RetryWait => turn(conn, job, now_ms).map(Some),
        _ => Ok(None),
    }
}

fn group(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Waiting>, Failure> {
    let Some(group) = &job.group else {
        return Ok(None);
    };
    let due_at_ms: Option<i64> = conn
        .prepare_cached(sql!("standing"))?
        .query_row([Id(&job.id)], |row| row.get(6))
        .optional()?
        .flatten();
    if let Some(due_at_ms) = due_at_ms.filter(|&at_ms| at_ms > now_ms) {
        return Ok(Some(Waiting::Time { until: time_of(micros(due_at_ms)) }));
    }
    let taken: u32 = conn.prepare_cached(sql!("slots_taken"))?.query_row([group], |row| row.get(0))?;
    let limit = limit_of(conn, group)?;
    if let Some(rate) = limit.rate
        && limit.slots.is_none_or(|slots| taken < slots)
    {
        let opens_at_us = rate.opens_at_us(full_at_us(conn, group)?).max(micros(now_ms));
        let target = Target::Group(group.clone());
        return Ok(Some(Waiting::Rate { target, until: time_of(opens_at_us) }));
    }
    let holder =
        conn.prepare_cached(sql!("slot_holder"))?.query_row([group], |row| row::job_id(row, 0)).optional()?;
    Ok(Some(Waiting::Group { group: group.clone(), holder, taken }))
}

/// Converts a computed time; times that cannot be represented become the latest one.
fn time_of(at_us: i64) -> Timestamp {
    Timestamp::from_microsecond(at_us).unwrap_or(Timestamp::MAX)
}

fn turn(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Waiting, Failure> {
    let is_later = |at: &Timestamp| at.as_millisecond() > now_ms;
    if let Some(until) = job.ready_at.filter(is_later) {
        return Ok(Waiting::Time { until });
    }
    let paused: bool =
        conn.prepare_cached(sql!("queue_paused"))?.query_row([&job.queue], |row| row.get(0))?;
    if paused {
        return Ok(Waiting::PausedQueue { queue: job.queue.clone() });
    }
    let served: bool = conn
        .prepare_cached(sql!("is_served"))?
        .query_row((&job.kind, &job.queue, now_ms), |row| row.get(0))?;
    if !served {
        return Ok(Waiting::NoWorker { kind: job.kind.clone(), queue: job.queue.clone() });
    }
    Ok(rate(conn, job, now_ms)?.unwrap_or(Waiting::Turn))
}

/// Returns the wait for the rate of the job's kind, if the rate currently allows no start.
fn rate(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Waiting>, Failure> {
    let limit = conn
        .prepare_cached(sql!("kind_limit"))?
        .query_row([&job.kind], |row| Ok((Rate::new(row.get(0)?, row.get(1)?), row.get(2)?)))
        .optional()?;
    let held = limit.filter(|&(rate, full_at_us)| rate.allows(full_at_us, micros(now_ms)) == 0);
    Ok(held.map(|(rate, full_at_us)| Waiting::Rate {
        target: Target::Kind(job.kind.clone()),
        until: time_of(rate.opens_at_us(full_at_us)),
    }))
}

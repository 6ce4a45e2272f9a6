//! The reason why a waiting job does not run now.

use jiff::Timestamp;
use milepost_core::limit::Rate;
use milepost_core::listing::{JobRow, WaitFacts, Waiting};
use milepost_core::sql;
use milepost_core::state::JobState;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::micros;
use crate::error::Failure;
use crate::group::{Bucket, limit_of};
use crate::row::{self, Id};

pub(crate) fn waiting_for(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Waiting>, Failure> {
    let facts = match job.state {
        JobState::Blocked => of_group(conn, job, now_ms)?,
        JobState::Pending | JobState::RetryWait => of_queue(conn, job, now_ms)?,
        _ => WaitFacts::default(),
    };
    Ok(Waiting::of(job, facts))
}

/// Reads what a blocked job waits for.
fn of_group(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<WaitFacts, Failure> {
    let Some(group) = &job.group else {
        return Ok(WaitFacts::default());
    };
    let due_at_ms: Option<i64> = conn
        .prepare_cached(sql!("live_state"))?
        .query_row([Id(&job.id)], |row| row.get(6))
        .optional()?
        .flatten();
    let group_taken: u32 = conn.prepare_cached(sql!("slots_taken"))?.query_row([group], |row| row.get(0))?;
    let limit = limit_of(conn, group)?;
    let rate = limit.rate.filter(|_| limit.slots.is_none_or(|slots| group_taken < slots));
    let now_us = micros(now_ms);
    let (group_opens_at, group_reserved) = match rate {
        Some(rate) => {
            let bucket = Bucket::read(conn, group)?;
            let opens_at_us = rate.opens_at_us(bucket.full_without_reserved_us(rate, now_us));
            (Some(time_of(opens_at_us.max(now_us))), bucket.claims_first(rate))
        }
        None => (None, 0),
    };
    let group_holder =
        conn.prepare_cached(sql!("slot_holder"))?.query_row([group], |row| row::job_id(row, 0)).optional()?;
    let due_at = due_at_ms.filter(|&at_ms| at_ms > now_ms).map(|at_ms| time_of(micros(at_ms)));
    Ok(WaitFacts {
        due_at,
        group_opens_at,
        group_reserved,
        group_holder,
        group_taken,
        ..WaitFacts::default()
    })
}

/// Converts a computed time; times that cannot be represented become the latest one.
fn time_of(at_us: i64) -> Timestamp {
    Timestamp::from_microsecond(at_us).unwrap_or(Timestamp::MAX)
}

/// Reads what a job waits for that may be claimed at its time.
fn of_queue(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<WaitFacts, Failure> {
    let queue_paused =
        conn.prepare_cached(sql!("queue_paused"))?.query_row([&job.queue], |row| row.get(0))?;
    let served = conn
        .prepare_cached(sql!("is_served"))?
        .query_row((&job.kind, &job.queue, now_ms), |row| row.get(0))?;
    Ok(WaitFacts {
        due_at: job.ready_at.filter(|at| at.as_millisecond() > now_ms),
        queue_paused,
        served,
        kind_opens_at: kind_opens_at(conn, job, now_ms)?,
        ..WaitFacts::default()
    })
}

/// Returns the time at which the rate of the job's kind allows the next start, if it allows none now.
fn kind_opens_at(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Timestamp>, Failure> {
    let limit = conn
        .prepare_cached(sql!("kind_limit"))?
        .query_row([&job.kind], |row| Ok((Rate::new(row.get(0)?, row.get(1)?), row.get(2)?)))
        .optional()?;
    let held = limit.filter(|&(rate, full_at_us)| rate.allows(full_at_us, micros(now_ms)) == 0);
    Ok(held.map(|(rate, full_at_us)| time_of(rate.opens_at_us(full_at_us))))
}

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

/// The bucket of a group with a rate.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bucket {
    /// When it is full; 0 if it was not used recently.
    full_at_us: i64,
    /// The number of jobs that got their slots by tokens and have not started. Each start takes its token.
    reserved: u32,
}

impl Bucket {
    /// Reads it as it was at the last check.
    pub(crate) fn read(conn: &Connection, group: &str) -> rusqlite::Result<Self> {
        let mut statement = conn.prepare_cached(sql!("group_bucket"))?;
        let found = statement.query_row([group], |row| Ok(Self::new(row.get(0)?, row.get(1)?)));
        Ok(found.optional()?.unwrap_or_default())
    }

    pub(crate) const fn new(full_at_us: i64, reserved: u32) -> Self {
        Self { full_at_us, reserved }
    }

    /// Reads it, and debits the reserved starts that have happened since the last check, or cannot happen any more.
    fn count_starts(conn: &Connection, group: &str, rate: Rate, now_us: i64) -> rusqlite::Result<Self> {
        let Self { full_at_us, reserved } = Self::read(conn, group)?;
        let left: u32 = conn.prepare_cached(sql!("reserved_starts"))?.query_row([group], |row| row.get(0))?;
        let gone = reserved.saturating_sub(left);
        let full_at_us = if gone > 0 { rate.debit(full_at_us, now_us, gone) } else { full_at_us };
        Ok(Self { full_at_us, reserved: left })
    }

    /// Returns when it would be full if the reserved starts happened now.
    pub(crate) fn full_without_reserved_us(self, rate: Rate, now_us: i64) -> i64 {
        if self.reserved > 0 { rate.debit(self.full_at_us, now_us, self.reserved) } else { self.full_at_us }
    }

    /// Returns how many jobs may get a slot.
    fn allows(self, rate: Rate, now_us: i64) -> u32 {
        rate.allows(self.full_without_reserved_us(rate, now_us), now_us)
    }

    /// Returns when it contains unreserved tokens again, plus a small margin so that they are certainly available. `None`: after a claim, which
    /// triggers a check.
    fn look_again_us(self, rate: Rate, now_us: i64) -> Option<i64> {
        let opens_at_us = rate.opens_at_us(self.full_without_reserved_us(rate, now_us));
        (self.claims_first(rate) == 0).then(|| (opens_at_us + 2).max(now_us + LOOK_AGAIN_US))
    }

    /// Returns the number of jobs that workers have to claim before tokens are unreserved again.
    pub(crate) fn claims_first(self, rate: Rate) -> u32 {
        if self.reserved.saturating_add(rate.portion()) > rate.burst { self.reserved } else { 0 }
    }

    fn keep(self, conn: &Connection, group: &str, look_at_us: Option<i64>) -> rusqlite::Result<()> {
        let bucket = (group, self.full_at_us, self.reserved, look_at_us);
        conn.prepare_cached(sql!("keep_group_bucket"))?.execute(bucket)?;
        Ok(())
    }
}

/// The answer of a group to a new job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It has no slot yet.
    Waits,
    /// It has a slot.
    Free,
    /// It has a slot and a reserved token.
    Reserved,
}

/// Takes a slot for a job if the job is due, a slot is free, the rate allows it and no job waits before it. Otherwise a later check of the
/// group is planned if necessary.
pub(crate) fn admit(
    conn: &Connection,
    group: &str,
    job: &JobId,
    due_at_ms: i64,
    now_ms: i64,
) -> rusqlite::Result<Admission> {
    if due_at_ms > now_ms {
        return Ok(Admission::Waits);
    }
    let limit = limit_of(conn, group)?;
    let Some(rate) = limit.rate else {
        let taken = take_slot(conn, group, job, limit.slots)?;
        return Ok(if taken { Admission::Free } else { Admission::Waits });
    };
    if conn.prepare_cached(sql!("next_waiting"))?.exists([group])? {
        return Ok(Admission::Waits);
    }
    let now_us = micros(now_ms);
    let bucket = Bucket::count_starts(conn, group, rate, now_us)?;
    if bucket.allows(rate, now_us) == 0 {
        bucket.keep(conn, group, bucket.look_again_us(rate, now_us))?;
        return Ok(Admission::Waits);
    }
    if !take_slot(conn, group, job, limit.slots)? {
        return Ok(Admission::Waits);
    }
    Bucket { reserved: bucket.reserved + 1, ..bucket }.keep(conn, group, None)?;
    Ok(Admission::Reserved)
}

/// Takes a free slot for a job that an operator releases. The start is counted against the rate, but not limited by it.
pub(crate) fn force(conn: &Connection, group: &str, job: &JobId, now_ms: i64) -> rusqlite::Result<Admission> {
    if !take_slot(conn, group, job, limit_of(conn, group)?.slots)? {
        return Ok(Admission::Waits);
    }
    count_start(conn, group, now_ms)?;
    Ok(Admission::Free)
}

/// Counts a start of a job that keeps its slot, if the group has a rate. The bucket may become negative.
pub(crate) fn count_start(conn: &Connection, group: &str, now_ms: i64) -> rusqlite::Result<()> {
    if let Some(rate) = limit_of(conn, group)?.rate {
        let full_at_us = rate.debit(Bucket::read(conn, group)?.full_at_us, micros(now_ms), 1);
        conn.prepare_cached(sql!("debit_group_bucket"))?.execute((group, full_at_us))?;
    }
    Ok(())
}

/// Notes that a token is reserved for the start of a job.
pub(crate) fn reserve_start(conn: &Connection, job: &JobId) -> rusqlite::Result<()> {
    conn.prepare_cached(sql!("reserve_start"))?.execute([Id(job)])?;
    Ok(())
}

fn take_slot(conn: &Connection, group: &str, job: &JobId, slots: Option<u32>) -> rusqlite::Result<bool> {
    let taken = conn.prepare_cached(sql!("take_slot"))?.execute((group, Id(job), slots))?;
    Ok(taken == 1)
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
    let rated = match limit.rate {
        Some(rate) => Some((rate, Bucket::count_starts(conn, group, rate, now_us)?)),
        None => None,
    };
    let allowed = rated.map_or(u32::MAX, |(rate, bucket)| bucket.allows(rate, now_us));
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
        if rated.is_some() {
            reserve_start(conn, &first.job)?;
        }
        released += 1;
        waiter = next_waiting(conn, group, now_ms)?;
    }
    let Some((rate, bucket)) = rated else {
        forget_bucket(conn, group)?;
        return Ok(released);
    };
    let bucket = Bucket { reserved: bucket.reserved.saturating_add(released), ..bucket };
    let look_at_us = match waiter {
        // The end of a holder triggers the next check.
        Some(_) if full => None,
        Some(_) => bucket.look_again_us(rate, now_us),
        None => (bucket.reserved == 0).then_some(bucket.full_at_us),
    };
    if waiter.is_none() && bucket.reserved == 0 && bucket.full_at_us <= now_us {
        forget_bucket(conn, group)?;
    } else {
        bucket.keep(conn, group, look_at_us)?;
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

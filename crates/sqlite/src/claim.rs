//! Claims of ready jobs by workers.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use milepost_core::claim::{Claim, ClaimedJob};
use milepost_core::error::StoreError;
use milepost_core::finish::{Finish, unreadable};
use milepost_core::ident::{Run, RunToken, WorkerId};
use milepost_core::job::Priority;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, Row};

use crate::change::{Change, Recorder};
use crate::clock::now_ms;
use crate::error::Failure;
use crate::finish::finish_many;
use crate::group;
use crate::limit::Gates;
use crate::row::{self, Id};

/// Claims up to `limit` ready jobs.
pub(crate) fn claim(conn: &Connection, claim: &Claim) -> Result<Vec<ClaimedJob>, Failure> {
    let now_ms = now_ms();
    let alive = conn.prepare_cached(sql!("worker_alive"))?.exists((claim.worker.0, now_ms))?;
    if !alive {
        return Err(StoreError::WorkerLost(claim.worker).into());
    }
    group::pace(conn, now_ms)?;
    let lanes = lanes(conn, claim)?;
    let mut taker = Taker::new(conn, claim, now_ms)?;
    for priority in Priority::ALL {
        taker.take_in_turns(&lanes, priority)?;
    }
    taker.gates.close(conn, now_ms)?;
    let Taker { taken, unreadable, reserved, .. } = taker;
    group::fill_all(conn, &reserved.into_iter().collect::<Vec<_>>(), now_ms)?;
    if !unreadable.is_empty() {
        finish_many(conn, claim.worker, &unreadable)?;
    }
    Ok(taken)
}

/// Returns the pairs of queue and kind that the worker serves and that are not paused; each claim starts with a different one.
fn lanes<'a>(conn: &Connection, claim: &'a Claim) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let paused = conn
        .prepare_cached(sql!("paused_queues"))?
        .query_map((), |row| row.get(0))?
        .collect::<rusqlite::Result<HashSet<String>>>()?;
    let mut lanes: Vec<_> = claim
        .kinds
        .iter()
        .flat_map(|kind| claim.queues.iter().map(move |queue| (queue.as_str(), kind.as_str())))
        .filter(|(queue, _)| !paused.contains(*queue))
        .collect();
    if !lanes.is_empty() {
        let turns = usize::try_from(claim.claim_id.unsigned_abs()).unwrap_or(0) % lanes.len();
        lanes.rotate_left(turns);
    }
    Ok(lanes)
}

struct Taker<'conn, 'claim> {
    claim: &'claim Claim,
    now_ms: i64,
    ready: CachedStatement<'conn>,
    take: CachedStatement<'conn>,
    recorder: Recorder<'conn>,
    gates: Gates,
    taken: Vec<ClaimedJob>,
    /// The ends of claimed runs whose rows cannot be read, because another program has written them.
    unreadable: Vec<Finish>,
    /// The groups whose rates count the starts of these jobs.
    reserved: BTreeSet<String>,
}

/// A ready job as it is read from its lane, before it is claimed.
struct Ready {
    job: ClaimedJob,
    state: JobState,
    /// Whether a token of its group is reserved for it.
    reserved: bool,
}

impl<'conn, 'claim> Taker<'conn, 'claim> {
    fn new(conn: &'conn Connection, claim: &'claim Claim, now_ms: i64) -> rusqlite::Result<Self> {
        Ok(Self {
            claim,
            now_ms,
            ready: conn.prepare_cached(sql!("ready"))?,
            take: conn.prepare_cached(sql!("claim"))?,
            recorder: Recorder::new(conn)?,
            gates: Gates::load(conn, now_ms)?,
            taken: Vec::new(),
            unreadable: Vec::new(),
            reserved: BTreeSet::new(),
        })
    }

    fn wanted(&self) -> usize {
        usize::try_from(self.claim.limit).map_or(usize::MAX, |limit| limit.saturating_sub(self.taken.len()))
    }

    /// Claims an equal share from every lane; shares that are not used go to the other lanes.
    fn take_in_turns(&mut self, lanes: &[(&str, &str)], priority: Priority) -> Result<(), Failure> {
        let mut open = lanes.to_vec();
        while !open.is_empty() && self.wanted() > 0 {
            let share = self.wanted().div_ceil(open.len());
            let mut still_open = Vec::new();
            for lane in open {
                let want = share.min(self.wanted());
                if want == 0 {
                    return Ok(());
                }
                let allowed = self.gates.allowed(lane.1, want);
                if allowed > 0 && self.take_from(lane, priority, allowed)? == want {
                    still_open.push(lane);
                }
            }
            open = still_open;
        }
        Ok(())
    }

    fn take_from(&mut self, lane: (&str, &str), priority: Priority, want: usize) -> Result<usize, Failure> {
        let limit = i64::try_from(want).unwrap_or(i64::MAX);
        let mut rows = self.ready.query((lane.0, lane.1, priority.get(), self.now_ms, limit))?;
        let (mut ready, mut unreadable) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            match read_ready(row, self.claim, lane, priority, self.now_ms) {
                Ok(job) => ready.push(job),
                Err(error) => unreadable.push(UnreadableRow::of(row, error)?),
            }
        }
        drop(rows);
        let found = ready.len() + unreadable.len();
        self.gates.took(lane.1, found);
        for ready in ready {
            self.take(ready)?;
        }
        for row in unreadable {
            self.give_up(row)?;
        }
        Ok(found)
    }

    /// Claims a job whose row cannot be read, so that it can fail.
    fn give_up(&mut self, row: UnreadableRow) -> rusqlite::Result<()> {
        let UnreadableRow { run, attempt, from, error } = row;
        tracing::error!(job = %run.job, %error, "a job cannot be decoded; it is failed");
        self.start(&run, attempt, from)?;
        self.unreadable.push(unreadable(run, &error));
        Ok(())
    }

    fn take(&mut self, ready: Ready) -> rusqlite::Result<()> {
        let Ready { job, state, reserved } = ready;
        self.start(&job.run, job.attempt, state)?;
        if reserved && let Some(group) = &job.group {
            self.reserved.insert(group.clone());
        }
        self.taken.push(job);
        Ok(())
    }

    /// Assigns a job in state `from` to the worker.
    fn start(&mut self, run: &Run, attempt: u32, from: JobState) -> rusqlite::Result<()> {
        let WorkerId(worker) = self.claim.worker;
        self.take.execute((Id(&run.job), attempt, run.token.0, worker, self.claim.claim_id, self.now_ms))?;
        self.recorder.record(&Change {
            job: &run.job,
            at_ms: self.now_ms,
            verb: Verb::Claim,
            from: Some(from),
            to: JobState::Running,
            attempt,
            token: run.token,
            worker: Some(self.claim.worker),
            ready_at_ms: None,
            failure: None,
            note: None,
        })
    }
}

/// A ready job whose row cannot be read completely.
struct UnreadableRow {
    /// The run as it will be after the claim. A number beyond the limits of a token becomes the highest one.
    run: Run,
    attempt: u32,
    from: JobState,
    error: rusqlite::Error,
}

impl UnreadableRow {
    fn of(row: &Row<'_>, error: rusqlite::Error) -> rusqlite::Result<Self> {
        let number = |column| row.get::<_, i64>(column).unwrap_or_default().clamp(0, i64::from(i32::MAX) - 1);
        let [attempt, token] = [number(2), number(4)].map(|number| number + 1);
        let token = RunToken(i32::try_from(token).unwrap_or(i32::MAX));
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        let from = row::word(row, 1).unwrap_or(JobState::Pending);
        Ok(Self { run: Run { job: row::job_id(row, 0)?, token }, attempt, from, error })
    }
}

/// Reads a ready job as it will be after the claim, with attempt and token incremented.
fn read_ready(
    row: &Row<'_>,
    claim: &Claim,
    lane: (&str, &str),
    priority: Priority,
    now_ms: i64,
) -> rusqlite::Result<Ready> {
    let RunToken(token) = row::token(row, 4)?;
    let attempt: u32 = row.get(2)?;
    let ready_at_ms: i64 = row.get(12)?;
    let job = ClaimedJob {
        run: Run { job: row::job_id(row, 0)?, token: RunToken(token + 1) },
        claim_id: claim.claim_id,
        kind: lane.1.to_owned(),
        queue: lane.0.to_owned(),
        payload: row.get(6)?,
        attempt: attempt + 1,
        max_attempts: row.get(3)?,
        priority,
        group: row.get(5)?,
        timeout: row::duration_opt(row, 7)?,
        created_at: row::time(row, 8)?,
        nominal_at: row::time_opt(row, 9)?,
        batch: row::batch_opt(row, 10)?,
        traceparent: row::trace_opt(row, 11)?,
        waited: Some(Duration::from_millis(now_ms.saturating_sub(ready_at_ms).max(0).unsigned_abs())),
    };
    Ok(Ready { job, state: row::word(row, 1)?, reserved: row.get(13)? })
}

/// Returns the jobs that a worker holds according to the store, and the ends of those whose rows cannot be read.
pub(crate) fn held(conn: &Connection, worker: WorkerId) -> Result<(Vec<ClaimedJob>, Vec<Finish>), Failure> {
    let mut statement = conn.prepare_cached(sql!("held"))?;
    let (mut rows, mut held, mut failed) = (statement.query([worker.0])?, Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        match read_held(row) {
            Ok(job) => held.push(job),
            Err(error) => match (row::job_id(row, 0), row::token(row, 1)) {
                (Ok(job), Ok(token)) => failed.push(unreadable(Run { job, token }, &error)),
                _ => tracing::error!(%error, "a run without a valid id and token cannot be ended"),
            },
        }
    }
    Ok((held, failed))
}

fn read_held(row: &Row<'_>) -> rusqlite::Result<ClaimedJob> {
    let priority: u8 = row.get(8)?;
    Ok(ClaimedJob {
        run: Run { job: row::job_id(row, 0)?, token: row::token(row, 1)? },
        claim_id: row.get(2)?,
        kind: row.get(3)?,
        queue: row.get(4)?,
        payload: row.get(5)?,
        attempt: row.get(6)?,
        max_attempts: row.get(7)?,
        priority: Priority::try_from(priority)
            .map_err(|e| rusqlite::Error::FromSqlConversionFailure(8, Type::Integer, Box::new(e)))?,
        group: row.get(9)?,
        timeout: row::duration_opt(row, 10)?,
        created_at: row::time(row, 11)?,
        nominal_at: row::time_opt(row, 12)?,
        batch: row::batch_opt(row, 13)?,
        traceparent: row::trace_opt(row, 14)?,
        waited: None,
    })
}

//! Recovery of jobs from dead workers, and from runs that do not stop in time.

use std::collections::HashMap;
use std::time::Duration;

use milepost_core::ident::{JobId, Run, WorkerId};
use milepost_core::rescue::{LostEnd, LostRun};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::worker::{Backoffs, Rescued};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::batch::settle_jobs;
use crate::clock::{later_ms, now_ms};
use crate::error::Failure;
use crate::operate;
use crate::row;
use crate::transitions::{Standing, Step, Transitions};

/// A run whose worker is lost.
pub(crate) struct Lost {
    pub(crate) kind: String,
    pub(crate) standing: Standing,
    max_attempts: u32,
    stop_verb: Option<Verb>,
    stop_note: Option<String>,
    /// Whether it is a run of a bulk job that has completed a chunk since it was claimed.
    progressed: bool,
}

impl Lost {
    const fn run(&self) -> LostRun {
        let (max_attempts, stop, progressed) = (self.max_attempts, self.stop_verb, self.progressed);
        LostRun { attempt: self.standing.attempt, max_attempts, stop, progressed }
    }
}

/// The delay of each lost job before its next attempt.
pub(crate) type Delays = HashMap<JobId, Duration>;

/// Returns workers whose lease expired, and ended workers that still hold jobs.
pub(crate) fn lost_workers(conn: &Connection) -> Result<Vec<WorkerId>, Failure> {
    let mut statement = conn.prepare_cached(sql!("lost_workers"))?;
    let workers = statement.query_map([now_ms()], |row| row.get(0).map(WorkerId))?;
    Ok(workers.collect::<rusqlite::Result<_>>()?)
}

/// Returns whether a worker's lease was renewed while the clock was ahead.
pub(crate) fn has_late_leases(conn: &Connection) -> Result<bool, Failure> {
    Ok(conn.prepare_cached(sql!("late_leases"))?.query_row([now_ms()], |row| row.get(0))?)
}

/// Shortens such leases to their length from now on.
pub(crate) fn shorten_leases(conn: &Connection) -> Result<usize, Failure> {
    Ok(conn.prepare_cached(sql!("shorten_leases"))?.execute([now_ms()])?)
}

/// Returns the runs that a lost worker held.
pub(crate) fn lost_runs(conn: &Connection, worker: WorkerId, limit: usize) -> Result<Vec<Lost>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(sql!("lost_runs"))?;
    let (mut rows, mut runs) = (statement.query((worker.0, limit))?, Vec::new());
    while let Some(row) = rows.next()? {
        match read_lost(row, worker) {
            Ok(lost) => runs.push(lost),
            Err(error) => tracing::error!(%error, "a run of a lost worker cannot be read; it stays as it is"),
        }
    }
    Ok(runs)
}

fn read_lost(row: &Row<'_>, worker: WorkerId) -> rusqlite::Result<Lost> {
    let standing = Standing {
        job: row::job_id(row, 0)?,
        state: JobState::Running,
        attempt: row::attempts(row, 3)?,
        token: row::token(row, 1)?,
        worker: Some(worker),
        group: row::text_opt(row, 5)?,
    };
    Ok(Lost {
        kind: row::text_opt(row, 2)?.unwrap_or_default(),
        standing,
        max_attempts: row::attempts(row, 4)?,
        stop_verb: row::word_opt(row, 6)?,
        stop_note: row::text_opt(row, 7)?,
        progressed: row.get(8)?,
    })
}

/// Returns a worker's backoff policies by kind; empty if the worker was deleted or the value cannot be parsed.
pub(crate) fn backoffs(conn: &Connection, worker: WorkerId) -> Result<Backoffs, Failure> {
    let mut statement = conn.prepare_cached(sql!("backoffs_of_worker"))?;
    let told: Option<String> = statement.query_row([worker.0], |row| row.get(0)).optional()?;
    Ok(told.and_then(|told| serde_json::from_str(&told).ok()).unwrap_or_default())
}

/// Declares a worker dead, unless its lease is valid, and recovers those of its jobs whose delay is known. The jobs were read while its
/// lease had expired, so it cannot have claimed others since.
pub(crate) fn rescue(
    conn: &Connection,
    worker: WorkerId,
    delays: &Delays,
    limit: usize,
) -> Result<Vec<Rescued>, Failure> {
    let now_ms = now_ms();
    conn.prepare_cached(sql!("mark_worker_lost"))?.execute((worker.0, now_ms))?;
    let gone: bool = conn.prepare_cached(sql!("worker_gone"))?.query_row([worker.0], |row| row.get(0))?;
    if !gone {
        return Ok(Vec::new());
    }
    let mut transitions = Transitions::new(conn, now_ms)?;
    let mut rescued = Vec::new();
    for lost in lost_runs(conn, worker, limit)? {
        if let Some(&delay) = delays.get(&lost.standing.job) {
            rescued.push(take_back(&mut transitions, &lost, worker, delay)?);
        }
    }
    let given_up = rescued.iter().filter(|rescued| rescued.verb != Verb::Retry);
    settle_jobs(conn, given_up.map(|rescued| rescued.run.job))?;
    Ok(rescued)
}

fn take_back(
    transitions: &mut Transitions<'_>,
    lost: &Lost,
    worker: WorkerId,
    delay: Duration,
) -> Result<Rescued, Failure> {
    let LostEnd { verb, delay, failure } = lost.run().end(worker, || delay);
    let (to, ready_at_ms) = match verb {
        Verb::Retry => (JobState::RetryWait, Some(later_ms(transitions.now_ms(), delay))),
        Verb::Abort => (JobState::Aborted, None),
        Verb::Cancel => (JobState::Canceled, None),
        _ => (JobState::Failed, None),
    };
    let (failure, note) = (Some(&failure), lost.stop_note.as_deref());
    let step = Step { ready_at_ms, failure, note, ..Step::new(verb, to) };
    transitions.go(&lost.standing, &step)?;
    Ok(Rescued { run: Run { job: lost.standing.job, token: lost.standing.token }, worker, verb: step.verb })
}

/// Ends runs with a stop request whose grace period has expired.
pub(crate) fn stop_overdue(conn: &Connection, limit: u32) -> Result<Vec<JobId>, Failure> {
    let now_ms = now_ms();
    let overdue = conn
        .prepare_cached(sql!("overdue_stops"))?
        .query_map((now_ms, limit), |row| Ok((row::job_id(row, 0)?, row::word::<Verb>(row, 2)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let mut transitions = Transitions::new(conn, now_ms)?;
    for (job, verb) in &overdue {
        operate::fence_off(conn, &mut transitions, job, *verb)?;
    }
    settle_jobs(conn, overdue.iter().map(|(job, _)| *job))?;
    Ok(overdue.into_iter().map(|(job, _)| job).collect())
}

/// Returns whether any stop request is overdue, without writing.
pub(crate) fn has_overdue(conn: &Connection) -> Result<bool, Failure> {
    Ok(conn.prepare_cached(sql!("overdue_stops"))?.exists((now_ms(), 1))?)
}

/// Computes the delays of lost runs with the caller's function.
pub(crate) fn delays(lost: &[Lost], delay: impl Fn(&str, u32) -> Duration) -> Delays {
    lost.iter().map(|lost| (lost.standing.job, delay(&lost.kind, lost.run().failures()))).collect()
}

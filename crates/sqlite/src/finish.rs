//! Ends of runs.

use milepost_core::error::StoreError;
use milepost_core::finish::{End, Finish, Finished};
use milepost_core::ident::{Run, WorkerId};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction};

use crate::batch::{check_result, settle_jobs};
use crate::clock::{later_ms, now_ms};
use crate::error::Failure;
use crate::row::{self, Id};
use crate::transitions::{Standing, Step, Transitions};

/// Ends a run with success in a transaction of the caller, so that its effects and its success commit together. `result` is JSON text.
///
/// # Errors
/// [`StoreError::Fenced`] if the run no longer owns the job: roll back, because another attempt owns it. [`StoreError::Refused`] if the
/// result is not JSON, or if it exceeds the size limit for the result of a batch's task.
pub fn complete(tx: &Transaction<'_>, run: Run, result: Option<&str>) -> StoreResult<()> {
    succeed(tx, run, result).map_err(|failure| failure.at("complete", tx.path().unwrap_or_default()))
}

fn succeed(conn: &Connection, run: Run, result: Option<&str>) -> Result<(), Failure> {
    let mut finisher = Finisher::new(conn)?;
    let Some(Running { standing, .. }) = finisher.running(run)? else {
        return Err(StoreError::Fenced(run).into());
    };
    check_result(conn, &run.job, result)?;
    let step = Step { result, ..Step::new(Verb::Succeed, JobState::Succeeded) };
    finisher.transitions.go(&standing, &step)?;
    settle_jobs(conn, [run.job])
}

/// Ends runs of a worker; the results are in the order of the runs.
pub(crate) fn finish_many(
    conn: &Connection,
    worker: WorkerId,
    finishes: &[Finish],
) -> Result<Vec<Finished>, Failure> {
    let mut finisher = Finisher::new(conn)?;
    let finished = finishes.iter().map(|finish| finisher.finish(worker, finish));
    let finished = finished.collect::<Result<Vec<_>, _>>()?;
    let tasks =
        finishes.iter().zip(&finished).filter(|(finish, said)| finish.task && **said == Finished::Accepted);
    settle_jobs(conn, tasks.map(|(finish, _)| finish.run.job))?;
    Ok(finished)
}

struct Finisher<'conn> {
    conn: &'conn Connection,
    running: CachedStatement<'conn>,
    transitions: Transitions<'conn>,
}

impl<'conn> Finisher<'conn> {
    fn new(conn: &'conn Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            running: conn.prepare_cached(sql!("running"))?,
            transitions: Transitions::new(conn, now_ms())?,
        })
    }

    fn finish(&mut self, worker: WorkerId, finish: &Finish) -> Result<Finished, Failure> {
        let running = self
            .running(finish.run)?
            .filter(|running| running.standing.worker.is_none_or(|its| its == worker));
        let Some(running) = running else {
            return Ok(if self.ended_so(finish)? { Finished::Repeated } else { Finished::Fenced });
        };
        if let (true, End::Succeed { result }) = (finish.task, &finish.end) {
            check_result(self.conn, &finish.run.job, result.as_deref())?;
        }
        let step = running.step(&finish.end, self.transitions.now_ms());
        self.transitions.go(&running.standing, &step)?;
        Ok(Finished::Accepted)
    }

    /// Returns the state of the job, if the run still owns it.
    fn running(&mut self, run: Run) -> rusqlite::Result<Option<Running>> {
        self.running
            .query_row((Id(&run.job), run.token.0), |row| {
                let standing = Standing {
                    job: run.job,
                    state: JobState::Running,
                    attempt: row::attempts(row, 0)?,
                    token: run.token,
                    worker: row::worker_opt(row, 1)?,
                    group: row::text_opt(row, 2)?,
                };
                Ok(Running { standing, stop_verb: row::word_opt(row, 3)?, stop_note: row::text_opt(row, 4)? })
            })
            .optional()
    }

    /// Returns whether the same finish was stored before and only the answer to it was lost.
    fn ended_so(&self, finish: &Finish) -> rusqlite::Result<bool> {
        let Run { job, token } = finish.run;
        self.conn.prepare_cached(sql!("ended_by_worker"))?.exists((
            Id(&job),
            token.0,
            finish.end.verb().as_str(),
            finish.end.failure_code(),
        ))
    }
}

/// A run that still owns its job.
struct Running {
    standing: Standing,
    /// The stop request and its reason.
    stop_verb: Option<Verb>,
    stop_note: Option<String>,
}

impl Running {
    /// Returns the step that ends the run. A job with a stop request does not return to a waiting state, whatever its handler reports.
    fn step<'a>(&'a self, end: &'a End, now_ms: i64) -> Step<'a> {
        let step = step(end, now_ms);
        let verb = match end {
            End::Succeed { .. } => return step,
            End::Cancel | End::Abort => Verb::that_stops(self.stop_verb, step.verb),
            End::Retry { .. } | End::Fail { .. } | End::Yield { .. } => match self.stop_verb {
                Some(verb) => verb,
                None => return step,
            },
        };
        let to = if verb == Verb::Abort { JobState::Aborted } else { JobState::Canceled };
        Step { failure: step.failure, note: self.stop_note.as_deref(), ..Step::new(verb, to) }
    }
}

/// Returns the job's next step after this end of a run.
fn step(end: &End, now_ms: i64) -> Step<'_> {
    let verb = end.verb();
    match end {
        End::Succeed { result } => Step { result: result.as_deref(), ..Step::new(verb, JobState::Succeeded) },
        End::Retry { delay, failure } => Step {
            ready_at_ms: Some(later_ms(now_ms, *delay)),
            failure: Some(failure),
            ..Step::new(verb, JobState::RetryWait)
        },
        End::Fail { failure } => Step { failure: Some(failure), ..Step::new(verb, JobState::Failed) },
        End::Yield { delay, note } => Step {
            ready_at_ms: Some(later_ms(now_ms, *delay)),
            note: Some(note),
            ..Step::new(verb, JobState::Pending)
        },
        End::Cancel => Step::new(verb, JobState::Canceled),
        End::Abort => Step::new(verb, JobState::Aborted),
    }
}

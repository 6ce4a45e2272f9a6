//! Operators' verbs on one job.

use std::slice;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::port::{Operated, Operation};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::{IllegalTransition, Readiness, Verb, transition};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::batch::settle_jobs;
use crate::clock::{later_ms, now_ms};
use crate::error::Failure;
use crate::group::{Admission, admit, fill_all, force, reserve_start};
use crate::row::{self, Id};
use crate::transitions::{Standing, Step, Transitions};

/// Applies an operation to a job, and its consequences to the job's batch.
pub(crate) fn operate(conn: &Connection, job: JobId, operation: &Operation) -> Result<Operated, Failure> {
    refuse_task(conn, &job, operation.verb)?;
    let operated = act(conn, job, operation)?;
    if operation.verb == Verb::Rerun {
        // The batch was deleted, or its version no longer contains the task.
        conn.prepare_cached(sql!("batch/detach_job"))?.execute([Id(&job)])?;
    }
    settle_jobs(conn, [job])?;
    Ok(operated)
}

/// Refuses to rerun or continue a task's job separately from its batch, and a job that is no longer its task's current one.
fn refuse_task(conn: &Connection, job: &JobId, verb: Verb) -> Result<(), Failure> {
    if !matches!(verb, Verb::Rerun | Verb::RetryNow | Verb::Resume) {
        return Ok(());
    }
    let home = conn.prepare_cached(sql!("batch/home_of_job"))?.query_row([Id(job)], |row| {
        Ok((row::batch_id(row, 0)?, row.get(1)?, row.get::<_, Option<bool>>(2)? == Some(true)))
    });
    match home.optional()? {
        Some((batch, task, is_its_job)) if verb == Verb::Rerun || !is_its_job => {
            Err(StoreError::Batch(InvalidBatch::JobOfBatch { job: *job, batch, task }).into())
        }
        _ => Ok(()),
    }
}

/// Applies an operation to a job.
pub(crate) fn act(conn: &Connection, job: JobId, operation: &Operation) -> Result<Operated, Failure> {
    let now_ms = now_ms();
    let Found { standing, stop_verb, stop_note } = find(conn, &job)?;
    check(&standing, operation.verb)?;
    let verb = Verb::that_stops(stop_verb, operation.verb);
    let note = if verb == operation.verb { operation.reason() } else { stop_note.as_deref() };
    if standing.state == JobState::Running && !operation.grace.is_zero() {
        let stop_at_ms = later_ms(now_ms, operation.grace);
        conn.prepare_cached(sql!("request_stop"))?.execute((Id(&job), verb.as_str(), stop_at_ms, note))?;
        return Ok(Operated::StopRequested);
    }
    let ready_at_ms = later_ms(now_ms, operation.delay);
    let (to, admission) = next_state(conn, &standing, verb, ready_at_ms, now_ms)?;
    let mut transitions = Transitions::new(conn, now_ms)?;
    let step = Step {
        ready_at_ms: to_wait(to).then_some(ready_at_ms),
        max_attempts: attempts_anew(conn, &standing, verb)?,
        note,
        ..Step::new(verb, to)
    };
    match verb {
        Verb::Rerun => rerun(conn, &mut transitions, &standing, &step)?,
        Verb::Snooze => return snooze(conn, &mut transitions, &standing, &step).map(Operated::Done),
        _ => transitions.go(&standing, &step)?,
    }
    if admission == Admission::Reserved {
        reserve_start(conn, &job)?;
    }
    Ok(Operated::Done(to))
}

/// Ends a running job whose grace period has expired, with the note of the stop request.
pub(crate) fn fence_off(
    conn: &Connection,
    transitions: &mut Transitions<'_>,
    job: &JobId,
    verb: Verb,
) -> Result<(), Failure> {
    let Found { standing, stop_note, .. } = find(conn, job)?;
    let (to, _) = next_state(conn, &standing, verb, transitions.now_ms(), transitions.now_ms())?;
    let step = Step { note: stop_note.as_deref(), ..Step::new(verb, to) };
    transitions.go(&standing, &step)
}

const fn to_wait(state: JobState) -> bool {
    matches!(state, JobState::Pending | JobState::Blocked | JobState::RetryWait)
}

pub(crate) struct Found {
    pub(crate) standing: Standing,
    stop_verb: Option<Verb>,
    stop_note: Option<String>,
}

/// Returns the state of a job.
pub(crate) fn find(conn: &Connection, job: &JobId) -> Result<Found, Failure> {
    let live = conn
        .prepare_cached(sql!("live_state"))?
        .query_row([Id(job)], |row| read_live(row, *job))
        .optional()?;
    let found = match live {
        Some(found) => Some(found),
        None => conn
            .prepare_cached(sql!("ended_state"))?
            .query_row([Id(job)], |row| read_ended(row, *job))
            .optional()?,
    };
    found.ok_or_else(|| StoreError::NoSuchJob(*job).into())
}

fn read_live(row: &Row<'_>, job: JobId) -> rusqlite::Result<Found> {
    let standing = Standing {
        job,
        state: row::word(row, 0)?,
        attempt: row::attempts(row, 1)?,
        token: row::token(row, 2)?,
        worker: row::worker_opt(row, 3)?,
        group: row::text_opt(row, 4)?,
    };
    Ok(Found { standing, stop_verb: row::word_opt(row, 7)?, stop_note: row::text_opt(row, 5)? })
}

fn read_ended(row: &Row<'_>, job: JobId) -> rusqlite::Result<Found> {
    let standing = Standing {
        job,
        state: row::word(row, 0)?,
        attempt: row::attempts(row, 1)?,
        token: row::token(row, 2)?,
        worker: None,
        group: row::text_opt(row, 3)?,
    };
    Ok(Found { standing, stop_verb: None, stop_note: None })
}

pub(crate) fn illegal(standing: &Standing, verb: Verb) -> Failure {
    Failure::Told(StoreError::Illegal {
        job: standing.job,
        illegal: IllegalTransition { from: Some(standing.state), verb },
    })
}

/// Refuses verbs that the state does not allow, and verbs that are no operations.
fn check(standing: &Standing, verb: Verb) -> Result<(), Failure> {
    use Verb::{Claim, Create, Edit, Fail, Retry, Succeed, Yield};
    // An edit has its own call.
    let is_no_operation = matches!(verb, Create | Claim | Succeed | Retry | Fail | Yield | Edit);
    if is_no_operation || transition(Some(standing.state), verb, Readiness::Ready).is_err() {
        return Err(illegal(standing, verb));
    }
    Ok(())
}

/// Returns the next state, and what the group answered. A job in a group that becomes ready takes a slot of its group here, or waits for one.
fn next_state(
    conn: &Connection,
    standing: &Standing,
    verb: Verb,
    ready_at_ms: i64,
    now_ms: i64,
) -> Result<(JobState, Admission), Failure> {
    let comes_back = !standing.state.holds_group_slot()
        && transition(Some(standing.state), verb, Readiness::Ready) == Ok(JobState::Pending);
    let admission = match &standing.group {
        Some(group) if comes_back && verb == Verb::Release => force(conn, group, &standing.job, now_ms)?,
        Some(group) if comes_back => admit(conn, group, &standing.job, ready_at_ms, now_ms)?,
        _ => Admission::Free,
    };
    let readiness = if admission == Admission::Waits { Readiness::Held } else { Readiness::Ready };
    // A group never has more holders than slots, even if an operator releases a job.
    if verb == Verb::Release && readiness == Readiness::Held {
        return Err(illegal(standing, verb));
    }
    let to = transition(Some(standing.state), verb, readiness).map_err(|_| illegal(standing, verb))?;
    Ok((to, admission))
}

/// Returns the new attempt limit: the full number again for a failed or ended job, one more for a resumed job, otherwise unchanged.
fn attempts_anew(conn: &Connection, standing: &Standing, verb: Verb) -> rusqlite::Result<Option<u32>> {
    let asked = || -> rusqlite::Result<u32> {
        conn.prepare_cached(sql!("attempts_asked"))?.query_row([Id(&standing.job)], |row| row.get(0))
    };
    match (standing.state, verb) {
        (JobState::Failed, Verb::RetryNow) | (_, Verb::Rerun) => {
            Ok(Some(standing.attempt.saturating_add(asked()?)))
        }
        (_, Verb::Resume) => Ok(Some(standing.attempt.saturating_add(1))),
        _ => Ok(None),
    }
}

fn rerun(
    conn: &Connection,
    transitions: &mut Transitions<'_>,
    standing: &Standing,
    step: &Step<'_>,
) -> Result<(), Failure> {
    let blocked = step.to == JobState::Blocked;
    conn.prepare_cached(sql!("return_to_live"))?.execute((
        Id(&standing.job),
        step.to.as_str(),
        step.ready_at_ms.filter(|_| !blocked),
        step.ready_at_ms.filter(|_| blocked),
        step.max_attempts,
        transitions.now_ms(),
    ))?;
    conn.prepare_cached(sql!("delete_ended"))?.execute([Id(&standing.job)])?;
    conn.prepare_cached(sql!("forget_progress"))?.execute([Id(&standing.job)])?;
    Ok(transitions.record(standing, step)?)
}

/// Changes the time of a waiting job and returns its state afterwards: a job that waits in a group may now be the next one.
fn snooze(
    conn: &Connection,
    transitions: &mut Transitions<'_>,
    standing: &Standing,
    step: &Step<'_>,
) -> Result<JobState, Failure> {
    conn.prepare_cached(sql!("snooze"))?.execute((
        Id(&standing.job),
        step.ready_at_ms,
        transitions.now_ms(),
    ))?;
    transitions.record(standing, step)?;
    match &standing.group {
        Some(group) if matches!(step.to, JobState::Blocked | JobState::Pending) => {
            // Others of the group do not wait for its start any more.
            fill_all(conn, slice::from_ref(group), transitions.now_ms())?;
            Ok(find(conn, &standing.job)?.standing.state)
        }
        _ => Ok(step.to),
    }
}

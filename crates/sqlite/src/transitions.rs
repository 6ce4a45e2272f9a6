//! The state of a job and its transitions.

use milepost_core::finish::Failure as Why;
use milepost_core::ident::{JobId, RunToken, WorkerId};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{CachedStatement, Connection};

use crate::change::{Change, Recorder};
use crate::error::Failure;
use crate::group::{count_start, hand_over};
use crate::row::Id;

/// The state of a job before a transition.
pub(crate) struct Standing {
    pub(crate) job: JobId,
    pub(crate) state: JobState,
    pub(crate) attempt: u32,
    pub(crate) token: RunToken,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) group: Option<String>,
}

/// The next state, and the reason.
pub(crate) struct Step<'a> {
    pub(crate) verb: Verb,
    pub(crate) to: JobState,
    /// When it may be claimed, in a waiting state.
    pub(crate) ready_at_ms: Option<i64>,
    /// The new maximum number of attempts, if it changes.
    pub(crate) max_attempts: Option<u32>,
    pub(crate) failure: Option<&'a Why>,
    pub(crate) note: Option<&'a str>,
    pub(crate) result: Option<&'a str>,
}

impl Step<'_> {
    pub(crate) const fn new(verb: Verb, to: JobState) -> Self {
        Self { verb, to, ready_at_ms: None, max_attempts: None, failure: None, note: None, result: None }
    }
}

/// Moves jobs to other states, writes their history, and passes on the slots of their groups.
pub(crate) struct Transitions<'conn> {
    conn: &'conn Connection,
    now_ms: i64,
    end: CachedStatement<'conn>,
    leave: CachedStatement<'conn>,
    rest: CachedStatement<'conn>,
    recorder: Recorder<'conn>,
}

impl<'conn> Transitions<'conn> {
    pub(crate) fn new(conn: &'conn Connection, now_ms: i64) -> rusqlite::Result<Self> {
        Ok(Self {
            conn,
            now_ms,
            end: conn.prepare_cached(sql!("end_live"))?,
            leave: conn.prepare_cached(sql!("delete_live"))?,
            rest: conn.prepare_cached(sql!("rest"))?,
            recorder: Recorder::new(conn)?,
        })
    }

    pub(crate) const fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Applies a transition to a live job.
    pub(crate) fn go(&mut self, from: &Standing, step: &Step<'_>) -> Result<(), Failure> {
        if step.to.is_ended() {
            self.end.execute((Id(&from.job), step.to.as_str(), self.now_ms, step.result))?;
            self.leave.execute([Id(&from.job)])?;
        } else {
            self.let_rest(from, step)?;
        }
        self.record(from, step)?;
        match &from.group {
            Some(group) if from.state.holds_group_slot() && !step.to.holds_group_slot() => {
                hand_over(self.conn, group, &from.job, self.now_ms)
            }
            // The job will start once more without being released again.
            Some(group) if matches!(step.verb, Verb::Retry | Verb::Yield) => {
                Ok(count_start(self.conn, group, self.now_ms)?)
            }
            _ => Ok(()),
        }
    }

    fn let_rest(&mut self, from: &Standing, step: &Step<'_>) -> rusqlite::Result<()> {
        let blocked = step.to == JobState::Blocked;
        let runs = from.state == JobState::Running;
        let spared = u32::from(runs && step.verb.spares_attempt(step.failure.is_some()));
        self.rest.execute((
            Id(&from.job),
            step.to.as_str(),
            step.ready_at_ms.filter(|_| !blocked),
            step.ready_at_ms.filter(|_| blocked),
            from.attempt.saturating_sub(spared),
            step.max_attempts,
            self.now_ms,
        ))?;
        Ok(())
    }

    pub(crate) fn record(&mut self, from: &Standing, step: &Step<'_>) -> rusqlite::Result<()> {
        self.recorder.record(&Change {
            job: &from.job,
            at_ms: self.now_ms,
            verb: step.verb,
            from: Some(from.state),
            to: step.to,
            attempt: from.attempt,
            token: from.token,
            worker: from.worker,
            ready_at_ms: step.ready_at_ms,
            failure: step.failure,
            note: step.note,
        })
    }
}

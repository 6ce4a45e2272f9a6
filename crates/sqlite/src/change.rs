//! One state change, as it is stored in history.

use milepost_core::finish::Failure as Why;
use milepost_core::ident::{JobId, RunToken, WorkerId};
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::text::without_nul;
use milepost_core::transition::Verb;
use rusqlite::{CachedStatement, Connection};

use crate::row::Id;

/// A state change to be recorded in the transaction that makes it.
pub(crate) struct Change<'a> {
    pub(crate) job: &'a JobId,
    pub(crate) at_ms: i64,
    pub(crate) verb: Verb,
    pub(crate) from: Option<JobState>,
    pub(crate) to: JobState,
    pub(crate) attempt: u32,
    pub(crate) token: RunToken,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) ready_at_ms: Option<i64>,
    pub(crate) failure: Option<&'a Why>,
    pub(crate) note: Option<&'a str>,
}

/// Appends state changes to the history.
pub(crate) struct Recorder<'conn>(CachedStatement<'conn>);

impl<'conn> Recorder<'conn> {
    pub(crate) fn new(conn: &'conn Connection) -> rusqlite::Result<Self> {
        conn.prepare_cached(sql!("record")).map(Self)
    }

    pub(crate) fn record(&mut self, change: &Change<'_>) -> rusqlite::Result<()> {
        self.0.execute((
            Id(change.job),
            change.at_ms,
            change.verb.as_str(),
            change.from.map(JobState::as_str),
            change.to.as_str(),
            change.attempt,
            change.token.0,
            change.worker.map(|worker| worker.0),
            change.ready_at_ms,
            change.failure.map(|why| without_nul(&why.code)),
            change.failure.map(|why| without_nul(&why.message)),
            change.note.map(without_nul),
        ))?;
        Ok(())
    }
}

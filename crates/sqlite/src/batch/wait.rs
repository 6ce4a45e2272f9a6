//! Waits of tasks, and the signals that end them.

use jiff::Timestamp;
use milepost_core::batch::SIGNALS_MAX;
use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::wait::{
    NAMES_LISTED, NewSignal, SignalResult, WAITS_A_PAGE, WaitEnd, decide, ended_by_signal, ended_by_time,
};
use milepost_core::dag::state::TaskState;
use milepost_core::dag::wait::{Awaited, Wait};
use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::BatchId;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use milepost_core::transition::Verb;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use super::head::{Head, TaskId, TaskRow};
use super::operation::refused;
use super::settle::{Made, Settler};
use crate::clock::now_ms;
use crate::error::Failure;
use crate::row;

/// Sends a signal to a batch in the caller's transaction: it is sent exactly if that transaction commits.
///
/// # Errors
/// [`StoreError::Batch`] describes the problem; nothing was written then. After any other error the caller must roll back.
pub fn signal(tx: &Transaction<'_>, signal: &NewSignal) -> StoreResult<SignalResult> {
    signal.check()?;
    let sent = fit(tx, signal).and_then(|()| send(tx, signal));
    sent.map_err(|failure| failure.at("signal_batch", tx.path().unwrap_or_default()))
}

/// Checks that a task of the batch waits for the signal, and that its payload fits.
pub(crate) fn fit(conn: &Connection, signal: &NewSignal) -> Result<(), Failure> {
    let (spec, _) = awaited(conn, signal)?;
    let wait: Wait = serde_json::from_str(&spec).map_err(|e| row::odd(0, Type::Text, e))?;
    signal.check_fit(&wait).map_err(|invalid| StoreError::Batch(invalid).into())
}

/// Stores a signal that was checked.
pub(crate) fn send(conn: &Connection, signal: &NewSignal) -> Result<SignalResult, Failure> {
    let id = signal.batch.0.as_bytes();
    if conn.prepare_cached(sql!("batch/same_signal"))?.exists((id, &signal.id))? {
        return Ok(SignalResult::Duplicate);
    }
    let (_, state) = awaited(conn, signal)?;
    if state.outcome().is_some() {
        return Ok(SignalResult::Late);
    }
    let count: u32 =
        conn.prepare_cached(sql!("batch/count_signals"))?.query_row((id, &signal.name), |row| row.get(0))?;
    if count >= SIGNALS_MAX {
        return refused(InvalidBatch::TooManySignals(signal.batch));
    }
    let now_ms = now_ms();
    let values = (id, &signal.id, &signal.name, now_ms, signal.payload.get());
    conn.prepare_cached(sql!("batch/put_signal"))?.execute(values)?;
    conn.prepare_cached(sql!("batch/check_signal"))?.execute((id, &signal.name, now_ms))?;
    Ok(SignalResult::Accepted)
}

/// Returns the wait for a signal, as it is defined, and the state of its task.
fn awaited(conn: &Connection, signal: &NewSignal) -> Result<(String, TaskState), Failure> {
    let values = (signal.batch.0.as_bytes(), &signal.name);
    let found = conn
        .prepare_cached(sql!("batch/awaited"))?
        .query_row(values, |row| Ok((row.get(0)?, row::word(row, 1)?)))
        .optional()?;
    match found {
        Some(found) => Ok(found),
        None => Err(unknown(conn, signal)?),
    }
}

/// Returns the error for a signal that no task waits for.
fn unknown(conn: &Connection, signal: &NewSignal) -> Result<Failure, Failure> {
    let batch = signal.batch;
    Head::load(conn, batch)?;
    let mut names = conn.prepare_cached(sql!("batch/signal_names"))?;
    let known = names.query_map((batch.0.as_bytes(), NAMES_LISTED), |row| row.get(0))?;
    let known = known.collect::<rusqlite::Result<_>>()?;
    Ok(StoreError::Batch(InvalidBatch::NoSuchSignal { batch, name: signal.name.clone(), known }).into())
}

/// Returns whether a wait is to be checked, without writing.
pub(super) fn is_any_due(conn: &Connection) -> Result<bool, Failure> {
    Ok(conn.prepare_cached(sql!("batch/any_due_wait"))?.exists([now_ms()])?)
}

/// A wait to check.
struct DueWait {
    task: TaskId,
    signal: Option<String>,
    until_ms: Option<i64>,
    on_timeout: TaskState,
}

impl DueWait {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            task: TaskId { batch: row::batch_id(row, 0)?, number: row.get(1)? },
            signal: row.get(2)?,
            until_ms: row.get(3)?,
            on_timeout: row::word(row, 4)?,
        })
    }
}

impl Settler<'_> {
    /// Makes a due task wait.
    pub(super) fn begin_wait(&mut self, task: TaskId, awaited: &Awaited) -> Result<(), Failure> {
        let after = awaited.timeout.map(|timeout| self.now_ms.saturating_add(whole_ms(timeout)));
        let until = awaited.until.map(Timestamp::as_millisecond).or(after);
        self.conn.prepare_cached(sql!("batch/put_wait"))?.execute((
            task.batch.0.as_bytes(),
            task.number,
            &awaited.signal,
            self.now_ms,
            until,
            awaited.on_timeout.state().as_str(),
        ))?;
        let (from, to) = (TaskState::Due, TaskState::Active);
        let note = awaited.to_string();
        self.note(
            task.batch,
            Some(task.number),
            Verb::Release,
            Some(from.as_str()),
            to.as_str(),
            Some(&note),
        )?;
        self.turn(task, from, to, Made::Nothing)
    }

    /// Checks waits that are new, whose signal has arrived, or whose time has come, up to a page.
    pub(super) fn settle_waits(&mut self) -> Result<(), Failure> {
        let mut due = self.conn.prepare_cached(sql!("batch/due_waits"))?;
        let waits = due.query_map((self.now_ms, WAITS_A_PAGE), DueWait::read)?;
        for wait in waits.collect::<rusqlite::Result<Vec<_>>>()? {
            self.looked += 1;
            self.settle_wait(&wait)?;
        }
        Ok(())
    }

    fn settle_wait(&mut self, wait: &DueWait) -> Result<(), Failure> {
        let state = TaskRow::load(self.conn, wait.task)?.map(|task| task.state);
        if state != Some(TaskState::Active) {
            return self.set_check(wait.task, None, None);
        }
        let kept = self.kept_signal(wait)?;
        let is_over = wait.until_ms.is_some_and(|until_ms| until_ms <= self.now_ms);
        match (decide(kept.is_some(), is_over), kept) {
            (Some(WaitEnd::Signal), Some((pos, id, payload))) => {
                self.conn.prepare_cached(sql!("batch/use_signal"))?.execute([pos])?;
                self.set_check(wait.task, None, Some(&payload))?;
                let note = ended_by_signal(wait.signal.as_deref().unwrap_or_default(), &id);
                self.end_wait(wait.task, TaskState::Succeeded, &note)
            }
            (Some(_), _) => {
                self.set_check(wait.task, None, None)?;
                self.end_wait(wait.task, wait.on_timeout, &ended_by_time(wait.signal.as_deref()))
            }
            (None, _) => self.set_check(wait.task, wait.until_ms, None),
        }
    }

    /// Returns the position, the id and the payload of the first signal that the wait can use.
    fn kept_signal(&self, wait: &DueWait) -> Result<Option<(i64, String, String)>, Failure> {
        let Some(name) = &wait.signal else { return Ok(None) };
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let mut kept = self.conn.prepare_cached(sql!("batch/kept_signal"))?;
        Ok(kept.query_row((wait.task.batch.0.as_bytes(), name), read).optional()?)
    }

    fn end_wait(&mut self, task: TaskId, to: TaskState, note: &str) -> Result<(), Failure> {
        let verb = match to {
            TaskState::Failed => Verb::Fail,
            TaskState::Skipped => Verb::Skip,
            _ => Verb::Succeed,
        };
        self.end_without_job(task, TaskState::Active, to, verb, Some(note))
    }

    /// Sets when a wait is checked next, and its output.
    fn set_check(&self, task: TaskId, at_ms: Option<i64>, output: Option<&str>) -> Result<(), Failure> {
        let values = (task.batch.0.as_bytes(), task.number, at_ms, output);
        self.conn.prepare_cached(sql!("batch/set_check"))?.execute(values)?;
        Ok(())
    }

    /// Has a wait that continues checked now: signals may have arrived.
    pub(super) fn check_now(&self, task: TaskId) -> Result<(), Failure> {
        self.set_check(task, Some(self.now_ms), None)
    }

    /// Discards the wait of a task that is rerun, and the signals that it did not use.
    pub(super) fn forget_wait(&mut self, task: TaskId) -> Result<(), Failure> {
        let TaskId { batch: BatchId(batch), number } = task;
        let version = self.head(task.batch)?.version;
        self.conn.prepare_cached(sql!("batch/forget_wait"))?.execute((batch.as_bytes(), number))?;
        self.conn.prepare_cached(sql!("batch/discard_signals"))?.execute((
            batch.as_bytes(),
            version,
            number,
        ))?;
        Ok(())
    }
}

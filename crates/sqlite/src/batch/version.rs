//! Switching a batch to another version of its DAG.

use milepost_core::batch::operation::IN_ANOTHER_VERSION;
use milepost_core::dag::state::TaskState;
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::dag;
use super::head::{Head, TaskId, TaskRow};
use super::operation::Operator;
use super::rerun::Left;
use super::start::check_input;
use crate::error::Failure;

/// A task that the other version does not contain.
struct Gone {
    number: u32,
    key: String,
    stand: TaskRow,
}

impl Operator<'_, '_> {
    /// Switches the batch to this version. Tasks are matched by key. Tasks that the version does not contain are canceled, tasks that only
    /// it contains are added as waiting, and all counters are recomputed from the task states. No task is decided.
    pub(super) fn change_version(&mut self, head: &Head, version: i64) -> Result<(), Failure> {
        let (conn, batch) = (self.settler.conn, self.operation.batch);
        self.refuse_to_change(head, version)?;
        let id = batch.0.as_bytes();
        conn.prepare_cached(sql!("batch/forget_spreads"))?.execute([id])?;
        let gone = self.gone(head.version, version)?;
        self.change_waits(head.version, version)?;
        self.renumber(head.version, version, &gone)?;
        let why = format!("version {} does not have this task", dag::number_of(conn, version)?);
        for Gone { key, stand, .. } in &gone {
            let (verb, to) = match stand.state {
                ended if ended.is_ended() => (Verb::Rerun, ended),
                _ => (Verb::Cancel, TaskState::Canceled),
            };
            self.note_left(batch, &Left { number: None, stand, to, key: Some(key) }, verb, Some(&why))?;
            self.give_up(stand, &why)?;
        }
        let (from, to) = (dag::number_of(conn, head.version)?, dag::number_of(conn, version)?);
        let note = format!("continues with version {to} of its DAG instead of version {from}");
        let state = head.state.as_str();
        self.settler.note(batch, None, Verb::Rerun, Some(state), state, Some(&note))?;
        self.settler.count_anew(batch)
    }

    fn refuse_to_change(&mut self, head: &Head, version: i64) -> Result<(), Failure> {
        let (conn, batch) = (self.settler.conn, self.operation.batch);
        let input: String =
            conn.prepare_cached(sql!("batch/input"))?.query_row([batch.0.as_bytes()], |row| row.get(0))?;
        check_input(conn, version, &input)?;
        // In a stopped batch, due tasks have not been started; they are decided again.
        let busy: &[TaskState] =
            if head.stopped { &[TaskState::Active] } else { &[TaskState::Due, TaskState::Active] };
        match self.stands_in(batch, busy)?.first() {
            Some(&(number, stand)) => self.refuse(TaskId { batch, number }, stand.state, IN_ANOTHER_VERSION),
            None => Ok(()),
        }
    }

    fn gone(&self, from: i64, to: i64) -> Result<Vec<Gone>, Failure> {
        let id = self.operation.batch.0;
        let mut statement = self.settler.conn.prepare_cached(sql!("batch/gone_tasks"))?;
        let gone = statement.query_map((id.as_bytes(), from, to), |row| {
            let (number, stand) = TaskRow::read(row)?;
            Ok(Gone { number, key: row.get(9)?, stand })
        })?;
        Ok(gone.collect::<rusqlite::Result<_>>()?)
    }

    /// Discards the signals that the other version uses differently: for another task, or with other rules for the payload. Tasks that wait, and
    /// whose wait is another one in that version, become waiting.
    fn change_waits(&mut self, from: i64, to: i64) -> Result<(), Failure> {
        let (conn, batch) = (self.settler.conn, self.operation.batch);
        let id = batch.0.as_bytes();
        conn.prepare_cached(sql!("batch/discard_changed_signals"))?.execute((id, from, to))?;
        let mut statement = conn.prepare_cached(sql!("batch/changed_waits"))?;
        let changed =
            statement.query_map((id, from, to), TaskRow::read)?.collect::<rusqlite::Result<Vec<_>>>()?;
        let generation = self.settler.head(batch)?.generation;
        let why = format!("version {} has another wait for this task", dag::number_of(conn, to)?);
        for (number, stand) in &changed {
            conn.prepare_cached(sql!("batch/rerun_task"))?.execute((id, number, generation))?;
            conn.prepare_cached(sql!("batch/forget_wait"))?.execute((id, number))?;
            let left = Left { number: Some(*number), stand, to: TaskState::Waiting, key: None };
            self.note_left(batch, &left, Verb::Rerun, Some(&why))?;
        }
        Ok(())
    }

    /// Replaces task numbers by those of the other version wherever they are stored.
    fn renumber(&mut self, from: i64, to: i64, gone: &[Gone]) -> Result<(), Failure> {
        let (conn, batch) = (self.settler.conn, self.operation.batch);
        let id = batch.0.as_bytes();
        let generation = self.settler.head(batch)?.generation;
        for sql in
            [sql!("batch/renumber_jobs"), sql!("batch/renumber_children"), sql!("batch/renumber_history")]
        {
            conn.prepare_cached(sql)?.execute((id, from, to))?;
        }
        let mut forget = conn.prepare_cached(sql!("batch/forget_task"))?;
        for Gone { number, .. } in gone {
            forget.execute((id, number))?;
            conn.prepare_cached(sql!("batch/forget_wait"))?.execute((id, number))?;
        }
        conn.prepare_cached(sql!("batch/set_waits_aside"))?.execute([id])?;
        conn.prepare_cached(sql!("batch/renumber_waits"))?.execute((id, from, to))?;
        conn.prepare_cached(sql!("batch/set_aside"))?.execute([id])?;
        conn.prepare_cached(sql!("batch/renumber_tasks"))?.execute((id, from, to))?;
        conn.prepare_cached(sql!("batch/add_tasks"))?.execute((id, to, generation))?;
        conn.prepare_cached(sql!("batch/set_version"))?.execute((id, to))?;
        self.settler.forget_head(batch);
        Ok(())
    }
}

//! Operators' verbs on batches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb};
use milepost_core::dag::rule::Rule;
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::port::{Operated, Operation};
use milepost_core::sql;
use milepost_core::transition::Verb;
use rusqlite::{Connection, OptionalExtension};
use serde_json::json;

use super::head::{Head, TaskId, TaskRow};
use super::settle::Settler;
use crate::error::Failure;
use crate::row::Id;
use crate::{operate, row};

/// The value of the column `stop` of a batch in which no task starts.
const STOPPED: &str = "abort";

/// Applies an operation to a batch.
pub(super) fn operate_batch(conn: &Connection, operation: &BatchOperation) -> Result<BatchOperated, Failure> {
    let mut settler = Settler::new(conn);
    let batch = operation.batch;
    let head = settler.head(batch)?;
    if operation.generation.is_some_and(|seen| seen != head.generation) {
        return refused(InvalidBatch::Overtaken(batch));
    }
    settler.noted_by_caller = Some(batch);
    let mut operator = Operator { settler, operation, operated: BatchOperated::default() };
    let verb = operator.act(&head)?;
    let Operator { mut settler, mut operated, .. } = operator;
    settler.finish()?;
    let after = settler.head(batch)?;
    let (from, to) = (head.state.as_str(), after.state.as_str());
    settler.note(batch, None, verb, Some(from), to, operation.reason())?;
    operated.generation = after.generation;
    Ok(operated)
}

pub(super) fn refused<T>(invalid: InvalidBatch) -> Result<T, Failure> {
    Err(StoreError::Batch(invalid).into())
}

/// One operation on a batch and its inner batches.
pub(super) struct Operator<'conn, 'op> {
    pub(super) settler: Settler<'conn>,
    pub(super) operation: &'op BatchOperation,
    pub(super) operated: BatchOperated,
}

impl Operator<'_, '_> {
    fn act(&mut self, head: &Head) -> Result<Verb, Failure> {
        let batch = self.operation.batch;
        let in_state = |what| InvalidBatch::State { batch, state: head.state, what };
        match &self.operation.what {
            BatchVerb::Abort if !head.can_be_aborted() => refused(in_state("aborted")),
            BatchVerb::Abort => self.abort(batch).map(|()| Verb::Abort),
            BatchVerb::Resume if !head.can_be_resumed() => refused(in_state("resumed")),
            BatchVerb::Resume => self.resume(batch).map(|()| Verb::Resume),
            BatchVerb::Cancel { tasks } => {
                self.cancel(batch, tasks.iter().copied().collect()).map(|()| Verb::Cancel)
            }
            BatchVerb::Mark { task, state } => {
                self.mark(TaskId { batch, number: *task }, *state).map(|()| Verb::Mark)
            }
            BatchVerb::Rerun { tasks } => self.rerun(head, tasks, None).map(|()| Verb::Rerun),
            BatchVerb::RerunFailed { tasks, inside } => {
                self.rerun(head, tasks, Some(inside)).map(|()| Verb::Rerun)
            }
            BatchVerb::RerunIn { version, tasks, inside } => {
                self.rerun_in(head, *version, tasks, inside.as_deref()).map(|()| Verb::Rerun)
            }
        }
    }

    /// Returns the state of a task.
    pub(super) fn stand(&self, task: TaskId) -> Result<TaskRow, Failure> {
        let TaskId { batch, number } = task;
        match TaskRow::load(self.settler.conn, task)? {
            Some(stand) => Ok(stand),
            None => refused(InvalidBatch::NoSuchTask { batch, task: number.to_string() }),
        }
    }

    /// Returns the tasks in these states.
    pub(super) fn stands_in(
        &self,
        batch: BatchId,
        states: &[TaskState],
    ) -> Result<Vec<(u32, TaskRow)>, Failure> {
        let mut statement = self.settler.conn.prepare_cached(sql!("batch/tasks_in"))?;
        let stands = statement.query_map((batch.0.as_bytes(), json!(states).to_string()), TaskRow::read)?;
        Ok(stands.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the error for a verb that the task's state does not allow.
    pub(super) fn refuse<T>(
        &mut self,
        task: TaskId,
        state: TaskState,
        what: &'static str,
    ) -> Result<T, Failure> {
        let head = self.settler.head(task.batch)?;
        let key = match head.items_of {
            Some(_) => None,
            None => self
                .settler
                .conn
                .prepare_cached(sql!("batch/key"))?
                .query_row((head.version, task.number), |row| row.get(0))
                .optional()?,
        };
        let key = key.unwrap_or_else(|| task.number.to_string());
        refused(InvalidBatch::Task { batch: task.batch, task: key, state, what })
    }

    pub(super) fn set_stop(&mut self, batch: BatchId, stop: Option<&str>) -> Result<(), Failure> {
        let values = (batch.0.as_bytes(), stop, self.settler.now_ms);
        self.settler.conn.prepare_cached(sql!("batch/set_stop"))?.execute(values)?;
        self.settler.forget_head(batch);
        // Whether the batch is stopped is part of its state.
        self.settler.changed.entry(batch).or_default();
        Ok(())
    }

    fn abort(&mut self, batch: BatchId) -> Result<(), Failure> {
        self.set_stop(batch, Some(STOPPED))?;
        for (number, stand) in self.stands_in(batch, &[TaskState::Active])? {
            match stand {
                TaskRow { job: Some(job), .. } => self.act_on_job(job, Verb::Abort)?,
                TaskRow { child: Some(child), .. } if self.settler.head(child)?.can_be_aborted() => {
                    self.abort(child)?;
                }
                // It waits.
                TaskRow { state, job: None, child: None, .. } => {
                    self.end(TaskId { batch, number }, state, TaskState::Aborted, Verb::Abort)?;
                }
                TaskRow { .. } => {}
            }
        }
        Ok(())
    }

    fn resume(&mut self, batch: BatchId) -> Result<(), Failure> {
        let head = self.settler.head(batch)?;
        if head.stopped {
            self.operated.changed += head.counts[TaskState::Due as usize].unsigned_abs();
        }
        self.set_stop(batch, None)?;
        self.settler.due.insert(batch);
        let goes_on = [TaskState::Active, TaskState::Failed, TaskState::Aborted];
        for (number, stand) in self.stands_in(batch, &goes_on)? {
            match stand {
                TaskRow { state: TaskState::Aborted, job: Some(job), .. } => {
                    self.act_on_job(job, Verb::Resume)?;
                }
                TaskRow { state: TaskState::Active, job: Some(job), .. } => {
                    self.settler.conn.prepare_cached(sql!("withdraw_abort"))?.execute([Id(&job)])?;
                }
                TaskRow { job: None, child: Some(child), .. }
                    if self.settler.head(child)?.can_be_resumed() =>
                {
                    self.resume(child)?;
                }
                TaskRow { state: TaskState::Aborted, job: None, child: None, .. } => {
                    let task = TaskId { batch, number };
                    self.settler.check_now(task)?;
                    self.end(task, TaskState::Aborted, TaskState::Active, Verb::Resume)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Cancels tasks. All of them end before their successors are decided.
    fn cancel(&mut self, batch: BatchId, tasks: BTreeSet<u32>) -> Result<(), Failure> {
        for number in tasks {
            let task = TaskId { batch, number };
            let stand = self.stand(task)?;
            match stand {
                TaskRow { state, .. } if state.is_ended() => {}
                TaskRow { job: Some(job), .. } => self.act_on_job(job, Verb::Cancel)?,
                TaskRow { child: Some(child), .. } if !self.settler.head(child)?.state.is_ended() => {
                    self.cancel_inner(child)?;
                }
                TaskRow { state, .. } => self.end(task, state, TaskState::Canceled, Verb::Cancel)?,
            }
        }
        Ok(())
    }

    /// Cancels an inner batch, except its cleanup tasks (those with the rule [`Rule::Always`]).
    pub(super) fn cancel_inner(&mut self, batch: BatchId) -> Result<(), Failure> {
        let head = self.settler.head(batch)?;
        let tasks = match head.items_of {
            Some(_) => self.open_tasks(batch)?,
            None => cancel_set(self.settler.conn, head.version)?,
        };
        self.cancel(batch, tasks)
    }

    fn open_tasks(&self, batch: BatchId) -> Result<BTreeSet<u32>, Failure> {
        let open: Vec<_> = TaskState::ALL.iter().copied().filter(|state| !state.is_ended()).collect();
        Ok(self.stands_in(batch, &open)?.into_iter().map(|(number, _)| number).collect())
    }

    fn mark(&mut self, task: TaskId, to: TaskState) -> Result<(), Failure> {
        let what = BatchVerb::Mark { task: task.number, state: to }.participle();
        let stand = self.stand(task)?;
        let TaskRow { state, job, child, .. } = stand;
        let goes_on_inside = matches!(state, TaskState::Active | TaskState::Failed | TaskState::Aborted);
        if child.is_some() && goes_on_inside {
            return self.refuse(task, state, what);
        }
        let marks = matches!(to, TaskState::Succeeded | TaskState::Skipped | TaskState::Failed);
        let done = match (state, job, to) {
            (TaskState::Waiting | TaskState::Due, ..) if marks => self.end(task, state, to, Verb::Mark),
            (TaskState::Active | TaskState::Failed, Some(job), TaskState::Succeeded) => {
                self.act_on_job(job, Verb::Mark)
            }
            (TaskState::Active, Some(job), TaskState::Skipped) => self.act_on_job(job, Verb::Skip),
            (TaskState::Failed | TaskState::Aborted, None, TaskState::Succeeded) => {
                self.end(task, state, to, Verb::Mark)
            }
            // It waits.
            (TaskState::Active, None, _) if marks => self.end(task, state, to, Verb::Mark),
            _ => return self.refuse(task, state, what),
        };
        match done {
            Err(Failure::Told(StoreError::Illegal { .. })) => self.refuse(task, state, what),
            done => done,
        }
    }

    /// Moves a task that has neither a job nor an inner batch to another state.
    fn end(&mut self, task: TaskId, from: TaskState, to: TaskState, verb: Verb) -> Result<(), Failure> {
        self.operated.changed += 1;
        self.settler.end_without_job(task, from, to, verb, self.operation.reason())
    }

    fn act_on_job(&mut self, job: JobId, verb: Verb) -> Result<(), Failure> {
        let BatchOperation { grace, note, .. } = self.operation;
        let its = Operation { verb, grace: *grace, delay: Duration::ZERO, note: note.clone() };
        match operate::act(self.settler.conn, job, &its)? {
            Operated::StopRequested => self.operated.stopping += 1,
            Operated::Done(_) => {
                self.operated.changed += 1;
                self.settler.follow_job(job)?;
            }
        }
        Ok(())
    }
}

/// Returns all tasks of a version that can be reached without passing a task with the rule [`Rule::Always`].
fn cancel_set(conn: &Connection, version: i64) -> Result<BTreeSet<u32>, Failure> {
    let mut statement = conn.prepare_cached(sql!("batch/graph"))?;
    let tasks = statement.query_map([version], |row| {
        Ok((row.get(0)?, (row::word(row, 1)?, row.get(2)?, row::numbers(row, 3)?)))
    })?;
    let tasks: BTreeMap<u32, (Rule, u32, Vec<u32>)> = tasks.collect::<rusqlite::Result<_>>()?;
    let enters = |number: &u32| tasks.get(number).is_some_and(|(rule, ..)| *rule != Rule::Always);
    let roots = tasks.iter().filter(|(_, (_, waits_for, _))| *waits_for == 0).map(|(number, _)| *number);
    let mut left: Vec<u32> = roots.filter(enters).collect();
    let mut reached: BTreeSet<u32> = left.iter().copied().collect();
    while let Some((.., successors)) = left.pop().and_then(|number| tasks.get(&number)) {
        for &next in successors.iter().filter(|next| enters(next)) {
            if reached.insert(next) {
                left.push(next);
            }
        }
    }
    Ok(reached)
}

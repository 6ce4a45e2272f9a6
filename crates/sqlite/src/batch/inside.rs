//! Reruns of failed tasks in inner batches (batches that are tasks of other batches).

use std::collections::BTreeMap;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::inside::{FAILED, OPEN};
use milepost_core::batch::operation::SeenBatch;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::head::{TaskId, TaskRow};
use super::operation::{Operator, refused};
use super::spread::Tallies;
use crate::error::Failure;

/// An inner batch in which failed tasks are rerun.
pub(super) struct Inside {
    pub(super) batch: BatchId,
    /// The outer batch's task that this batch is, and its state.
    task: TaskId,
    stand: TaskRow,
    /// The tasks of the inner batch that are rerun.
    pub(super) tasks: BTreeMap<u32, TaskRow>,
    /// Whether the inner batch was stopped and is resumed.
    resumes: bool,
}

impl Operator<'_, '_> {
    /// Returns the inner batches at any depth that contain failed tasks, outer ones before inner ones, without those of the tasks in `but`.
    /// Refuses if a batch that the operator has `seen` was rerun since. `seen` is `None`: inner batches are not searched.
    pub(super) fn inside(
        &mut self,
        batch: BatchId,
        but: &BTreeMap<u32, TaskRow>,
        seen: Option<&[SeenBatch]>,
    ) -> Result<Vec<Inside>, Failure> {
        let mut found = Vec::new();
        let Some(seen) = seen else { return Ok(found) };
        for seen in seen {
            if self.settler.head(seen.batch)?.generation != seen.generation {
                return refused(InvalidBatch::Overtaken(seen.batch));
            }
        }
        let is_stopped = self.settler.head(batch)?.stopped;
        self.look_inside(batch, is_stopped, but, &mut found)?;
        Ok(found)
    }

    fn look_inside(
        &mut self,
        batch: BatchId,
        is_stopped: bool,
        but: &BTreeMap<u32, TaskRow>,
        found: &mut Vec<Inside>,
    ) -> Result<(), Failure> {
        // The items of a list are jobs, not batches.
        if self.settler.head(batch)?.items_of.is_some() {
            return Ok(());
        }
        for (number, stand) in self.stands_in(batch, &OPEN)? {
            let Some(child) = stand.child.filter(|_| !but.contains_key(&number)) else { continue };
            let head = self.settler.head(child)?;
            if head.state.is_ended() {
                continue;
            }
            let resumes = stand.state != TaskState::Active && head.stopped && !is_stopped;
            let tasks = self.failed_in(child)?;
            let (at, goes_on) = (found.len(), resumes || !tasks.is_empty());
            found.push(Inside { batch: child, task: TaskId { batch, number }, stand, tasks, resumes });
            self.look_inside(child, head.stopped && !resumes, &BTreeMap::new(), found)?;
            if !goes_on && found.len() == at + 1 {
                found.pop();
            }
        }
        Ok(())
    }

    /// Returns the failed tasks of a batch, without inner batches that have not ended.
    fn failed_in(&mut self, batch: BatchId) -> Result<BTreeMap<u32, TaskRow>, Failure> {
        let mut failed = BTreeMap::new();
        for (number, stand) in self.stands_in(batch, &FAILED)? {
            let is_open = match stand.child {
                Some(child) => !self.settler.head(child)?.state.is_ended(),
                None => false,
            };
            if !is_open {
                failed.insert(number, stand);
            }
        }
        Ok(failed)
    }

    /// Resets the failed tasks of an inner batch. From here on the batch is running and its task is active, so that successors are not
    /// decided by the task's former state, and the task is notified if the batch fails again immediately.
    pub(super) fn enter(&mut self, inside: &Inside) -> Result<(), Failure> {
        let Inside { batch, ref tasks, resumes, .. } = *inside;
        self.raise_generation(batch)?;
        if resumes {
            self.set_stop(batch, None)?;
            self.settler.due.insert(batch);
        }
        let from = self.settler.head(batch)?.state;
        let running = BatchState::Running.as_str();
        let values = (batch.0.as_bytes(), 0, 0, 0, 0, 0, 0, 0, 0, running, self.settler.now_ms, false);
        self.settler.conn.prepare_cached(sql!("batch/count_batch"))?.execute(values)?;
        self.settler.forget_head(batch);
        let note = self.operation.reason();
        self.settler.note(batch, None, Verb::Rerun, Some(from.as_str()), running, note)?;
        self.put_back(batch, tasks)?;
        self.settler.changed.entry(batch).or_default();
        self.activate(inside)
    }

    /// Sets the task of an inner batch to active again.
    fn activate(&mut self, inside: &Inside) -> Result<(), Failure> {
        let Inside { batch: child, task, stand: TaskRow { state, .. }, .. } = *inside;
        if state == TaskState::Active {
            return Ok(());
        }
        let to = TaskState::Active;
        let verb = if state == TaskState::Aborted { Verb::Resume } else { Verb::RetryNow };
        let mut tallies = Tallies::new();
        self.settler.take_back(task, state, &mut tallies)?;
        let TaskId { batch, number } = task;
        let none = None::<Vec<u8>>;
        let values = (batch.0.as_bytes(), number, to.as_str(), &none, &none, None::<u32>);
        self.settler.conn.prepare_cached(sql!("batch/set_task"))?.execute(values)?;
        let more = self.settler.changed.entry(batch).or_default();
        more[state as usize] -= 1;
        more[to as usize] += 1;
        let note = format!("the failed tasks of batch {child} are rerun");
        self.settler.note(batch, Some(number), verb, Some(state.as_str()), to.as_str(), Some(&note))?;
        self.settler.count(&tallies)?;
        Ok(())
    }
}

//! Running again what has failed in batches that are tasks of others.

use std::collections::BTreeMap;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::inside::{FAILED, OPEN};
use milepost_core::batch::operation::SeenBatch;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use milepost_core::transition::Verb;

use super::head::{Stand, TaskId};
use super::operation::{Operator, refused};
use super::spread::Tallies;
use crate::failure::Failure;
use crate::query;

/// A batch that is a task of another one, and in which a rerun of what failed goes on.
pub(super) struct Inside {
    pub(super) batch: BatchId,
    /// The task that it is, and where that stands.
    task: TaskId,
    stand: Stand,
    /// Its tasks that run again.
    pub(super) tasks: BTreeMap<u32, Stand>,
    /// Whether it was stopped, and goes on.
    resumes: bool,
}

impl Operator<'_, '_> {
    /// The batches in this one, at any depth, in which something has failed, outer ones before inner ones; not those of the tasks in `but`.
    /// Refused when one that the operator has `seen` was rerun meanwhile; `None`: there is nothing to be looked for.
    pub(super) fn inside(
        &mut self,
        batch: BatchId,
        but: &BTreeMap<u32, Stand>,
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
        but: &BTreeMap<u32, Stand>,
        found: &mut Vec<Inside>,
    ) -> Result<(), Failure> {
        // Items are jobs.
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

    /// The tasks of a batch that have failed and are not batches which go on.
    fn failed_in(&mut self, batch: BatchId) -> Result<BTreeMap<u32, Stand>, Failure> {
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

    /// Puts back what has failed in a batch. It runs from here on, and the task that it is is active: what waits for that is not decided by
    /// how it stood, and if the batch fails again at once, its task is told.
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
        self.settler.conn.prepare_cached(query::BATCH_COUNT)?.execute(values)?;
        self.settler.forget_head(batch);
        let note = self.operation.note.as_deref();
        self.settler.note(batch, None, Verb::Rerun, Some(from.as_str()), running, note)?;
        self.put_back(batch, tasks)?;
        self.settler.changed.entry(batch).or_default();
        self.activate(inside)
    }

    /// The task that a batch is goes on.
    fn activate(&mut self, inside: &Inside) -> Result<(), Failure> {
        let Inside { batch: child, task, stand: Stand { state, .. }, .. } = *inside;
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
        self.settler.conn.prepare_cached(query::BATCH_SET_TASK)?.execute(values)?;
        let more = self.settler.changed.entry(batch).or_default();
        more[state as usize] -= 1;
        more[to as usize] += 1;
        let note = format!("what has failed in batch {child} runs again");
        self.settler.note(batch, Some(number), verb, Some(state.as_str()), to.as_str(), Some(&note))?;
        self.settler.count(&tallies)?;
        Ok(())
    }
}

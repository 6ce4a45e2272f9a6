//! Reruns of tasks, in a new generation.

use std::collections::BTreeMap;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::operation::SeenBatch;
use milepost_core::dag::state::TaskState;
use milepost_core::dag::version::Version;
use milepost_core::ident::BatchId;
use milepost_core::port::Operation;
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::dag;
use super::head::{Head, TaskId, TaskRow};
use super::operation::{Operator, refused};
use super::spread::Tallies;
use crate::error::Failure;
use crate::operate;

impl Operator<'_, '_> {
    /// Discards the decisions for these tasks and removes them from their successors' counters, then decides them
    /// again. With `seen`, failed tasks in inner batches are also rerun.
    pub(super) fn rerun(
        &mut self,
        head: &Head,
        tasks: &[u32],
        seen: Option<&[SeenBatch]>,
    ) -> Result<(), Failure> {
        let batch = self.operation.batch;
        let tasks = self.choose(batch, tasks)?;
        let inside = self.inside(batch, &tasks, seen)?;
        if tasks.is_empty() && inside.is_empty() {
            return refused(InvalidBatch::NothingToRerun(batch));
        }
        self.begin_generation(head)?;
        self.put_back(batch, &tasks)?;
        inside.iter().try_for_each(|inside| self.enter(inside))?;
        self.decide(batch, &tasks)?;
        inside.iter().try_for_each(|inside| self.decide(inside.batch, &inside.tasks))
    }

    /// Decides tasks that were reset.
    fn decide(&mut self, batch: BatchId, tasks: &BTreeMap<u32, TaskRow>) -> Result<(), Failure> {
        for &number in tasks.keys() {
            let task = TaskId { batch, number };
            let tally = self.stand(task)?.tally;
            self.settler.decide(task, &tally)?;
        }
        Ok(())
    }

    /// As [`rerun`](Self::rerun), in another version; all other waiting tasks are also decided.
    pub(super) fn rerun_in(
        &mut self,
        head: &Head,
        version: Version,
        tasks: &[u32],
        seen: Option<&[SeenBatch]>,
    ) -> Result<(), Failure> {
        let batch = self.operation.batch;
        if head.items_of.is_some() {
            return refused(InvalidBatch::OverAList(batch));
        }
        let version = dag::find(self.settler.conn, &head.dag, Some(version))?;
        if version == head.version {
            return self.rerun(head, tasks, seen);
        }
        self.begin_generation(head)?;
        self.change_version(head, version)?;
        let tasks = self.choose(batch, tasks)?;
        let inside = self.inside(batch, &tasks, seen)?;
        self.put_back(batch, &tasks)?;
        inside.iter().try_for_each(|inside| self.enter(inside))?;
        // The batch's state can change even if no task changes.
        self.settler.changed.entry(batch).or_default();
        for (number, stand) in self.stands_in(batch, &[TaskState::Waiting])? {
            self.settler.decide(TaskId { batch, number }, &stand.tally)?;
        }
        inside.iter().try_for_each(|inside| self.decide(inside.batch, &inside.tasks))
    }

    /// Starts a new generation. Refused for an inner batch that has ended, because tasks of the outer batch may already depend on its result.
    fn begin_generation(&mut self, head: &Head) -> Result<(), Failure> {
        let batch = self.operation.batch;
        if let Some(parent) = head.parent
            && head.state.is_ended()
            && self.stand(parent)?.child == Some(batch)
        {
            let what = "rerun separately: rerun its task in the outer batch";
            return refused(InvalidBatch::State { batch, state: head.state, what });
        }
        self.raise_generation(batch)
    }

    pub(super) fn raise_generation(&mut self, batch: BatchId) -> Result<(), Failure> {
        self.settler.conn.prepare_cached(sql!("batch/raise_generation"))?.execute([batch.0.as_bytes()])?;
        self.settler.forget_head(batch);
        Ok(())
    }

    /// Resets tasks to waiting and removes them from their successors' counters.
    pub(super) fn put_back(&mut self, batch: BatchId, tasks: &BTreeMap<u32, TaskRow>) -> Result<(), Failure> {
        let mut tallies = Tallies::new();
        for (&number, stand) in tasks {
            let task = TaskId { batch, number };
            self.settler.take_back(task, stand.state, &mut tallies)?;
            self.leave(task, stand)?;
        }
        self.settler.count(&tallies)?;
        self.operated.changed += tasks.len() as u64;
        Ok(())
    }

    /// Returns those of the tasks that can be rerun. A task that is due or active cannot be rerun; waiting tasks are omitted.
    fn choose(&mut self, batch: BatchId, tasks: &[u32]) -> Result<BTreeMap<u32, TaskRow>, Failure> {
        let mut found = BTreeMap::new();
        for &number in tasks {
            let task = TaskId { batch, number };
            let stand = self.stand(task)?;
            match stand.state {
                TaskState::Waiting => {}
                TaskState::Due | TaskState::Active => return self.refuse(task, stand.state, "rerun"),
                _ => drop(found.insert(number, stand)),
            }
        }
        Ok(found)
    }

    /// Resets a task to waiting and cancels its unfinished job or inner batch.
    fn leave(&mut self, task: TaskId, stand: &TaskRow) -> Result<(), Failure> {
        let TaskId { batch, number } = task;
        let generation = self.settler.head(batch)?.generation;
        self.settler.conn.prepare_cached(sql!("batch/rerun_task"))?.execute((
            batch.0.as_bytes(),
            number,
            generation,
        ))?;
        let more = self.settler.changed.entry(batch).or_default();
        more[stand.state as usize] -= 1;
        more[TaskState::Waiting as usize] += 1;
        let left = Left { number: Some(number), stand, to: TaskState::Waiting, key: None };
        self.note_left(batch, &left, Verb::Rerun, self.operation.reason())?;
        if stand.job.is_none() && stand.child.is_none() {
            self.settler.forget_wait(task)?;
        }
        self.give_up(stand, &format!("its task is rerun in generation {generation}"))
    }

    /// Records that a task was detached from its state and its job.
    pub(super) fn note_left(
        &mut self,
        batch: BatchId,
        left: &Left<'_>,
        verb: Verb,
        note: Option<&str>,
    ) -> Result<(), Failure> {
        let generation = self.settler.head(batch)?.generation;
        let Left { number, stand, to, key } = *left;
        self.settler.conn.prepare_cached(sql!("batch/note"))?.execute((
            batch.0.as_bytes(),
            self.settler.now_ms,
            generation,
            number,
            verb.as_str(),
            stand.state.as_str(),
            to.as_str(),
            note,
            key,
            stand.job.as_ref().map(|job| job.0.as_bytes()),
        ))?;
        Ok(())
    }

    /// Cancels the unfinished job or inner batch of a task, so that it cannot be retried. What is canceled in an inner batch is not counted.
    pub(super) fn give_up(&mut self, stand: &TaskRow, note: &str) -> Result<(), Failure> {
        match *stand {
            TaskRow { state, .. } if state.is_ended() => Ok(()),
            TaskRow { job: Some(job), .. } => {
                operate::act(self.settler.conn, job, &Operation::new(Verb::Cancel).note(note)).map(drop)
            }
            TaskRow { child: Some(child), .. } if !self.settler.head(child)?.state.is_ended() => {
                let counted = self.operated.clone();
                self.cancel_inner(child)?;
                self.operated = counted;
                Ok(())
            }
            TaskRow { .. } => Ok(()),
        }
    }
}

/// A task that was detached from its former state.
pub(super) struct Left<'a> {
    /// `None`: the version no longer contains the task.
    pub(super) number: Option<u32>,
    pub(super) stand: &'a TaskRow,
    pub(super) to: TaskState,
    /// The key of a task that the version no longer contains.
    pub(super) key: Option<&'a str>,
}

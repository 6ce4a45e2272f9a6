//! Running tasks again, in a new generation.

use std::collections::BTreeMap;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::dag::state::TaskState;
use milepost_core::ident::BatchId;
use milepost_core::port::Operation;
use milepost_core::transition::Verb;

use super::head::{Head, Stand, TaskId};
use super::operation::{Operator, refused};
use super::spread::Tallies;
use crate::failure::Failure;
use crate::{operate, query};

impl Operator<'_, '_> {
    /// Forgets what was decided for these tasks and takes back what they counted, then decides them anew.
    pub(super) fn rerun(&mut self, head: &Head, tasks: &[u32]) -> Result<(), Failure> {
        let batch = self.operation.batch;
        let tasks = self.choose(batch, tasks)?;
        if let Some(parent) = head.parent
            && head.state.is_ended()
            && self.stand(parent)?.child == Some(batch)
        {
            let what = "rerun by itself: rerun the task of the other batch that it is";
            return refused(InvalidBatch::State { batch, state: head.state, what });
        }
        self.settler.conn.prepare_cached(query::BATCH_RAISE_GENERATION)?.execute([batch.0.as_bytes()])?;
        self.settler.forget_head(batch);
        let mut tallies = Tallies::new();
        for (&number, stand) in &tasks {
            let task = TaskId { batch, number };
            self.settler.take_back(task, stand.state, &mut tallies)?;
            self.leave(task, stand)?;
        }
        self.settler.count(&tallies)?;
        for &number in tasks.keys() {
            let task = TaskId { batch, number };
            let tally = self.stand(task)?.tally;
            self.settler.decide(task, &tally)?;
        }
        self.operated.changed += tasks.len() as u64;
        Ok(())
    }

    /// Those of the tasks that something became of; one that is at it cannot be rerun.
    fn choose(&mut self, batch: BatchId, tasks: &[u32]) -> Result<BTreeMap<u32, Stand>, Failure> {
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
        if found.is_empty() { refused(InvalidBatch::NothingToRerun(batch)) } else { Ok(found) }
    }

    /// The task waits again; what it left alive is given up.
    fn leave(&mut self, task: TaskId, stand: &Stand) -> Result<(), Failure> {
        let TaskId { batch, number } = task;
        let generation = self.settler.head(batch)?.generation;
        self.settler.conn.prepare_cached(query::BATCH_RERUN_TASK)?.execute((
            batch.0.as_bytes(),
            number,
            generation,
        ))?;
        let more = self.settler.changed.entry(batch).or_default();
        more[stand.state as usize] -= 1;
        more[TaskState::Waiting as usize] += 1;
        match *stand {
            Stand { job: Some(_), state, .. } if state.is_ended() => Ok(()),
            Stand { job: Some(job), .. } => {
                let note = format!("its task is rerun in generation {generation}");
                operate::act(self.settler.conn, job, &Operation::new(Verb::Cancel).note(note)).map(drop)
            }
            Stand { child: Some(child), .. } => {
                let ended = self.settler.head(child)?.state.is_ended();
                if ended { Ok(()) } else { self.cancel_inner(child) }
            }
            Stand { state, .. } => {
                let (from, to) = (state.as_str(), TaskState::Waiting.as_str());
                self.settler.note(batch, Some(number), Verb::Rerun, Some(from), to, None)
            }
        }
    }
}

//! Updates of the task counts and states of batches.

use std::rc::Rc;

use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::head::{ByState, Head, TaskId, TaskRow};
use super::settle::{Made, Settler, Way, way};
use crate::error::Failure;

impl Settler<'_> {
    /// Updates the counts and the state of a batch, and the state of its parent task.
    pub(super) fn add_up(&mut self, batch: BatchId, more: ByState) -> Result<(), Failure> {
        let head = self.head(batch)?;
        let mut counts = head.counts;
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        let state = self.state_of(batch, &head, &counts)?;
        if state == head.state && more == ByState::default() {
            return Ok(());
        }
        let [waiting, due, active, failed, aborted, succeeded, skipped, canceled] = more;
        self.conn.prepare_cached(sql!("batch/count_batch"))?.execute((
            batch.0.as_bytes(),
            waiting,
            due,
            active,
            failed,
            aborted,
            succeeded,
            skipped,
            canceled,
            state.as_str(),
            self.now_ms,
            state.is_ended(),
        ))?;
        self.heads.insert(batch, Rc::new(Head { state, counts, ..(*head).clone() }));
        if state == head.state {
            return Ok(());
        }
        if self.noted_by_caller != Some(batch) {
            let verb = verb_of_batch(head.state, state);
            self.note(batch, None, verb, Some(head.state.as_str()), state.as_str(), None)?;
        }
        head.parent.map_or(Ok(()), |parent| self.follow_child(parent, batch, state))
    }

    /// Returns the state of a batch. It counts as running while queued ends can still start tasks.
    pub(super) fn state_of(
        &self,
        batch: BatchId,
        head: &Head,
        counts: &ByState,
    ) -> Result<BatchState, Failure> {
        let state = head.state_with(counts);
        if state.is_ended() || state == BatchState::Running {
            return Ok(state);
        }
        let stand_in_line =
            self.conn.prepare_cached(sql!("batch/spreads_of_batch"))?.exists([batch.0.as_bytes()])?;
        Ok(if stand_in_line { BatchState::Running } else { state })
    }

    /// Sets the parent task to the state of its inner batch.
    fn follow_child(&mut self, parent: TaskId, child: BatchId, state: BatchState) -> Result<(), Failure> {
        let Some(stand) = TaskRow::load(self.conn, parent)? else { return Ok(()) };
        let (mut from, to) = (stand.state, TaskState::of_batch(state));
        let way = way(from, to);
        if stand.child != Some(child) || matches!(way, Way::None) {
            return Ok(());
        }
        if matches!(way, Way::OverActive) {
            self.turn(parent, from, TaskState::Active, Made::Nothing)?;
            from = TaskState::Active;
        }
        let verb = match to {
            TaskState::Succeeded => Verb::Succeed,
            TaskState::Failed => Verb::Fail,
            TaskState::Canceled => Verb::Cancel,
            TaskState::Aborted => Verb::Abort,
            _ if from == TaskState::Aborted => Verb::Resume,
            _ => Verb::RetryNow,
        };
        let note = (to == TaskState::Failed).then(|| format!("batch {child} has failed"));
        self.end_without_job(parent, from, to, verb, note.as_deref())
    }
}

/// Returns the verb, named as for jobs, of a batch's state change.
const fn verb_of_batch(from: BatchState, to: BatchState) -> Verb {
    match (from, to) {
        (_, BatchState::Done) => Verb::Succeed,
        (_, BatchState::Failed) => Verb::Fail,
        (_, BatchState::Aborted) => Verb::Abort,
        (_, BatchState::Canceled) => Verb::Cancel,
        (BatchState::Aborted, BatchState::Running) => Verb::Resume,
        (BatchState::Done | BatchState::Canceled, BatchState::Running) => Verb::Rerun,
        (_, BatchState::Running) => Verb::RetryNow,
    }
}

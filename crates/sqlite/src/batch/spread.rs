//! Counting of ended tasks in their successors.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::mem;

use milepost_core::dag::rule::{Outcome, Tally};
use milepost_core::dag::state::TaskState;
use milepost_core::sql;

use super::head::{End, TaskId, tally};
use super::settle::Settler;
use crate::error::Failure;
use crate::row;

/// How many queued ends one page processes.
const LINES: u32 = 100;

/// Changes of the predecessor counts, in the order of [`Outcome::ALL`].
type More = [i64; 4];

/// Changes by the task whose counters they affect.
pub(super) type Tallies = BTreeMap<TaskId, More>;

/// A queued end.
struct QueuedEnd {
    pos: i64,
    end: End,
    position: usize,
}

impl End {
    /// Adds the change to each successor, as far as the page allows; returns how many were added.
    fn add(&self, successors: &[u32], tallies: &mut Tallies, settler: &mut Settler<'_>) -> usize {
        let mut more = More::default();
        if let Some(was) = self.was.outcome() {
            more[was as usize] -= 1;
        }
        if let Some(is) = self.is.outcome() {
            more[is as usize] += 1;
        }
        for (at, &number) in successors.iter().enumerate() {
            let its = match tallies.entry(TaskId { batch: self.task.batch, number }) {
                Entry::Occupied(its) => its.into_mut(),
                Entry::Vacant(_) if !settler.page.take(1) => return at,
                Entry::Vacant(free) => free.insert(More::default()),
            };
            its.iter_mut().zip(more).for_each(|(its, more)| *its += more);
        }
        successors.len()
    }
}

impl Settler<'_> {
    /// Counts ends and their consequences, until none is left or the page is full. The rest is queued.
    pub(super) fn spread(&mut self) -> Result<(), Failure> {
        while !self.ends.is_empty() {
            let mut tallies = Tallies::new();
            for end in mem::take(&mut self.ends) {
                self.gather(end, &mut tallies)?;
            }
            self.count_in(&tallies)?;
        }
        Ok(())
    }

    fn gather(&mut self, end: End, tallies: &mut Tallies) -> Result<(), Failure> {
        let head = self.head(end.task.batch)?;
        let successors = head.successors(self.conn, end.task.number)?;
        if successors.is_empty() {
            return Ok(());
        }
        let counted = if self.stands_in_line(end.task)? { 0 } else { end.add(&successors, tallies, self) };
        if counted < successors.len() { self.put_in_line(&end, counted) } else { Ok(()) }
    }

    fn stands_in_line(&mut self, task: TaskId) -> Result<bool, Failure> {
        let lines = match self.lines {
            Some(lines) => lines,
            None => self.conn.prepare_cached(sql!("batch/any_spread"))?.exists(())?,
        };
        self.lines = Some(lines);
        let mut of_task = self.conn.prepare_cached(sql!("batch/spreads_of_task"))?;
        Ok(lines && of_task.exists((task.batch.0.as_bytes(), task.number))?)
    }

    fn put_in_line(&mut self, end: &End, counted: usize) -> Result<(), Failure> {
        self.lines = Some(true);
        let End { task, was, is } = end;
        let values = (
            task.batch.0.as_bytes(),
            task.number,
            was.as_str(),
            is.as_str(),
            i64::try_from(counted).unwrap_or(0),
        );
        self.conn.prepare_cached(sql!("batch/put_spread"))?.execute(values)?;
        Ok(())
    }

    /// Writes the changes and decides the waiting tasks.
    fn count_in(&mut self, tallies: &Tallies) -> Result<(), Failure> {
        let waiting = self.count(tallies)?;
        waiting.iter().try_for_each(|(task, tally)| self.decide(*task, tally))
    }

    /// Writes the changes in the order of tasks; returns the affected waiting tasks with their new counters.
    pub(super) fn count(&mut self, tallies: &Tallies) -> Result<Vec<(TaskId, Tally)>, Failure> {
        let mut waiting = Vec::new();
        let mut count = self.conn.prepare_cached(sql!("batch/count_in"))?;
        for (&task, &more) in tallies {
            let [succeeded, failed, skipped, canceled] = more;
            if more == More::default() {
                continue;
            }
            let values = (task.batch.0.as_bytes(), task.number, succeeded, failed, skipped, canceled);
            let (state, tally) =
                count.query_row(values, |row| Ok((row::word::<TaskState>(row, 0)?, tally(row, 1)?)))?;
            if state == TaskState::Waiting {
                waiting.push((task, tally));
            }
        }
        Ok(waiting)
    }

    /// Prepares a task in this state to be decided again: removes it from its successors' counters, and deletes its queued ends.
    pub(super) fn take_back(
        &mut self,
        task: TaskId,
        state: TaskState,
        tallies: &mut Tallies,
    ) -> Result<(), Failure> {
        let id = task.batch.0.as_bytes();
        let mut statement = self.conn.prepare_cached(sql!("batch/spreads_of_task"))?;
        let lines = statement.query_map((id, task.number), |row| {
            Ok((row.get(0)?, row::word(row, 1)?, row::word(row, 2)?, row.get(3)?))
        })?;
        let lines = lines.collect::<rusqlite::Result<Vec<(i64, TaskState, TaskState, i64)>>>()?;
        // Up to the position of the first queued end, successors count its new state; after it, the state before.
        let (was, is, position) = lines.first().map_or((state, state, 0), |line| (line.1, line.2, line.3));
        for (pos, ..) in &lines {
            self.conn.prepare_cached(sql!("batch/drop_spread"))?.execute([pos])?;
        }
        let successors = self.head(task.batch)?.successors(self.conn, task.number)?;
        for (at, &number) in (0_i64..).zip(&successors) {
            let counted = if at < position { is } else { was };
            if let Some(outcome) = counted.outcome() {
                tallies.entry(TaskId { number, ..task }).or_default()[outcome as usize] -= 1;
            }
        }
        Ok(())
    }

    /// Continues counting queued ends.
    pub(super) fn spread_lines(&mut self) -> Result<(), Failure> {
        let mut statement = self.conn.prepare_cached(sql!("batch/next_spreads"))?;
        let lines = statement.query_map([LINES], |row| {
            let task = TaskId { batch: row::batch_id(row, 1)?, number: row.get(2)? };
            let end = End { task, was: row::word(row, 3)?, is: row::word(row, 4)? };
            let position: i64 = row.get(5)?;
            Ok(QueuedEnd { pos: row.get(0)?, end, position: usize::try_from(position).unwrap_or(0) })
        })?;
        let mut tallies = Tallies::new();
        // The queued ends of one task are counted in order.
        let mut held = HashSet::new();
        for line in lines.collect::<rusqlite::Result<Vec<_>>>()? {
            if !held.contains(&line.end.task) && !self.go_on(&line, &mut tallies)? {
                held.insert(line.end.task);
            }
        }
        self.looked += tallies.len() as u64;
        self.count_in(&tallies)
    }

    /// Continues counting an end at its position; returns whether it is finished.
    fn go_on(&mut self, line: &QueuedEnd, tallies: &mut Tallies) -> Result<bool, Failure> {
        let QueuedEnd { pos, end, position } = line;
        // The batch's state can change even if no successor is left to count.
        self.changed.entry(end.task.batch).or_default();
        let successors = self.head(end.task.batch)?.successors(self.conn, end.task.number)?;
        let rest = successors.get(*position..).unwrap_or_default();
        let counted = end.add(rest, tallies, self);
        let done = counted == rest.len();
        if done {
            self.conn.prepare_cached(sql!("batch/drop_spread"))?.execute([pos])?;
        } else if counted > 0 {
            let position = i64::try_from(position + counted).unwrap_or(i64::MAX);
            self.conn.prepare_cached(sql!("batch/move_spread"))?.execute((pos, position))?;
        }
        Ok(done)
    }
}

/// The outcomes have the same order as the columns.
const _: () = assert!(
    Outcome::Succeeded as usize == 0
        && Outcome::Failed as usize == 1
        && Outcome::Skipped as usize == 2
        && Outcome::Canceled as usize == 3
);

//! A batch and its tasks, with the columns that counting needs.

use std::rc::Rc;

use milepost_core::batch::error::InvalidBatch;
use milepost_core::batch::nominal::NominalTime;
use milepost_core::dag::rule::{Rule, Tally};
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::sql;
use milepost_core::trace::Traceparent;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::Failure;
use crate::row;

/// A task of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TaskId {
    pub(super) batch: BatchId,
    pub(super) number: u32,
}

/// A task whose outcome has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) task: TaskId,
    pub(super) was: TaskState,
    pub(super) is: TaskState,
}

/// Task counts, or changes of task counts, by state in the order of [`TaskState::ALL`].
pub(super) type ByState = [i64; 8];

/// A batch.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) dag: String,
    pub(super) version: i64,
    pub(super) state: BatchState,
    pub(super) stopped: bool,
    pub(super) generation: u32,
    /// The batch that contains this one.
    pub(super) outer: Option<BatchId>,
    /// The task of the outer batch that this batch is or was; `None`: the outer batch no longer contains that task.
    pub(super) parent: Option<TaskId>,
    pub(super) items_of: Option<u32>,
    pub(super) depth: u32,
    pub(super) nominal: Option<NominalTime>,
    pub(super) traceparent: Option<Traceparent>,
    pub(super) counts: ByState,
}

impl Head {
    pub(super) fn load(conn: &Connection, batch: BatchId) -> Result<Rc<Self>, Failure> {
        let found = conn.prepare_cached(sql!("batch/head"))?.query_row([batch.0.as_bytes()], |row| {
            let outer = row::batch_opt(row, 5)?;
            let parent = outer.zip(row.get(6)?);
            let mut counts = ByState::default();
            for (at, count) in counts.iter_mut().enumerate() {
                *count = row.get(9 + at)?;
            }
            Ok(Self {
                dag: row.get(0)?,
                version: row.get(1)?,
                state: row::word(row, 2)?,
                stopped: row.get(3)?,
                generation: row.get(4)?,
                outer,
                parent: parent.map(|(batch, number)| TaskId { batch, number }),
                items_of: row.get(7)?,
                depth: row.get(8)?,
                nominal: NominalTime::of_columns(row::time_opt(row, 17)?, row.get(19)?),
                traceparent: row::trace_opt(row, 18)?,
                counts,
            })
        });
        let head = found.optional()?.ok_or(StoreError::Batch(InvalidBatch::NoSuchBatch(batch)))?;
        Ok(Rc::new(head))
    }

    /// Returns the number of the task that defines this task.
    pub(super) fn asked(&self, number: u32) -> u32 {
        self.items_of.unwrap_or(number)
    }

    /// Returns the trigger rule of a task, and whether its definition needs no evaluation. Items have no predecessors.
    pub(super) fn rule(&self, conn: &Connection, number: u32) -> rusqlite::Result<(Rule, bool)> {
        if self.items_of.is_some() {
            return Ok((Rule::default(), false));
        }
        conn.prepare_cached(sql!("batch/rule"))?
            .query_row((self.version, number), |row| Ok((row::word(row, 0)?, row.get(1)?)))
    }

    /// Returns the successors of a task.
    pub(super) fn successors(&self, conn: &Connection, number: u32) -> rusqlite::Result<Vec<u32>> {
        if self.items_of.is_some() {
            return Ok(Vec::new());
        }
        conn.prepare_cached(sql!("batch/successors"))?
            .query_row((self.version, number), |row| row::numbers(row, 0))
    }

    /// Returns the state of the batch with these task counts.
    pub(super) fn state_with(&self, counts: &ByState) -> BatchState {
        counts_of(counts).state(self.stopped)
    }

    pub(super) fn can_be_aborted(&self) -> bool {
        self.state.can_be_aborted(self.stopped, &counts_of(&self.counts))
    }

    pub(super) fn can_be_resumed(&self) -> bool {
        counts_of(&self.counts).can_be_resumed(self.stopped)
    }
}

fn counts_of(counts: &ByState) -> Counts {
    let [waiting, due, active, failed, aborted, succeeded, skipped, canceled] = counts.map(i64::unsigned_abs);
    Counts { waiting, due, active, failed, aborted, succeeded, skipped, canceled }
}

/// The state of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskRow {
    pub(super) state: TaskState,
    pub(super) job: Option<JobId>,
    pub(super) child: Option<BatchId>,
    pub(super) tally: Tally,
}

impl TaskRow {
    /// Loads a task; `None`: it does not exist.
    pub(super) fn load(conn: &Connection, task: TaskId) -> rusqlite::Result<Option<Self>> {
        conn.prepare_cached(sql!("batch/task"))?
            .query_row((task.batch.0.as_bytes(), task.number), |row| Ok(Self::read(row)?.1))
            .optional()
    }

    /// Reads the number and the state of a task.
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<(u32, Self)> {
        let stand = Self {
            state: row::word(row, 1)?,
            job: row::job_opt(row, 2)?,
            child: row::batch_opt(row, 3)?,
            tally: tally(row, 4)?,
        };
        Ok((row.get(0)?, stand))
    }
}

/// Reads the counters of a task's predecessors: those that have not ended, and the others by outcome.
pub(crate) fn tally(row: &Row<'_>, column: usize) -> rusqlite::Result<Tally> {
    let count = |at: usize| row.get::<_, u32>(column + at);
    let (succeeded, failed, skipped, canceled) = (count(1)?, count(2)?, count(3)?, count(4)?);
    let total = count(0)? + succeeded + failed + skipped + canceled;
    Ok(Tally { total, succeeded, failed, skipped, canceled })
}

//! Settlement of batches after tasks have changed their state: counts ended tasks, releases successors, updates the counts of batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;
use std::time::{Duration, Instant};

use milepost_core::batch::due::DueTask;
use milepost_core::batch::{PAGE_ROWS, RESULT_BYTES_MAX};
use milepost_core::dag::rule::{Decision, Rule, Tally, decide};
use milepost_core::dag::state::TaskState;
use milepost_core::error::StoreError;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::job::{NewJob, Priority};
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use milepost_core::{finish, sql};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::head::{ByState, End, Head, TaskId};
use crate::clock::now_ms;
use crate::enqueue::Intake;
use crate::error::Failure;
use crate::row::{self, Id};

/// A page that has taken this long evaluates no further task.
const PAGE_TIME: Duration = Duration::from_millis(20);

/// Applies the consequences of changes to these jobs, if they are tasks of batches.
pub(crate) fn settle_jobs(conn: &Connection, jobs: impl IntoIterator<Item = JobId>) -> Result<(), Failure> {
    let mut settler = Settler::new(conn);
    for job in jobs {
        settler.follow_job(job)?;
    }
    settler.finish()
}

/// Refuses a result of a task that exceeds the size limit, because its successors could not read it.
pub(crate) fn check_result(conn: &Connection, job: &JobId, result: Option<&str>) -> Result<(), Failure> {
    let Some(result) = result else { return Ok(()) };
    let is_task = result.len() > RESULT_BYTES_MAX
        && conn.prepare_cached(sql!("batch/task_of_job"))?.exists([Id(job)])?;
    finish::check_result(result, is_task)
        .map_err(|failure| StoreError::Refused { verb: "finish", cause: failure.message.into() }.into())
}

/// The remaining capacity of one transaction. The first row always fits, even on a slow machine, so each page makes progress.
pub(super) struct Page {
    rows_left: u32,
    began: Instant,
}

impl Page {
    /// Takes this number of rows; returns false if none were left.
    pub(super) const fn take(&mut self, rows: u32) -> bool {
        let taken = self.rows_left > 0;
        self.rows_left = self.rows_left.saturating_sub(rows);
        taken
    }

    pub(super) fn is_over(&self) -> bool {
        let is_used = self.rows_left < PAGE_ROWS;
        self.rows_left == 0 || is_used && self.began.elapsed() >= PAGE_TIME
    }
}

/// The result of evaluating a task.
#[derive(Clone, Copy, Debug)]
pub(super) enum Made {
    Nothing,
    Job(JobId),
    Batch(BatchId),
}

/// One bounded page of settling, in one transaction.
pub(crate) struct Settler<'conn> {
    pub(super) conn: &'conn Connection,
    pub(super) now_ms: i64,
    pub(super) page: Page,
    pub(super) heads: HashMap<BatchId, Rc<Head>>,
    /// Ends that are not counted yet.
    pub(super) ends: Vec<End>,
    /// Whether ends are queued for later pages; `None`: not read yet.
    pub(super) lines: Option<bool>,
    /// Batches whose counts have changed.
    pub(super) changed: BTreeMap<BatchId, ByState>,
    /// Batches with tasks that became due.
    pub(super) due: BTreeSet<BatchId>,
    /// The batch whose due tasks were evaluated last.
    pub(super) last_due: BatchId,
    /// The number of tasks examined.
    pub(super) looked: u64,
    /// Due tasks whose evaluation takes too long for a transaction.
    pub(super) large: Vec<DueTask>,
    /// The batch whose state change the caller records.
    pub(super) noted_by_caller: Option<BatchId>,
    intake: Option<Intake<'conn>>,
}

impl<'conn> Settler<'conn> {
    pub(crate) fn new(conn: &'conn Connection) -> Self {
        Self {
            conn,
            now_ms: now_ms(),
            page: Page { rows_left: PAGE_ROWS, began: Instant::now() },
            heads: HashMap::new(),
            ends: Vec::new(),
            lines: None,
            changed: BTreeMap::new(),
            due: BTreeSet::new(),
            last_due: BatchId(Uuid::nil()),
            looked: 0,
            large: Vec::new(),
            noted_by_caller: None,
            intake: None,
        }
    }

    /// Continues until nothing follows, or the page is full.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        loop {
            self.spread()?;
            if let Some(batch) = self.next_due() {
                self.work_out(batch)?;
            } else if let Some((batch, more)) = self.changed.pop_last() {
                // Later batches first: inner batches before outer ones.
                self.add_up(batch, more)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Returns the next batch in turn: the one after the last that was returned, so that a batch which becomes due again keeps no other waiting.
    fn next_due(&mut self) -> Option<BatchId> {
        if self.page.is_over() {
            return None;
        }
        let after = (Bound::Excluded(self.last_due), Bound::Unbounded);
        let next = *self.due.range(after).next().or_else(|| self.due.first())?;
        self.due.remove(&next);
        self.last_due = next;
        Some(next)
    }

    pub(super) fn head(&mut self, batch: BatchId) -> Result<Rc<Head>, Failure> {
        if let Some(head) = self.heads.get(&batch) {
            return Ok(Rc::clone(head));
        }
        let head = Head::load(self.conn, batch)?;
        self.heads.insert(batch, Rc::clone(&head));
        Ok(head)
    }

    /// Drops a batch from the cache, after the batch itself was changed.
    pub(super) fn forget_head(&mut self, batch: BatchId) {
        self.heads.remove(&batch);
    }

    /// Sets a task to the state of its job. A job that no task refers to any more is ignored.
    pub(crate) fn follow_job(&mut self, job: JobId) -> Result<(), Failure> {
        let found = self.conn.prepare_cached(sql!("batch/task_of_job"))?.query_row([Id(&job)], |row| {
            let task = TaskId { batch: row::batch_id(row, 0)?, number: row.get(1)? };
            Ok((task, row::word_opt::<TaskState>(row, 2)?, row::word_opt::<JobState>(row, 3)?))
        });
        let Some((task, Some(from), Some(state))) = found.optional()? else { return Ok(()) };
        let to = TaskState::of_job(state);
        match way(from, to) {
            Way::None => Ok(()),
            Way::Direct => self.turn(task, from, to, Made::Nothing),
            Way::OverActive => {
                self.turn(task, from, TaskState::Active, Made::Nothing)?;
                self.turn(task, TaskState::Active, to, Made::Nothing)
            }
        }
    }

    /// Moves a task to another state.
    pub(super) fn turn(
        &mut self,
        task: TaskId,
        from: TaskState,
        to: TaskState,
        made: Made,
    ) -> Result<(), Failure> {
        let TaskId { batch, number } = task;
        let generation = if from == TaskState::Waiting { Some(self.head(batch)?.generation) } else { None };
        let (job, child) = match &made {
            Made::Nothing => (None, None),
            Made::Job(job) => (Some(job.0.as_bytes()), None),
            Made::Batch(child) => (None, Some(child.0.as_bytes())),
        };
        self.conn.prepare_cached(sql!("batch/set_task"))?.execute((
            batch.0.as_bytes(),
            number,
            to.as_str(),
            job,
            child,
            generation,
        ))?;
        let more = self.changed.entry(batch).or_default();
        more[from as usize] -= 1;
        more[to as usize] += 1;
        if from.outcome() != to.outcome() {
            self.ends.push(End { task, was: from, is: to });
        }
        Ok(())
    }

    /// Decides what a waiting task becomes.
    pub(super) fn decide(&mut self, task: TaskId, tally: &Tally) -> Result<(), Failure> {
        if Rule::ALL.iter().all(|&rule| decide(rule, tally) == Decision::Wait) {
            return Ok(());
        }
        let head = self.head(task.batch)?;
        let (rule, plain) = head.rule(self.conn, task.number)?;
        match decide(rule, tally) {
            Decision::Wait => Ok(()),
            Decision::Run if plain && !head.stopped => self.make_job(task, TaskState::Waiting, None),
            Decision::Run => {
                self.due.insert(task.batch);
                self.turn(task, TaskState::Waiting, TaskState::Due, Made::Nothing)
            }
            Decision::Skip => self.skip(task, TaskState::Waiting, "its rule can no longer be met"),
        }
    }

    pub(super) fn skip(&mut self, task: TaskId, from: TaskState, why: &str) -> Result<(), Failure> {
        self.end_without_job(task, from, TaskState::Skipped, Verb::Skip, Some(why))
    }

    /// Moves a task without a job to another state.
    pub(super) fn end_without_job(
        &mut self,
        task: TaskId,
        from: TaskState,
        to: TaskState,
        verb: Verb,
        note: Option<&str>,
    ) -> Result<(), Failure> {
        self.note(task.batch, Some(task.number), verb, Some(from.as_str()), to.as_str(), note)?;
        self.turn(task, from, to, Made::Nothing)
    }

    /// Creates the job of a task, with this payload or the one in its definition.
    pub(super) fn make_job(
        &mut self,
        task: TaskId,
        from: TaskState,
        payload: Option<String>,
    ) -> Result<(), Failure> {
        let head = self.head(task.batch)?;
        let job = self.conn.prepare_cached(sql!("batch/job_of_task"))?.query_row(
            (head.version, head.asked(task.number)),
            |row| {
                let payload = payload.map_or_else(|| row.get(6), Ok)?;
                let job = NewJob::from_json(row.get::<_, String>(0)?, payload)
                    .map_err(|e| row::odd(6, Type::Text, e))?;
                let priority = row.get::<_, u8>(2)?;
                Ok(NewJob {
                    queue: row.get(1)?,
                    priority: Priority::try_from(priority).map_err(|e| row::odd(2, Type::Integer, e))?,
                    group: row.get(3)?,
                    max_attempts: row.get(4)?,
                    timeout: row::duration_opt(row, 5)?,
                    nominal_at: head.nominal.as_ref().map(|nominal| nominal.at),
                    traceparent: head.traceparent,
                    ..job
                })
            },
        )?;
        self.accept(task, from, &job)
    }

    /// Stores the job of a task.
    pub(super) fn accept(&mut self, task: TaskId, from: TaskState, job: &NewJob) -> Result<(), Failure> {
        let intake = match &mut self.intake {
            Some(intake) => intake,
            none => none.insert(Intake::new(self.conn)?),
        };
        intake.accept_task(job, task.batch, task.number)?;
        self.turn(task, from, TaskState::Active, Made::Job(job.id))
    }

    /// Records a change of a batch, or of a task of it that had no job.
    pub(super) fn note(
        &mut self,
        batch: BatchId,
        task: Option<u32>,
        verb: Verb,
        from: Option<&str>,
        to: &str,
        note: Option<&str>,
    ) -> Result<(), Failure> {
        let generation = self.head(batch)?.generation;
        let (id, verb, none) = (batch.0.as_bytes(), verb.as_str(), None::<Vec<u8>>);
        let values = (id, self.now_ms, generation, task, verb, from, to, note, None::<&str>, none);
        self.conn.prepare_cached(sql!("batch/note"))?.execute(values)?;
        Ok(())
    }
}

/// How a task gets from its state to that of its job or inner batch.
pub(super) enum Way {
    None,
    Direct,
    /// From failed to aborted, or the reverse, through active: the task could have continued in between.
    OverActive,
}

pub(super) fn way(from: TaskState, to: TaskState) -> Way {
    if from.can_become(to) {
        Way::Direct
    } else if from != to
        && matches!(from, TaskState::Failed | TaskState::Aborted)
        && TaskState::Active.can_become(to)
    {
        Way::OverActive
    } else {
        Way::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_whose_time_is_over_has_room_for_one_row() {
        let began = Instant::now().checked_sub(PAGE_TIME).unwrap();
        let mut page = Page { rows_left: PAGE_ROWS, began };
        assert!(!page.is_over(), "one row is always allowed");
        assert!(page.take(1));
        assert!(page.is_over());
    }
}

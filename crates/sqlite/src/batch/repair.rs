//! Repair of a batch from the facts: the states of its jobs and inner batches, and the order of its tasks.

use std::rc::Rc;

use milepost_core::dag::rule::Tally;
use milepost_core::dag::state::{BatchState, TaskState};
use milepost_core::ident::BatchId;
use milepost_core::sql;
use milepost_core::state::JobState;
use milepost_core::transition::Verb;
use rusqlite::{Connection, Row};

use super::head::{ByState, Head, TaskId, tally};
use super::settle::Settler;
use crate::error::Failure;
use crate::row;

/// Repairs a batch and applies the consequences; returns whether it did. It does nothing while ended tasks of the batch are still being
/// counted, or if tasks are missing.
pub(crate) fn repair_batch(conn: &Connection, batch: BatchId) -> Result<bool, Failure> {
    let mut settler = Settler::new(conn);
    if conn.prepare_cached(sql!("batch/spreads_of_batch"))?.exists([batch.0.as_bytes()])? {
        return Ok(false);
    }
    let tasks = tasks_of(conn, batch)?;
    if !is_complete(conn, batch, &tasks)? {
        return Ok(false);
    }
    let head = settler.head(batch)?;
    let mut states = Vec::new();
    for task in &tasks {
        states.push(settler.put_right(batch, task)?);
    }
    settler.put_counts(batch, &counts_of(&states))?;
    let waiting = settler.put_tallies(batch, &head, &tasks, &states)?;
    for (task, tally) in waiting {
        settler.decide(task, &tally)?;
    }
    settler.changed.entry(batch).or_default();
    settler.finish()?;
    Ok(true)
}

/// A task with the facts about it.
struct TaskFacts {
    number: u32,
    state: TaskState,
    child: Option<BatchId>,
    live: Option<JobState>,
    ended: Option<JobState>,
    has_job: bool,
    has_child: bool,
    /// Whether it waits, or has waited, for a signal or a time.
    has_wait: bool,
    tally: Tally,
}

fn tasks_of(conn: &Connection, batch: BatchId) -> rusqlite::Result<Vec<TaskFacts>> {
    let read = |row: &Row<'_>| {
        Ok(TaskFacts {
            number: row.get(0)?,
            state: row::word(row, 1)?,
            child: row::batch_opt(row, 2)?,
            live: row::word_opt(row, 3)?,
            ended: row::word_opt(row, 4)?,
            has_job: row.get(5)?,
            has_child: row.get(6)?,
            tally: tally(row, 7)?,
            has_wait: row.get(12)?,
        })
    };
    conn.prepare_cached(sql!("repair/tasks"))?.query_map([batch.0.as_bytes()], read)?.collect()
}

fn is_complete(conn: &Connection, batch: BatchId, tasks: &[TaskFacts]) -> rusqlite::Result<bool> {
    let asked: Option<i64> =
        conn.prepare_cached(sql!("repair/asked"))?.query_row([batch.0.as_bytes()], |row| row.get(0))?;
    Ok(asked.is_some_and(|asked| asked.unsigned_abs() == tasks.len() as u64))
}

fn counts_of(states: &[TaskState]) -> ByState {
    let mut counts = ByState::default();
    states.iter().for_each(|&state| counts[state as usize] += 1);
    counts
}

impl Settler<'_> {
    /// Recomputes all counts of a batch from the states of its tasks, without deciding any task.
    pub(super) fn count_anew(&mut self, batch: BatchId) -> Result<(), Failure> {
        let head = self.head(batch)?;
        let tasks = tasks_of(self.conn, batch)?;
        let states: Vec<TaskState> = tasks.iter().map(|task| task.state).collect();
        self.put_counts(batch, &counts_of(&states))?;
        self.put_tallies(batch, &head, &tasks, &states).map(drop)
    }

    /// Sets a task to the state of its job or inner batch, without updating counts; returns the state.
    fn put_right(&mut self, batch: BatchId, task: &TaskFacts) -> Result<TaskState, Failure> {
        let Some((fact, why)) = self.fact(task)?.filter(|(fact, _)| *fact != task.state) else {
            return Ok(task.state);
        };
        self.conn.prepare_cached(sql!("batch/set_task"))?.execute((
            batch.0.as_bytes(),
            task.number,
            fact.as_str(),
            None::<Vec<u8>>,
            None::<Vec<u8>>,
            None::<u32>,
        ))?;
        if !task.has_child && !task.has_job && task.live.or(task.ended).is_none() {
            self.conn.prepare_cached(sql!("repair/detach"))?.execute((batch.0.as_bytes(), task.number))?;
        }
        let note = format!("a repair: {why}");
        self.note(
            batch,
            Some(task.number),
            verb_of(fact),
            Some(task.state.as_str()),
            fact.as_str(),
            Some(&note),
        )?;
        Ok(fact)
    }

    /// Returns the state that a task must have, with the reason; `None` if the facts do not determine it.
    fn fact(&mut self, task: &TaskFacts) -> Result<Option<(TaskState, String)>, Failure> {
        let goes_on = matches!(task.state, TaskState::Active | TaskState::Aborted);
        let lost = |what: &str| goes_on.then(|| (TaskState::Failed, what.to_owned()));
        Ok(match (task.child, task.live, task.ended) {
            (Some(_), ..) if !task.has_child => lost("its batch is missing"),
            (Some(child), ..) => {
                let state = self.state_by_tasks(child)?;
                state.map(|state| (TaskState::of_batch(state), format!("its batch is {state}")))
            }
            (None, Some(_), Some(_)) => None,
            (None, Some(state), None) | (None, None, Some(state)) => {
                Some((TaskState::of_job(state), format!("its job is {state}")))
            }
            (None, None, None) if task.has_job || task.has_wait => None,
            (None, None, None) => lost("it has no job"),
        })
    }

    /// Returns the state of an inner batch computed from its tasks; `None` if tasks are missing.
    fn state_by_tasks(&mut self, batch: BatchId) -> Result<Option<BatchState>, Failure> {
        let tasks = tasks_of(self.conn, batch)?;
        if !is_complete(self.conn, batch, &tasks)? {
            return Ok(None);
        }
        let states: Vec<TaskState> = tasks.iter().map(|task| task.state).collect();
        let head = self.head(batch)?;
        self.state_of(batch, &head, &counts_of(&states)).map(Some)
    }

    fn put_counts(&mut self, batch: BatchId, counts: &ByState) -> Result<(), Failure> {
        let [waiting, due, active, failed, aborted, succeeded, skipped, canceled] = *counts;
        self.conn.prepare_cached(sql!("repair/batch"))?.execute((
            batch.0.as_bytes(),
            waiting,
            due,
            active,
            failed,
            aborted,
            succeeded,
            skipped,
            canceled,
            self.now_ms,
        ))?;
        self.forget_head(batch);
        Ok(())
    }

    /// Recomputes the predecessor counters; returns the waiting tasks.
    fn put_tallies(
        &mut self,
        batch: BatchId,
        head: &Rc<Head>,
        tasks: &[TaskFacts],
        states: &[TaskState],
    ) -> Result<Vec<(TaskId, Tally)>, Failure> {
        let predecessors = self.predecessors(head)?;
        let mut waiting = Vec::new();
        for (at, task) in tasks.iter().enumerate() {
            let before = predecessors.get(at).map_or(&[][..], Vec::as_slice);
            let mut tally = Tally::new(u32::try_from(before.len()).unwrap_or(u32::MAX));
            before.iter().filter_map(|&at| states.get(at as usize)?.outcome()).for_each(|end| tally.add(end));
            if tally != task.tally {
                self.put_tally(TaskId { batch, number: task.number }, &tally)?;
            }
            if states[at] == TaskState::Waiting {
                waiting.push((TaskId { batch, number: task.number }, tally));
            }
        }
        Ok(waiting)
    }

    /// Returns the predecessors of each task, by number. Items have none.
    fn predecessors(&self, head: &Head) -> rusqlite::Result<Vec<Vec<u32>>> {
        if head.items_of.is_some() {
            return Ok(Vec::new());
        }
        let mut statement = self.conn.prepare_cached(sql!("repair/predecessors"))?;
        statement.query_map([head.version], |row| row::numbers(row, 0))?.collect()
    }

    fn put_tally(&self, task: TaskId, tally: &Tally) -> rusqlite::Result<()> {
        let Tally { succeeded, failed, skipped, canceled, .. } = *tally;
        let values =
            (task.batch.0.as_bytes(), task.number, tally.open(), succeeded, failed, skipped, canceled);
        self.conn.prepare_cached(sql!("repair/tally"))?.execute(values).map(drop)
    }
}

/// Returns the verb of a repair that moves a task to this state.
const fn verb_of(state: TaskState) -> Verb {
    match state {
        TaskState::Skipped => Verb::Skip,
        TaskState::Canceled => Verb::Cancel,
        TaskState::Failed => Verb::Fail,
        TaskState::Aborted => Verb::Abort,
        TaskState::Succeeded => Verb::Succeed,
        TaskState::Waiting | TaskState::Due | TaskState::Active => Verb::Release,
    }
}

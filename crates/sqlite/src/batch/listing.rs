//! Queries that list batches and tasks for operators.

use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, ParentTask, TaskFilter, TaskView,
};
use milepost_core::batch::wait::WaitView;
use milepost_core::dag::state::{BatchState, Counts};
use milepost_core::dag::wait::OnTimeout;
use milepost_core::ident::BatchId;
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::json;
use uuid::Uuid;

use crate::error::Failure;
use crate::listing::started_by;
use crate::row;

/// An id after every possible id.
const NEWEST: BatchId = BatchId(Uuid::max());

/// Returns a page of batches, newest first.
pub(super) fn batches(conn: &Connection, filter: &BatchFilter) -> Result<Vec<BatchView>, Failure> {
    let before = filter.before.unwrap_or(NEWEST);
    let state = filter.state.map(BatchState::as_str);
    let page = (before.0.as_bytes(), &filter.dag, state, filter.inner, filter.limit);
    let found = match &filter.key {
        Some(key) => {
            let mut statement = conn.prepare_cached(sql!("batch/batches_with_key"))?;
            let found = statement.query_map((page.0, page.1, page.2, page.3, page.4, key), view)?;
            row::readable("batches", found)?
        }
        None => row::readable("batches", conn.prepare_cached(sql!("batch/batches"))?.query_map(page, view)?)?,
    };
    Ok(found)
}

/// Returns a batch with its input.
pub(super) fn batch(conn: &Connection, batch: BatchId) -> Result<Option<BatchDetail>, Failure> {
    let id = batch.0.as_bytes();
    let found = conn.prepare_cached(sql!("batch/batch"))?.query_row([id], view);
    let Some(row) = found.optional()? else { return Ok(None) };
    let input = conn.prepare_cached(sql!("batch/input"))?.query_row([id], |row| row::json(row, 0))?;
    Ok(Some(BatchDetail { row, input, started_by: started_by(conn, id)? }))
}

fn view(row: &Row<'_>) -> rusqlite::Result<BatchView> {
    let parent = row::batch_opt(row, 16)?.map(|batch| {
        let (task, key) = (row.get(17)?, row.get(18)?);
        Ok::<_, rusqlite::Error>(ParentTask { batch, task, key, items: row.get(19)? })
    });
    Ok(BatchView {
        id: row::batch_id(row, 0)?,
        dag: row.get(1)?,
        number: row.get(2)?,
        version: row::word(row, 3)?,
        key: row.get(4)?,
        state: row::word(row, 5)?,
        stopped: row.get(6)?,
        generation: row.get(7)?,
        counts: counts(row, 8)?,
        parent: parent.transpose()?,
        nominal_at: row::time_opt(row, 20)?,
        nominal_zone: row.get(24)?,
        created_at: row::time(row, 21)?,
        updated_at: row::time(row, 22)?,
        ended_at: row::time_opt(row, 23)?,
    })
}

fn counts(row: &Row<'_>, column: usize) -> rusqlite::Result<Counts> {
    let count = |at: usize| row.get::<_, i64>(column + at).map(i64::unsigned_abs);
    Ok(Counts {
        waiting: count(0)?,
        due: count(1)?,
        active: count(2)?,
        failed: count(3)?,
        aborted: count(4)?,
        succeeded: count(5)?,
        skipped: count(6)?,
        canceled: count(7)?,
    })
}

/// Returns a page of a batch's tasks.
pub(super) fn tasks(
    conn: &Connection,
    batch: BatchId,
    filter: &TaskFilter,
) -> Result<Vec<TaskView>, Failure> {
    let states = (!filter.states.is_empty()).then(|| json!(filter.states).to_string());
    let numbers = (!filter.tasks.is_empty()).then(|| json!(filter.tasks).to_string());
    let after = filter.after.map_or(-1, i64::from);
    let mut statement = conn.prepare_cached(sql!("batch/tasks"))?;
    let values = (batch.0.as_bytes(), states, numbers, after, filter.limit);
    Ok(statement.query_map(values, task)?.collect::<rusqlite::Result<_>>()?)
}

fn task(row: &Row<'_>) -> rusqlite::Result<TaskView> {
    let done: Option<i64> = row.get(12)?;
    Ok(TaskView {
        task: row.get(0)?,
        key: row.get(1)?,
        state: row::word(row, 2)?,
        generation: row.get(3)?,
        pre_cnt: row.get(4)?,
        job: row::job_opt(row, 5)?,
        batch: row::batch_opt(row, 6)?,
        job_state: row::word_opt(row, 7)?,
        attempt: row.get(8)?,
        released_at: row::time_opt(row, 9)?,
        started_at: row::time_opt(row, 10)?,
        ended_at: row::time_opt(row, 11)?,
        progress: done.map(|done| Ok::<_, rusqlite::Error>((done, row.get(13)?))).transpose()?,
        error: row.get(14)?,
        wait: wait(row)?,
    })
}

fn wait(row: &Row<'_>) -> rusqlite::Result<Option<WaitView>> {
    let Some(since) = row::time_opt(row, 15)? else { return Ok(None) };
    let on_timeout = OnTimeout::of_state(row::word(row, 18)?);
    let spec: Option<String> = row.get(19)?;
    let until = row::time_opt(row, 16)?;
    Ok(Some(WaitView::new(row.get(17)?, since, until, on_timeout, spec.as_deref())))
}

/// Returns state changes of a batch and of its tasks without jobs.
pub(super) fn history(
    conn: &Connection,
    batch: BatchId,
    after: i64,
    limit: u32,
) -> Result<Vec<BatchEntry>, Failure> {
    let mut statement = conn.prepare_cached(sql!("batch/history"))?;
    let entries = statement.query_map((batch.0.as_bytes(), after, limit), entry)?;
    Ok(entries.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn last(conn: &Connection, batch: BatchId, limit: u32) -> Result<Vec<BatchEntry>, Failure> {
    let mut statement = conn.prepare_cached(sql!("batch/last"))?;
    let entries = statement.query_map((batch.0.as_bytes(), limit), entry)?;
    Ok(entries.collect::<rusqlite::Result<_>>()?)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<BatchEntry> {
    Ok(BatchEntry {
        pos: row.get(0)?,
        at: row::time(row, 1)?,
        generation: row.get(2)?,
        task: row.get(3)?,
        key: row.get(4)?,
        verb: row::word(row, 5)?,
        from: row.get(6)?,
        to: row.get(7)?,
        note: row.get(8)?,
        job: row::job_opt(row, 9)?,
    })
}

/// Counts the batches in each state.
pub(super) fn count(conn: &Connection) -> Result<Vec<(BatchState, i64)>, Failure> {
    let mut statement = conn.prepare_cached(sql!("batch/count_batches"))?;
    let counts = statement.query_map((), |row| Ok((row::word(row, 0)?, row.get(1)?)))?;
    Ok(counts.collect::<rusqlite::Result<_>>()?)
}

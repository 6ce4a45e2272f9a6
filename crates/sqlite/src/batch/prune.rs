//! Retention of ended batches, one page at a time.

use std::time::Duration;

use milepost_core::batch::PAGE_ROWS;
use milepost_core::duration::whole_ms;
use milepost_core::ident::BatchId;
use milepost_core::retention::RetentionPolicy;
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::now_ms;
use crate::error::Failure;
use crate::retention::Pruner;
use crate::row::{self, Id};

/// Returns whether retention can delete a batch, without writing.
pub(super) fn is_due(conn: &Connection, keep: Duration) -> Result<bool, Failure> {
    Ok(conn.prepare_cached(sql!("batch/ended_root"))?.exists([cut_ms(keep)])?)
}

fn cut_ms(keep: Duration) -> i64 {
    now_ms().saturating_sub(whole_ms(keep))
}

/// Deletes a page of the batch that ended first, inner batches before outer ones; returns the number of rows.
pub(super) fn prune(conn: &Connection, keep: Duration) -> Result<u64, Failure> {
    let mut ended = conn.prepare_cached(sql!("batch/ended_root"))?;
    let root = ended.query_row([cut_ms(keep)], |row| row::batch_id(row, 0)).optional()?;
    let Some(mut batch) = root else { return Ok(0) };
    let mut child = conn.prepare_cached(sql!("batch/child"))?;
    while let Some(inner) = child.query_row([batch.0.as_bytes()], |row| row::batch_id(row, 0)).optional()? {
        batch = inner;
    }
    forget(conn, batch)
}

fn forget(conn: &Connection, batch: BatchId) -> Result<u64, Failure> {
    let id = batch.0.as_bytes();
    let mut rows = forget_tasks(conn, batch)?;
    if rows == 0 {
        rows = forget_jobs_without_task(conn, batch)?;
    }
    if rows > 0 {
        return Ok(rows);
    }
    rows = conn.prepare_cached(sql!("batch/forget_history"))?.execute((id, PAGE_ROWS))? as u64;
    if rows == u64::from(PAGE_ROWS) {
        return Ok(rows);
    }
    for sql in [sql!("batch/forget_waits"), sql!("batch/forget_signals")] {
        rows += conn.prepare_cached(sql)?.execute((id, PAGE_ROWS))? as u64;
        if rows >= u64::from(PAGE_ROWS) {
            return Ok(rows);
        }
    }
    rows += conn.prepare_cached(sql!("event/forget_batch_head"))?.execute((id, batch.to_string()))? as u64;
    for sql in [sql!("batch/forget_spreads"), sql!("batch/forget_input"), sql!("batch/forget_batch")] {
        rows += conn.prepare_cached(sql)?.execute([id])? as u64;
    }
    Ok(rows)
}

/// Deletes a page of tasks, with those of their jobs whose retention period ended while the batch needed them.
fn forget_tasks(conn: &Connection, batch: BatchId) -> Result<u64, Failure> {
    let id = batch.0.as_bytes();
    let policy = RetentionPolicy::default();
    let mut pruner = Pruner::new(conn, &policy, now_ms(), PAGE_ROWS)?;
    let mut next = conn.prepare_cached(sql!("batch/next_tasks"))?;
    let tasks = next.query_map((id, PAGE_ROWS), |row| row.get(0))?.collect::<rusqlite::Result<Vec<u32>>>()?;
    let mut jobs = conn.prepare_cached(sql!("batch/jobs_of_task"))?;
    let mut forget = conn.prepare_cached(sql!("batch/forget_task"))?;
    let mut rows = 0;
    for task in tasks {
        let its =
            jobs.query_map((id, task), |row| row::job_id(row, 0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        for job in its {
            if !pruner.forget_passed(&job)? {
                return Ok(rows + pruner.rows());
            }
        }
        rows += forget.execute((id, task))? as u64;
        if pruner.is_out_of_time() {
            break;
        }
    }
    Ok(rows + pruner.rows())
}

/// Deletes a page of jobs whose tasks the batch no longer contains and whose retention period ended while the batch needed them.
fn forget_jobs_without_task(conn: &Connection, batch: BatchId) -> Result<u64, Failure> {
    let policy = RetentionPolicy::default();
    let mut pruner = Pruner::new(conn, &policy, now_ms(), PAGE_ROWS)?;
    let mut next = conn.prepare_cached(sql!("batch/jobs_without_task"))?;
    let jobs = next.query_map((batch.0.as_bytes(), PAGE_ROWS), |row| row::job_id(row, 0))?;
    let mut detach = conn.prepare_cached(sql!("batch/detach_job"))?;
    let mut rows = 0;
    for job in jobs.collect::<rusqlite::Result<Vec<_>>>()? {
        if !pruner.forget_passed(&job)? {
            break;
        }
        // A job whose retention period has not ended is deleted later, like any other job.
        rows += detach.execute([Id(&job)])? as u64;
        if pruner.is_out_of_time() {
            break;
        }
    }
    Ok(rows + pruner.rows())
}

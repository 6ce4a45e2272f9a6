//! Export of jobs, and of the last sequence number of each aggregate.

use milepost_core::event::Aggregate;
use milepost_core::relocation::rows::{Ended, Head, Job, Key, Live, Progress, Slot};
use rusqlite::Row;

use super::Sql;
use crate::row;

pub(super) fn job(row: &Row<'_>) -> Sql<Job> {
    Ok(Job {
        id: row::job_id(row, 0)?,
        kind: row.get(1)?,
        queue: row.get(2)?,
        payload: row.get(3)?,
        key: row.get(4)?,
        group: row.get(5)?,
        priority: row.get(6)?,
        max_attempts: row.get(7)?,
        timeout_ms: row.get(8)?,
        created_at: row::time(row, 9)?,
        nominal_at: row::time_opt(row, 10)?,
        batch: row::batch_opt(row, 11)?,
        task: row.get(12)?,
        traceparent: row::trace_opt(row, 13)?,
        key_released: row.get(14)?,
    })
}

pub(super) fn key(row: &Row<'_>) -> Sql<Key> {
    Ok(Key {
        key: row.get(0)?,
        kind: row.get(1)?,
        job: row::job_id(row, 2)?,
        job_ended_at: row::time_opt(row, 3)?,
    })
}

pub(super) fn progress(row: &Row<'_>) -> Sql<Progress> {
    Ok(Progress {
        job: row::job_id(row, 0)?,
        done: row.get(1)?,
        total: row.get(2)?,
        message: row.get(3)?,
        checkpoint: row.get(4)?,
        updated_at: row::time(row, 5)?,
    })
}

pub(super) fn head(row: &Row<'_>) -> Sql<Head> {
    Ok(Head { aggregate: Aggregate { kind: row.get(0)?, id: row.get(1)? }, last: row.get(2)? })
}

pub(super) fn slot(row: &Row<'_>) -> Sql<Slot> {
    Ok(Slot { group: row.get(0)?, slot: row.get(1)?, job: row::job_id(row, 2)? })
}

pub(super) fn ended(row: &Row<'_>) -> Sql<Ended> {
    Ok(Ended {
        id: row::job_id(row, 0)?,
        state: row::word(row, 1)?,
        ended_at: row::time(row, 2)?,
        started_at: row::time_opt(row, 3)?,
        token: row::token(row, 4)?,
        attempt: row.get(5)?,
        max_attempts: row.get(6)?,
        result: row.get(7)?,
    })
}

pub(super) fn live(row: &Row<'_>) -> Sql<Live> {
    Ok(Live {
        id: row::job_id(row, 0)?,
        kind: row.get(1)?,
        queue: row.get(2)?,
        priority: row.get(3)?,
        state: row::word(row, 4)?,
        ready_at: row::time_opt(row, 5)?,
        due_at: row::time_opt(row, 6)?,
        started_at: row::time_opt(row, 7)?,
        failed_at: row::time_opt(row, 8)?,
        attempt: row.get(9)?,
        max_attempts: row.get(10)?,
        token: row::token(row, 11)?,
        worker: row::worker_opt(row, 12)?,
        claim_id: row.get(13)?,
        group: row.get(14)?,
        stop_verb: row::word_opt(row, 15)?,
        stop_at: row::time_opt(row, 16)?,
        stop_note: row.get(17)?,
        start_reserved: row.get(18)?,
    })
}

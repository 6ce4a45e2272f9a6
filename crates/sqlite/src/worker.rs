//! Workers and their leases.

use std::num::NonZeroU32;

use milepost_core::duration::whole_ms;
use milepost_core::error::StoreError;
use milepost_core::ident::{Run, WorkerId};
use milepost_core::sql;
use milepost_core::worker::{Heartbeat, NewWorker, WorkerView};
use rusqlite::{Connection, Row};

use crate::clock::{later_ms, now_ms};
use crate::error::{Failure, defect};
use crate::row;

/// How long lists include a worker after it ended.
const SEEN_AFTER_END_MS: i64 = 24 * 3600 * 1000;

pub(crate) fn register(conn: &Connection, worker: &NewWorker) -> Result<WorkerId, Failure> {
    let now_ms = now_ms();
    conn.prepare_cached(sql!("register_worker"))?.execute((
        &worker.name,
        json(&worker.queues)?,
        json(&worker.kinds)?,
        whole_ms(worker.lease),
        now_ms,
        later_ms(now_ms, worker.lease),
        json(&worker.backoffs)?,
        worker.slots.map(NonZeroU32::get),
    ))?;
    i32::try_from(conn.last_insert_rowid())
        .map(WorkerId)
        .map_err(|_| defect("register_worker", "no worker id is left").into())
}

fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|e| defect("register_worker", e.to_string()).into())
}

pub(crate) fn heartbeat(conn: &Connection, worker: WorkerId) -> Result<Heartbeat, Failure> {
    let renewed = conn.prepare_cached(sql!("heartbeat"))?.execute((worker.0, now_ms()))?;
    if renewed == 0 {
        return Err(StoreError::WorkerLost(worker).into());
    }
    let mut statement = conn.prepare_cached(sql!("asked_to_stop"))?;
    let stops = statement.query_map([worker.0], |row| {
        let run = Run { job: row::job_id(row, 0)?, token: row::token(row, 1)? };
        Ok((run, row::word(row, 2)?))
    })?;
    Ok(Heartbeat { stops: stops.collect::<rusqlite::Result<_>>()? })
}

pub(crate) fn retire(conn: &Connection, worker: WorkerId) -> Result<(), Failure> {
    conn.prepare_cached(sql!("retire_worker"))?.execute((worker.0, now_ms()))?;
    Ok(())
}

/// Returns the active workers, and those that ended within the last day.
pub(crate) fn list(conn: &Connection) -> Result<Vec<WorkerView>, Failure> {
    let mut statement = conn.prepare_cached(sql!("workers"))?;
    let workers = statement.query_map([now_ms() - SEEN_AFTER_END_MS, now_ms()], read)?;
    Ok(row::readable("workers", workers)?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<WorkerView> {
    Ok(WorkerView {
        id: WorkerId(row.get(0)?),
        name: row.get(1)?,
        queues: row::names(row, 2)?,
        kinds: row::names(row, 3)?,
        started_at: row::time(row, 4)?,
        heartbeat_at: row::time(row, 5)?,
        lease_expired: row.get(6)?,
        ended_at: row::time_opt(row, 7)?,
        died: row.get(8)?,
        running: row.get(9)?,
        slots: row.get(10)?,
    })
}

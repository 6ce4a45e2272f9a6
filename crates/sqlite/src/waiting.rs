//! Why a job that is to run does not run now.

use jiff::Timestamp;
use milepost_core::listing::{JobRow, Waiting};
use milepost_core::state::JobState;
use rusqlite::{Connection, OptionalExtension};

use crate::failure::Failure;
use crate::query;
use crate::row;

pub(crate) fn waiting_for(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Option<Waiting>, Failure> {
    match job.state {
        JobState::Blocked => group(conn, job),
        JobState::Pending | JobState::RetryWait => turn(conn, job, now_ms).map(Some),
        _ => Ok(None),
    }
}

fn group(conn: &Connection, job: &JobRow) -> Result<Option<Waiting>, Failure> {
    let Some(group) = &job.group else {
        return Ok(None);
    };
    let holder = conn
        .prepare_cached(query::SLOT_HOLDER)?
        .query_row([group], |row| row::job_id(row, 0))
        .optional()?;
    Ok(Some(Waiting::Group {
        group: group.clone(),
        holder,
    }))
}

fn turn(conn: &Connection, job: &JobRow, now_ms: i64) -> Result<Waiting, Failure> {
    let is_later = |at: &Timestamp| at.as_millisecond() > now_ms;
    if let Some(until) = job.ready_at.filter(is_later) {
        return Ok(Waiting::Time { until });
    }
    let paused: bool = conn
        .prepare_cached(query::QUEUE_PAUSED)?
        .query_row([&job.queue], |row| row.get(0))?;
    if paused {
        return Ok(Waiting::PausedQueue {
            queue: job.queue.clone(),
        });
    }
    let served: bool = conn
        .prepare_cached(query::IS_SERVED)?
        .query_row((&job.kind, &job.queue, now_ms), |row| row.get(0))?;
    if served {
        return Ok(Waiting::Turn);
    }
    Ok(Waiting::NoWorker {
        kind: job.kind.clone(),
        queue: job.queue.clone(),
    })
}

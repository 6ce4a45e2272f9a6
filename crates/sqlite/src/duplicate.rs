//! Enqueues of jobs whose keys other jobs may hold, with a rule for each ([reasons](../../../docs/adr/0041-duplicates.md)).

use milepost_core::error::StoreError;
use milepost_core::ident::JobId;
use milepost_core::job::duplicate::{EnqueueOutcome, Holder, MOVED_NOTE, OnDuplicate, REPLACED_NOTE};
use milepost_core::job::error::InvalidJob;
use milepost_core::job::{Enqueued, NewJob};
use milepost_core::sql;
use rusqlite::{Connection, OptionalExtension, Row};

use crate::clock::start_ms;
use crate::edit::replace;
use crate::error::Failure;
use crate::row::{self, Id};

/// The job that holds a key.
struct Found {
    job: JobId,
    holder: Holder,
    queue: Option<String>,
    group: Option<String>,
}

/// Settles who holds the key of a job with a rule. Returns the result of the call; `None` if the key is the new job's, which the caller stores.
pub(crate) fn settle(
    conn: &Connection,
    job: &NewJob,
    key: &str,
    rule: &OnDuplicate,
    now_ms: i64,
) -> Result<Option<Enqueued>, Failure> {
    // A call whose answer was lost is repeated.
    if conn.prepare_cached(sql!("job_exists"))?.exists([Id(&job.id)])? {
        return Ok(Some(Enqueued::kept(job.id)));
    }
    let found =
        conn.prepare_cached(sql!("key_holder_state"))?.query_row((&job.kind, key), read).optional()?;
    let Some(found) = found else {
        conn.prepare_cached(sql!("take_key"))?.execute((&job.kind, key, Id(&job.id)))?;
        return Ok(None);
    };
    let outcome = rule.decide(&found.holder, now_ms);
    match outcome {
        EnqueueOutcome::Created => {
            conn.prepare_cached(sql!("pass_key_on"))?.execute((&job.kind, key, Id(&job.id)))?;
            conn.prepare_cached(sql!("release_key"))?.execute([Id(&found.job)])?;
            return Ok(None);
        }
        EnqueueOutcome::Replaced | EnqueueOutcome::Moved => {
            replace_holder(conn, &found, job, key, rule, now_ms)?;
        }
        EnqueueOutcome::Kept | EnqueueOutcome::Dropped => {}
    }
    Ok(Some(Enqueued::of(found.job, outcome)))
}

fn replace_holder(
    conn: &Connection,
    found: &Found,
    job: &NewJob,
    key: &str,
    rule: &OnDuplicate,
    now_ms: i64,
) -> Result<(), Failure> {
    if found.queue.as_ref() != Some(&job.queue) || found.group != job.group {
        let invalid = InvalidJob::HolderElsewhere { key: key.chars().take(60).collect() };
        return Err(StoreError::Invalid { index: 0, invalid }.into());
    }
    let created_at_ms = found.holder.created_at_ms.unwrap_or(now_ms);
    let (start_ms, note) = match rule.debounced_start_ms(created_at_ms, now_ms) {
        Some(start_ms) => (start_ms, MOVED_NOTE),
        None => (start_ms(job.start, now_ms), REPLACED_NOTE),
    };
    replace(conn, found.job, job, start_ms, note, now_ms)
}

fn read(row: &Row<'_>) -> rusqlite::Result<Found> {
    let token: Option<i64> = row.get(2)?;
    let holder = Holder {
        state: row::word_opt(row, 1)?,
        has_started: token.is_some_and(|token| token > 0),
        created_at_ms: row.get(3)?,
        over_at_ms: row.get(4)?,
    };
    Ok(Found { job: row::job_id(row, 0)?, holder, queue: row.get(5)?, group: row.get(6)? })
}

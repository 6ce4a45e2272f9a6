//! Counts of what retention can delete.

use milepost_core::retention::{Prunable, RetentionPolicy};
use milepost_core::sql;
use rusqlite::Connection;

use super::{Sort, due_before_ms, keeps_job, last_of, mark, read_entry};
use crate::clock::now_ms;
use crate::error::Failure;

/// Counts what retention can delete: reads history from the marks on.
pub(crate) fn prunable(conn: &Connection, policy: &RetentionPolicy) -> Result<Prunable, Failure> {
    let now_ms = now_ms();
    let mut found = Prunable::default();
    for sort in Sort::ALL {
        let Some(cut_ms) = due_before_ms(sort.keep(policy), now_ms) else { continue };
        let mut entries = conn.prepare_cached(sql!("history_after"))?;
        let mut entries = entries.query((mark(conn, sort)?, -1))?;
        let mut last = conn.prepare_cached(sql!("last_entry"))?;
        while let Some(row) = entries.next()? {
            let entry = read_entry(row)?;
            if entry.at_ms >= cut_ms {
                break;
            }
            // A history that is deleted together with its job is not counted separately.
            let goes_with_job = sort == Sort::History
                && due_before_ms(policy.job(entry.to), now_ms).is_some_and(|cut_ms| entry.at_ms < cut_ms);
            if sort.covers(entry.to)
                && !goes_with_job
                && entry.pos == last_of(&mut last, &entry.job)?
                && !(sort != Sort::History && keeps_job(conn, &entry.job)?)
            {
                *count_of(&mut found, sort) += 1;
            }
        }
    }
    let count = |sql, keep| -> Result<u64, Failure> {
        let Some(cut_ms) = due_before_ms(keep, now_ms) else { return Ok(0) };
        let count: i64 = conn.prepare_cached(sql)?.query_row([cut_ms], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    };
    found.keys = count(sql!("keys_due"), policy.keys)?;
    found.batches = count(sql!("batch/due_to_go"), policy.batches)?;
    found.workers = count(sql!("workers_due"), policy.workers)?;
    found.audit = count(sql!("audit/due"), policy.audit)?;
    found.inbox = count(sql!("inbox/processed_due"), policy.inbox)?;
    found.inbox_dead = count(sql!("inbox/dead_due"), policy.failed)?;
    Ok(found)
}

pub(super) const fn count_of(counts: &mut Prunable, sort: Sort) -> &mut u64 {
    match sort {
        Sort::Succeeded => &mut counts.succeeded,
        Sort::Canceled => &mut counts.canceled,
        Sort::Failed => &mut counts.failed,
        Sort::History => &mut counts.histories,
    }
}

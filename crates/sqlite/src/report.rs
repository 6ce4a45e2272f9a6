//! What handlers report while they run.

use milepost_core::ident::JobId;
use milepost_core::worker::Report;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::now_ms;
use crate::failure::Failure;
use crate::query;
use crate::row::Id;

/// Stores progress and checkpoints; answers in their order whether each was accepted.
pub(crate) fn report_many(conn: &Connection, reports: &[Report]) -> Result<Vec<bool>, Failure> {
    let now_ms = now_ms();
    let mut statement = conn.prepare_cached(query::REPORT)?;
    reports
        .iter()
        .map(|report| {
            let progress = report.progress.as_ref();
            let stored = statement.execute((
                Id(&report.run.job),
                report.run.token.0,
                progress.is_some(),
                progress.map(|progress| progress.done),
                progress.and_then(|progress| progress.total),
                progress.and_then(|progress| progress.message.as_deref()),
                report.checkpoint.as_deref(),
                now_ms,
            ))?;
            Ok(stored == 1)
        })
        .collect()
}

/// The last checkpoint of a job.
pub(crate) fn checkpoint(conn: &Connection, job: JobId) -> Result<Option<String>, Failure> {
    let found = conn.prepare_cached(query::CHECKPOINT)?.query_row([Id(&job)], |row| row.get(0)).optional()?;
    Ok(found.flatten())
}

//! Progress reports of running handlers.

use std::collections::HashMap;

use milepost_core::ident::JobId;
use milepost_core::sql;
use milepost_core::text::without_nul;
use milepost_core::worker::Report;
use rusqlite::{Connection, OptionalExtension};

use crate::clock::now_ms;
use crate::error::Failure;
use crate::row::Id;

/// Stores progress and checkpoints; returns whether each was accepted, in the order of the reports.
pub(crate) fn report_many(conn: &Connection, reports: &[Report]) -> Result<Vec<bool>, Failure> {
    let now_ms = now_ms();
    let mut statement = conn.prepare_cached(sql!("report"))?;
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
                progress.and_then(|progress| progress.message.as_deref().map(without_nul)),
                report.checkpoint.as_deref(),
                now_ms,
            ))?;
            Ok(stored == 1)
        })
        .collect()
}

/// Returns the last checkpoints of jobs that have one.
pub(crate) fn checkpoints(conn: &Connection, jobs: &[JobId]) -> Result<HashMap<JobId, String>, Failure> {
    let mut find = conn.prepare_cached(sql!("checkpoint"))?;
    let mut found = HashMap::new();
    for job in jobs {
        let checkpoint: Option<Option<String>> = find.query_row([Id(job)], |row| row.get(0)).optional()?;
        found.extend(checkpoint.flatten().map(|checkpoint| (*job, checkpoint)));
    }
    Ok(found)
}

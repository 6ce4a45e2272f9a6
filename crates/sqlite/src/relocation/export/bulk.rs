//! Export of bulk jobs.

use milepost_core::bulk::settings::Settings;
use milepost_core::ident::JobId;
use milepost_core::relocation::rows::{Bulk, BulkDefinition, BulkFailure, BulkFile, BulkSetting, BulkTarget};
use rusqlite::Row;
use rusqlite::types::Type;
use uuid::Uuid;

use super::Sql;
use crate::row;

pub(super) fn definition(row: &Row<'_>) -> Sql<BulkDefinition> {
    Ok(BulkDefinition {
        name: row.get(0)?,
        r#type: row.get(1)?,
        category: row.get(2)?,
        group: row.get(3)?,
        queue: row.get(4)?,
        priority: row.get(5)?,
        max_attempts: row.get(6)?,
        chunk_ms: row.get(7)?,
        chunk_rows_min: row.get(8)?,
        chunk_rows_max: row.get(9)?,
        rows_per_s: row.get(10)?,
        duty: row.get(11)?,
        failures_max: row.get(12)?,
        then: row.get(13)?,
        effects: row.get(14)?,
        fingerprint: row.get(15)?,
        columns: row.get(16)?,
        source: row::word(row, 17)?,
        updated_at: row::time(row, 18)?,
        place: row.get(19)?,
        statements: row.get(20)?,
    })
}

pub(super) fn bulk(row: &Row<'_>) -> Sql<Bulk> {
    Ok(Bulk {
        job: row::job_id(row, 0)?,
        origin: row::job_id(row, 1)?,
        retry_of: job_opt(row, 2)?,
        token: row::token(row, 3)?,
        fingerprint: row.get(4)?,
        surveyed_at: row::time_opt(row, 5)?,
        upper: row.get(6)?,
        total: row.get(7)?,
        total_exact: row.get(8)?,
        cursor: row.get(9)?,
        done: row.get(10)?,
        failed: row.get(11)?,
        chunks: row.get(12)?,
        chunk_rows: row.get(13)?,
        chunk_ms: row.get(14)?,
        busy_ms: row.get(15)?,
        held_ms: row.get(16)?,
        throttle: row.get(17)?,
        throttle_since: row::time_opt(row, 18)?,
        started_at: row::time_opt(row, 19)?,
        updated_at: row::time_opt(row, 20)?,
        ended_at: row::time_opt(row, 21)?,
    })
}

pub(super) fn setting(row: &Row<'_>) -> Sql<BulkSetting> {
    let settings = Settings {
        rows_per_s: row.get(1)?,
        duty: row.get(2)?,
        chunk_ms: row.get::<_, Option<i64>>(3)?.map(i64::unsigned_abs),
        chunk_rows_min: row.get(4)?,
        chunk_rows_max: row.get(5)?,
    };
    let (job, given, set_at) = (row::job_id(row, 0)?, row.get(6)?, row::time(row, 7)?);
    Ok(BulkSetting { job, settings, given, set_at })
}

pub(super) fn failure(row: &Row<'_>) -> Sql<BulkFailure> {
    Ok(BulkFailure {
        pos: row.get(0)?,
        job: row::job_id(row, 1)?,
        key: row.get(2)?,
        code: row.get(3)?,
        message: row.get(4)?,
        at: row::time(row, 5)?,
        retried_by: job_opt(row, 6)?,
    })
}

pub(super) fn file(row: &Row<'_>) -> Sql<BulkFile> {
    Ok(BulkFile {
        run: row::job_id(row, 0)?,
        name: row.get(1)?,
        rows: row.get(2)?,
        started_at: row::time_opt(row, 3)?,
        touched_at: row::time(row, 4)?,
    })
}

pub(super) fn target(row: &Row<'_>) -> Sql<BulkTarget> {
    Ok(BulkTarget { run: row::job_id(row, 0)?, n: row.get(1)?, row: row.get(2)? })
}

fn job_opt(row: &Row<'_>, column: usize) -> Sql<Option<JobId>> {
    let bytes: Option<Vec<u8>> = row.get(column)?;
    let id =
        |bytes: Vec<u8>| Uuid::from_slice(&bytes).map(JobId).map_err(|e| row::odd(column, Type::Blob, e));
    bytes.map(id).transpose()
}

//! Insertion of rows of bulk jobs.

use milepost_core::json::without_escaped_nul;
use milepost_core::relocation::rows::{Bulk, BulkDefinition, BulkFailure, BulkFile, BulkSetting, BulkTarget};
use milepost_core::sql;
use milepost_core::text::without_nul;

use super::{each, text, time};
use crate::session::Query;

pub(super) fn definitions(rows: &[BulkDefinition]) -> Query {
    sqlx::query(sql!("move/bulk_definition"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.r#type.as_deref()))
        .bind(each(rows, |r| r.category.as_deref()))
        .bind(each(rows, |r| r.group.as_str()))
        .bind(each(rows, |r| r.queue.as_str()))
        .bind(each(rows, |r| i16::from(r.priority)))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.chunk_ms))
        .bind(each(rows, |r| r.chunk_rows_min.cast_signed()))
        .bind(each(rows, |r| r.chunk_rows_max.cast_signed()))
        .bind(each(rows, |r| r.rows_per_s))
        .bind(each(rows, |r| r.duty))
        .bind(each(rows, |r| r.failures_max))
        .bind(each(rows, |r| r.then.as_deref()))
        .bind(each(rows, |r| r.effects.as_str()))
        .bind(each(rows, |r| r.fingerprint.as_str()))
        .bind(each(rows, |r| r.columns.as_deref()))
        .bind(each(rows, |r| r.source.as_str()))
        .bind(each(rows, |r| time(r.updated_at)))
        .bind(each(rows, |r| r.place.as_deref()))
        .bind(each(rows, |r| r.statements.as_deref()))
}

pub(super) fn bulks(rows: &[Bulk]) -> Query {
    sqlx::query(sql!("move/bulk"))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| r.origin.0))
        .bind(each(rows, |r| r.retry_of.map(|job| job.0)))
        .bind(each(rows, |r| r.token.0))
        .bind(each(rows, |r| r.fingerprint.as_deref()))
        .bind(each(rows, |r| r.surveyed_at.map(time)))
        .bind(each(rows, |r| r.upper.as_deref().map(without_escaped_nul)))
        .bind(each(rows, |r| r.total))
        .bind(each(rows, |r| r.total_exact))
        .bind(each(rows, |r| r.cursor.as_deref().map(without_escaped_nul)))
        .bind(each(rows, |r| r.done))
        .bind(each(rows, |r| r.failed))
        .bind(each(rows, |r| r.chunks))
        .bind(each(rows, |r| r.chunk_rows.map(u32::cast_signed)))
        .bind(each(rows, |r| r.chunk_ms))
        .bind(each(rows, |r| r.busy_ms))
        .bind(each(rows, |r| r.held_ms))
        .bind(each(rows, |r| text(&r.throttle)))
        .bind(each(rows, |r| r.throttle_since.map(time)))
        .bind(each(rows, |r| r.started_at.map(time)))
        .bind(each(rows, |r| r.updated_at.map(time)))
        .bind(each(rows, |r| r.ended_at.map(time)))
}

pub(super) fn settings(rows: &[BulkSetting]) -> Query {
    sqlx::query(sql!("move/bulk_setting"))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| r.settings.rows_per_s))
        .bind(each(rows, |r| r.settings.duty))
        .bind(each(rows, |r| r.settings.chunk_ms.map(u64::cast_signed)))
        .bind(each(rows, |r| r.settings.chunk_rows_min.map(u32::cast_signed)))
        .bind(each(rows, |r| r.settings.chunk_rows_max.map(u32::cast_signed)))
        .bind(each(rows, |r| r.given))
        .bind(each(rows, |r| time(r.set_at)))
}

pub(super) fn failures(rows: &[BulkFailure]) -> Query {
    sqlx::query(sql!("move/bulk_failure"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.job.0))
        .bind(each(rows, |r| without_escaped_nul(&r.key)))
        .bind(each(rows, |r| without_nul(&r.code)))
        .bind(each(rows, |r| without_nul(&r.message)))
        .bind(each(rows, |r| time(r.at)))
        .bind(each(rows, |r| r.retried_by.map(|job| job.0)))
}

pub(super) fn files(rows: &[BulkFile]) -> Query {
    sqlx::query(sql!("move/bulk_file"))
        .bind(each(rows, |r| r.run.0))
        .bind(each(rows, |r| without_nul(&r.name)))
        .bind(each(rows, |r| r.rows))
        .bind(each(rows, |r| r.started_at.map(time)))
        .bind(each(rows, |r| time(r.touched_at)))
}

pub(super) fn targets(rows: &[BulkTarget]) -> Query {
    sqlx::query(sql!("move/bulk_target"))
        .bind(each(rows, |r| r.run.0))
        .bind(each(rows, |r| r.n))
        .bind(each(rows, |r| r.row.as_str()))
}

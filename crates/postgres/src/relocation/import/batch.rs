//! Insertion of rows of DAGs and batches.

use milepost_core::dag::state::Counts;
use milepost_core::relocation::rows::{
    Batch, BatchInput, BatchNote, BatchSignal, BatchSpread, BatchTask, BatchWait, Dag, DagTask, DagVersion,
};
use milepost_core::sql;
use milepost_core::transition::Verb;

use super::{each, text, time};
use crate::session::Query;

pub(super) fn versions(rows: &[DagVersion]) -> Query {
    sqlx::query(sql!("move/dag_version"))
        .bind(each(rows, |r| r.id))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.number.cast_signed()))
        .bind(each(rows, |r| r.version.as_str()))
        .bind(each(rows, |r| r.tasks.cast_signed()))
        .bind(each(rows, |r| r.edges.cast_signed()))
        .bind(each(rows, |r| r.depth.cast_signed()))
        .bind(each(rows, |r| time(r.created_at)))
        .bind(each(rows, |r| r.input_schema.as_deref()))
        .bind(each(rows, |r| r.canonical.as_str()))
}

pub(super) fn dags(rows: &[Dag]) -> Query {
    sqlx::query(sql!("move/dag"))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.latest))
        .bind(each(rows, |r| time(r.updated_at)))
}

pub(super) fn dag_tasks(rows: &[DagTask]) -> Query {
    sqlx::query(sql!("move/dag_task"))
        .bind(each(rows, |r| r.version))
        .bind(each(rows, |r| r.task.cast_signed()))
        .bind(each(rows, |r| r.rule.as_str()))
        .bind(each(rows, |r| r.plain))
        .bind(each(rows, |r| r.pre_cnt.cast_signed()))
        .bind(each(rows, |r| r.key.as_str()))
        .bind(each(rows, |r| r.kind.as_deref()))
        .bind(each(rows, |r| r.queue.as_str()))
        .bind(each(rows, |r| i16::from(r.priority)))
        .bind(each(rows, |r| r.group.as_deref()))
        .bind(each(rows, |r| r.max_attempts.cast_signed()))
        .bind(each(rows, |r| r.timeout_ms))
        .bind(each(rows, |r| r.reads.as_str()))
        .bind(each(rows, |r| r.spec.as_str()))
        .bind(each(rows, |r| r.successors.as_str()))
        .bind(each(rows, |r| r.predecessors.as_str()))
}

pub(super) fn batches(rows: &[Batch]) -> Query {
    let counts = |of: fn(&Counts) -> u64| each(rows, |r| i32::try_from(of(&r.counts)).unwrap_or(i32::MAX));
    sqlx::query(sql!("move/batch"))
        .bind(each(rows, |r| r.id.0))
        .bind(each(rows, |r| r.dag.as_str()))
        .bind(each(rows, |r| r.version))
        .bind(each(rows, |r| r.key.as_deref()))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| r.stop.map(Verb::as_str)))
        .bind(each(rows, |r| r.generation.cast_signed()))
        .bind(counts(|c| c.waiting))
        .bind(counts(|c| c.due))
        .bind(counts(|c| c.active))
        .bind(counts(|c| c.failed))
        .bind(counts(|c| c.aborted))
        .bind(counts(|c| c.succeeded))
        .bind(counts(|c| c.skipped))
        .bind(counts(|c| c.canceled))
        .bind(each(rows, |r| r.parent.map(|batch| batch.0)))
        .bind(each(rows, |r| r.parent_task.map(u32::cast_signed)))
        .bind(each(rows, |r| r.items_of.map(u32::cast_signed)))
        .bind(each(rows, |r| r.depth.cast_signed()))
        .bind(each(rows, |r| r.nominal_at.map(time)))
        .bind(each(rows, |r| time(r.created_at)))
        .bind(each(rows, |r| time(r.updated_at)))
        .bind(each(rows, |r| r.ended_at.map(time)))
        .bind(each(rows, |r| r.traceparent.map(|it| it.to_string())))
        .bind(each(rows, |r| r.nominal_zone.as_deref()))
}

pub(super) fn inputs(rows: &[BatchInput]) -> Query {
    sqlx::query(sql!("move/batch_input"))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| r.input.as_str()))
}

pub(super) fn tasks(rows: &[BatchTask]) -> Query {
    sqlx::query(sql!("move/batch_task"))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| r.task.cast_signed()))
        .bind(each(rows, |r| r.generation.cast_signed()))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| r.job.map(|job| job.0)))
        .bind(each(rows, |r| r.child.map(|batch| batch.0)))
        .bind(each(rows, |r| r.tally.open().cast_signed()))
        .bind(each(rows, |r| r.tally.succeeded.cast_signed()))
        .bind(each(rows, |r| r.tally.failed.cast_signed()))
        .bind(each(rows, |r| r.tally.skipped.cast_signed()))
        .bind(each(rows, |r| r.tally.canceled.cast_signed()))
}

pub(super) fn spreads(rows: &[BatchSpread]) -> Query {
    sqlx::query(sql!("move/batch_spread"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| r.task.cast_signed()))
        .bind(each(rows, |r| r.was.as_str()))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| r.position.cast_signed()))
}

pub(super) fn waits(rows: &[BatchWait]) -> Query {
    sqlx::query(sql!("move/batch_wait"))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| r.task.cast_signed()))
        .bind(each(rows, |r| r.signal.as_deref()))
        .bind(each(rows, |r| time(r.since)))
        .bind(each(rows, |r| r.until.map(time)))
        .bind(each(rows, |r| r.on_timeout.as_str()))
        .bind(each(rows, |r| r.check_at.map(time)))
        .bind(each(rows, |r| r.output.as_deref()))
}

pub(super) fn signals(rows: &[BatchSignal]) -> Query {
    sqlx::query(sql!("move/batch_signal"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| r.id.as_str()))
        .bind(each(rows, |r| r.name.as_str()))
        .bind(each(rows, |r| r.state.as_str()))
        .bind(each(rows, |r| time(r.sent_at)))
        .bind(each(rows, |r| r.payload.as_str()))
}

pub(super) fn notes(rows: &[BatchNote]) -> Query {
    sqlx::query(sql!("move/batch_history"))
        .bind(each(rows, |r| r.pos))
        .bind(each(rows, |r| r.batch.0))
        .bind(each(rows, |r| time(r.at)))
        .bind(each(rows, |r| r.generation.cast_signed()))
        .bind(each(rows, |r| r.task.map(u32::cast_signed)))
        .bind(each(rows, |r| text(&r.key)))
        .bind(each(rows, |r| r.job.map(|job| job.0)))
        .bind(each(rows, |r| r.verb.as_str()))
        .bind(each(rows, |r| r.from.as_deref()))
        .bind(each(rows, |r| r.to.as_str()))
        .bind(each(rows, |r| text(&r.note)))
}

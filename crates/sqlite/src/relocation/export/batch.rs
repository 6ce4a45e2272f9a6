//! Export of DAGs and batches.

use milepost_core::dag::state::Counts;
use milepost_core::relocation::rows::{
    Batch, BatchInput, BatchNote, BatchSignal, BatchSpread, BatchTask, BatchWait, Dag, DagTask, DagVersion,
};
use rusqlite::Row;

use super::Sql;
use crate::batch::tally;
use crate::row;

pub(super) fn version(row: &Row<'_>) -> Sql<DagVersion> {
    Ok(DagVersion {
        id: row.get(0)?,
        name: row.get(1)?,
        number: row.get(2)?,
        version: row.get(3)?,
        tasks: row.get(4)?,
        edges: row.get(5)?,
        depth: row.get(6)?,
        created_at: row::time(row, 7)?,
        input_schema: row.get(8)?,
        canonical: row.get(9)?,
    })
}

pub(super) fn dag(row: &Row<'_>) -> Sql<Dag> {
    Ok(Dag { name: row.get(0)?, latest: row.get(1)?, updated_at: row::time(row, 2)? })
}

pub(super) fn dag_task(row: &Row<'_>) -> Sql<DagTask> {
    Ok(DagTask {
        version: row.get(0)?,
        task: row.get(1)?,
        rule: row::word(row, 2)?,
        plain: row.get(3)?,
        pre_cnt: row.get(4)?,
        key: row.get(5)?,
        kind: row.get(6)?,
        queue: row.get(7)?,
        priority: row.get(8)?,
        group: row.get(9)?,
        max_attempts: row.get(10)?,
        timeout_ms: row.get(11)?,
        reads: row.get(12)?,
        spec: row.get(13)?,
        successors: row.get(14)?,
        predecessors: row.get(15)?,
    })
}

pub(super) fn batch(row: &Row<'_>) -> Sql<Batch> {
    Ok(Batch {
        id: row::batch_id(row, 0)?,
        dag: row.get(1)?,
        version: row.get(2)?,
        key: row.get(3)?,
        state: row::word(row, 4)?,
        stop: row::word_opt(row, 5)?,
        generation: row.get(6)?,
        counts: counts(row, 7)?,
        parent: row::batch_opt(row, 15)?,
        parent_task: row.get(16)?,
        items_of: row.get(17)?,
        depth: row.get(18)?,
        nominal_at: row::time_opt(row, 19)?,
        created_at: row::time(row, 20)?,
        updated_at: row::time(row, 21)?,
        ended_at: row::time_opt(row, 22)?,
        traceparent: row::trace_opt(row, 23)?,
        nominal_zone: row.get(24)?,
    })
}

/// Reads the task counts by state, in the order of the columns.
fn counts(row: &Row<'_>, column: usize) -> Sql<Counts> {
    let count = |at: usize| row.get::<_, u32>(column + at).map(u64::from);
    Ok(Counts {
        waiting: count(0)?,
        due: count(1)?,
        active: count(2)?,
        failed: count(3)?,
        aborted: count(4)?,
        succeeded: count(5)?,
        skipped: count(6)?,
        canceled: count(7)?,
    })
}

pub(super) fn input(row: &Row<'_>) -> Sql<BatchInput> {
    Ok(BatchInput { batch: row::batch_id(row, 0)?, input: row.get(1)? })
}

pub(super) fn task(row: &Row<'_>) -> Sql<BatchTask> {
    Ok(BatchTask {
        batch: row::batch_id(row, 0)?,
        task: row.get(1)?,
        generation: row.get(2)?,
        state: row::word(row, 3)?,
        job: row::job_opt(row, 4)?,
        child: row::batch_opt(row, 5)?,
        tally: tally(row, 6)?,
    })
}

pub(super) fn spread(row: &Row<'_>) -> Sql<BatchSpread> {
    Ok(BatchSpread {
        pos: row.get(0)?,
        batch: row::batch_id(row, 1)?,
        task: row.get(2)?,
        was: row::word(row, 3)?,
        state: row::word(row, 4)?,
        position: row.get(5)?,
    })
}

pub(super) fn wait(row: &Row<'_>) -> Sql<BatchWait> {
    Ok(BatchWait {
        batch: row::batch_id(row, 0)?,
        task: row.get(1)?,
        signal: row.get(2)?,
        since: row::time(row, 3)?,
        until: row::time_opt(row, 4)?,
        on_timeout: row::word(row, 5)?,
        check_at: row::time_opt(row, 6)?,
        output: row.get(7)?,
    })
}

pub(super) fn signal(row: &Row<'_>) -> Sql<BatchSignal> {
    Ok(BatchSignal {
        pos: row.get(0)?,
        batch: row::batch_id(row, 1)?,
        id: row.get(2)?,
        name: row.get(3)?,
        state: row.get(4)?,
        sent_at: row::time(row, 5)?,
        payload: row.get(6)?,
    })
}

pub(super) fn note(row: &Row<'_>) -> Sql<BatchNote> {
    Ok(BatchNote {
        pos: row.get(0)?,
        batch: row::batch_id(row, 1)?,
        at: row::time(row, 2)?,
        generation: row.get(3)?,
        task: row.get(4)?,
        key: row.get(5)?,
        job: row::job_opt(row, 6)?,
        verb: row::word(row, 7)?,
        from: row.get(8)?,
        to: row.get(9)?,
        note: row.get(10)?,
    })
}

//! Listings of batches for operators.

use milepost_core::batch::listing::{
    BatchDetail, BatchEntry, BatchFilter, BatchView, ParentTask, TaskFilter, TaskView,
};
use milepost_core::batch::wait::WaitView;
use milepost_core::dag::state::{BatchState, Counts, TaskState};
use milepost_core::dag::wait::OnTimeout;
use milepost_core::ident::{BatchId, JobId};
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::postgres::PgRow;
use sqlx::{Row, ValueRef};
use uuid::Uuid;

use crate::row::{Decoded, count, json, named, started_by, time};
use crate::session::Query;
use crate::store::PostgresStore;

impl PostgresStore {
    pub(super) async fn list_batches(&self, filter: &BatchFilter) -> StoreResult<Vec<BatchView>> {
        self.listed("batches", self.inner.calm.rows(batches(filter, None)).await, batch_view)
    }

    pub(super) async fn find_batch(&self, batch: BatchId) -> StoreResult<Option<BatchDetail>> {
        let filter = BatchFilter { inner: true, limit: 1, ..BatchFilter::default() };
        let fail = |e| self.fail("batch", e);
        let found = self.inner.lookups().row(batches(&filter, Some(batch))).await.map_err(fail)?;
        let Some(found) = found else { return Ok(None) };
        let event =
            self.inner.lookups().row(sqlx::query(sql!("started_by")).bind(batch.0)).await.map_err(fail)?;
        let detail = |row: &PgRow| {
            let (input, event) = (json(row, "input")?.unwrap_or_default(), event.as_ref());
            let started_by = event.map(started_by).transpose()?.flatten();
            Ok(BatchDetail { row: batch_view(row)?, input, started_by })
        };
        detail(&found).map(Some).map_err(fail)
    }

    pub(super) async fn list_tasks(&self, batch: BatchId, filter: &TaskFilter) -> StoreResult<Vec<TaskView>> {
        let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
        let tasks: Vec<i32> = filter.tasks.iter().map(|task| task.cast_signed()).collect();
        let query = sqlx::query(sql!("batch/tasks"))
            .bind(batch.0)
            .bind((!states.is_empty()).then_some(states))
            .bind((!tasks.is_empty()).then_some(tasks))
            .bind(filter.after.map(u32::cast_signed))
            .bind(i64::from(filter.limit));
        // Uses pinned plans, which join in one fixed order, task by task.
        self.listed("batch_tasks", self.inner.hot.rows(query).await, task_view)
    }

    pub(super) async fn entries(
        &self,
        batch: BatchId,
        after: i64,
        limit: u32,
    ) -> StoreResult<Vec<BatchEntry>> {
        let query = sqlx::query(sql!("batch/history")).bind(batch.0).bind(after).bind(i64::from(limit));
        self.listed("batch_history", self.inner.calm.rows(query).await, entry)
    }

    pub(super) async fn last_entries(&self, batch: BatchId, limit: u32) -> StoreResult<Vec<BatchEntry>> {
        let query = sqlx::query(sql!("batch/last")).bind(batch.0).bind(i64::from(limit));
        self.listed("last_of_batch", self.inner.calm.rows(query).await, entry)
    }
}

fn batches(filter: &BatchFilter, only: Option<BatchId>) -> Query {
    sqlx::query(sql!("batch/batches"))
        .bind(filter.dag.clone())
        .bind(filter.state.map(BatchState::as_str))
        .bind(filter.key.clone())
        .bind(filter.inner)
        .bind(filter.before.map(|batch| batch.0))
        .bind(i64::from(filter.limit))
        .bind(only.map(|batch| batch.0))
}

fn batch_view(row: &PgRow) -> Decoded<BatchView> {
    let version: &str = row.try_get("version")?;
    let parent = match row.try_get::<Option<Uuid>, _>("parent_id")? {
        Some(batch) => Some(ParentTask {
            batch: BatchId(batch),
            task: row.try_get::<Option<i32>, _>("parent_task")?.map(i32::unsigned_abs),
            key: row.try_get("parent_key")?,
            items: row.try_get("items")?,
        }),
        None => None,
    };
    Ok(BatchView {
        id: BatchId(row.try_get("id")?),
        dag: row.try_get("dag")?,
        number: count(row, "number")?,
        version: version.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))?,
        key: row.try_get("key")?,
        state: named(row, "state")?,
        stopped: row.try_get("stopped")?,
        generation: count(row, "generation")?,
        counts: counts(row)?,
        parent,
        nominal_at: time(row, "nominal_at")?,
        nominal_zone: row.try_get("nominal_zone")?,
        created_at: time(row, "created_at")?.unwrap_or_default(),
        updated_at: time(row, "updated_at")?.unwrap_or_default(),
        ended_at: time(row, "ended_at")?,
    })
}

fn counts(row: &PgRow) -> Decoded<Counts> {
    let of = |state: TaskState| Decoded::Ok(u64::from(count(row, state.as_str())?));
    Ok(Counts {
        waiting: of(TaskState::Waiting)?,
        due: of(TaskState::Due)?,
        active: of(TaskState::Active)?,
        failed: of(TaskState::Failed)?,
        aborted: of(TaskState::Aborted)?,
        succeeded: of(TaskState::Succeeded)?,
        skipped: of(TaskState::Skipped)?,
        canceled: of(TaskState::Canceled)?,
    })
}

fn task_view(row: &PgRow) -> Decoded<TaskView> {
    let has_job_state = !row.try_get_raw("job_state")?.is_null();
    Ok(TaskView {
        task: count(row, "task")?,
        key: row.try_get("key")?,
        state: named(row, "state")?,
        generation: count(row, "generation")?,
        pre_cnt: count(row, "pre_cnt")?,
        job: row.try_get::<Option<Uuid>, _>("job_id")?.map(JobId),
        batch: row.try_get::<Option<Uuid>, _>("child_id")?.map(BatchId),
        job_state: if has_job_state { Some(named(row, "job_state")?) } else { None },
        attempt: row.try_get::<Option<i32>, _>("attempt")?.map(i32::unsigned_abs),
        released_at: time(row, "released_at")?,
        started_at: time(row, "started_at")?,
        ended_at: time(row, "ended_at")?,
        progress: match row.try_get::<Option<i64>, _>("done")? {
            Some(done) => Some((done, row.try_get("total")?)),
            None => None,
        },
        error: row.try_get("error")?,
        wait: wait_view(row)?,
    })
}

fn wait_view(row: &PgRow) -> Decoded<Option<WaitView>> {
    let Some(since) = time(row, "wait_since")? else { return Ok(None) };
    let state: TaskState = named(row, "on_timeout")?;
    let on_timeout = OnTimeout::of_state(state);
    let spec: Option<&str> = row.try_get("wait_spec")?;
    Ok(Some(WaitView::new(row.try_get("wait_signal")?, since, time(row, "wait_until")?, on_timeout, spec)))
}

fn entry(row: &PgRow) -> Decoded<BatchEntry> {
    Ok(BatchEntry {
        pos: row.try_get("pos")?,
        at: time(row, "at")?.unwrap_or_default(),
        generation: count(row, "generation")?,
        task: row.try_get::<Option<i32>, _>("task")?.map(i32::unsigned_abs),
        key: row.try_get("key")?,
        job: row.try_get::<Option<Uuid>, _>("job_id")?.map(JobId),
        verb: named(row, "verb")?,
        from: row.try_get("from_state")?,
        to: row.try_get("to_state")?,
        note: row.try_get("note")?,
    })
}

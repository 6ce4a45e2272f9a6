//! Operations on batches, by operators and by maintenance.

use std::time::Instant;

use milepost_core::audit::AuditedAction;
use milepost_core::batch::due::{self, WORKS_OUT_FOR};
use milepost_core::batch::operation::{BatchOperated, BatchOperation, BatchVerb, SeenBatch};
use milepost_core::batch::wait::WAITS_A_PAGE;
use milepost_core::dag::version::Version;
use milepost_core::duration::whole_ms;
use milepost_core::port::StoreResult;
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::due::{WorkedOut, become_as_worked_out, go_on, work_out};
use super::error::{ILLEGAL, operation_error};
use super::version::fit;
use crate::row::{self, Decoded};
use crate::session::{Query, Session};
use crate::store::PostgresStore;

impl PostgresStore {
    pub(super) async fn operate_on(&self, operation: &BatchOperation) -> StoreResult<BatchOperated> {
        let action = AuditedAction::operate_batch(operation);
        let in_version = async |tx: &mut Session<'_>| match fit(tx, operation).await? {
            Ok(()) => {
                let operate = async |tx: &mut Session<'_>| operate_in(tx, operation).await;
                self.noted(tx, &action, operate, BatchOperated::told).await.map(Ok)
            }
            Err(refused) => Ok(Err(refused)),
        };
        match self.inner.calm.atomically(in_version).await {
            Ok(Ok(operated)) => {
                if operated.told().is_none() {
                    self.confirm_replication().await?;
                }
                Ok(operated)
            }
            Ok(Err(refused)) => Err(self.when_replicated(refused).await),
            Err(error) => {
                let named = crate::error::database_error(&error).map(|e| (task_in(e.message()), e.code()));
                let named = match named {
                    Some((Some(task), ILLEGAL)) => self.task_key(operation, task).await,
                    // The task does not exist.
                    Some((Some(task), _)) => Some(task.to_string()),
                    _ => None,
                };
                let what = operation.what.participle();
                let refused = operation_error(&self.inner.place, operation.batch, |_| named, what, error);
                Err(self.when_replicated(refused).await)
            }
        }
    }

    /// Returns the key of the task that an error names by its number.
    async fn task_key(&self, operation: &BatchOperation, task: i32) -> Option<String> {
        let query = sqlx::query(sql!("batch/task_key")).bind(operation.batch.0).bind(task);
        let key = self.inner.calm.row(query).await.ok()?.map(|row| row.try_get(0));
        Some(key.and_then(Result::ok).unwrap_or_else(|| task.to_string()))
    }

    /// Processes one page of pending work for batches.
    pub(super) async fn advance(&self) -> StoreResult<u64> {
        let fail = |e| self.fail("advance_batches", e);
        let left = self.inner.hot.row(sqlx::query(sql!("batch/left_over"))).await;
        let (work, waits) = left.and_then(left_over).map_err(fail)?;
        let waited = if waits { self.inner.hot.atomically(settle_waits).await.map_err(fail)? } else { 0 };
        if !work {
            return Ok(waited);
        }
        let WorkedOut { count, large } = self.inner.hot.atomically(advance_in).await.map_err(fail)?;
        let count = count + waited;
        if large.is_empty() {
            return Ok(count);
        }
        // Runs on a blocking thread and outside of a transaction, so that it delays neither locks nor the runtime.
        let large = tokio::task::spawn_blocking(|| {
            let begun = Instant::now();
            due::work_out(large, || begun.elapsed() >= WORKS_OUT_FOR)
        });
        let large = large.await.map_err(|panic| fail(sqlx::Error::Decode(Box::new(panic))))?;
        let became = async move |tx: &mut Session<'_>| become_as_worked_out(tx, large).await;
        Ok(count + self.inner.hot.atomically(became).await.map_err(fail)?)
    }
}

/// Reads whether batches have work, and waits to check.
fn left_over(row: Option<PgRow>) -> Decoded<(bool, bool)> {
    let row = row.ok_or(sqlx::Error::RowNotFound)?;
    Ok((row.try_get("work")?, row.try_get("waits")?))
}

/// Checks a page of waits; returns how many signals and waits were checked.
async fn settle_waits(tx: &mut Session<'_>) -> Decoded<u64> {
    let query = sqlx::query(sql!("batch/settle_waits")).bind(WAITS_A_PAGE.cast_signed());
    let row = tx.row(query).await?.ok_or(sqlx::Error::RowNotFound)?;
    let checked: i32 = row.try_get("checked")?;
    go_on(tx, Some(&row)).await?;
    Ok(u64::from(checked.unsigned_abs()))
}

async fn advance_in(tx: &mut Session<'_>) -> Decoded<WorkedOut> {
    let spread = tx.row(sqlx::query(sql!("batch/spread"))).await?.ok_or(sqlx::Error::RowNotFound)?;
    let counted: i32 = spread.try_get("counted")?;
    // If the end of a task was propagated to its successors, the page is full.
    if counted > 0 {
        return Ok(WorkedOut { count: u64::from(counted.unsigned_abs()), ..WorkedOut::default() });
    }
    work_out(tx, None).await
}

async fn operate_in(tx: &mut Session<'_>, operation: &BatchOperation) -> Decoded<BatchOperated> {
    let row = tx.row(query(operation)).await?.ok_or(sqlx::Error::RowNotFound)?;
    let mut operated = BatchOperated::default();
    let number = |column: &str| Decoded::Ok(row.try_get::<i64, _>(column)?.unsigned_abs());
    match &operation.what {
        BatchVerb::Abort | BatchVerb::Resume | BatchVerb::Cancel { .. } => {
            operated.changed = number("changed")?;
            operated.stopping = number("stopping")?;
        }
        BatchVerb::Mark { .. } => operated.changed = 1,
        BatchVerb::Rerun { .. } | BatchVerb::RerunFailed { .. } | BatchVerb::RerunIn { .. } => {
            operated.changed = number("changed")?;
        }
    }
    // Evaluates the tasks that the operation made due; maintenance does the rest.
    work_out(tx, Some(&[operation.batch.0])).await?;
    let generation = tx.row(sqlx::query(sql!("batch/generation")).bind(operation.batch.0)).await;
    operated.generation = generation.and_then(row::value::<i32>)?.unsigned_abs();
    Ok(operated)
}

fn query(operation: &BatchOperation) -> Query {
    let note = operation.reason().map(str::to_owned);
    let grace_ms = whole_ms(operation.grace);
    let generation = operation.generation.map(u32::cast_signed);
    let numbers = |tasks: &[u32]| tasks.iter().map(|task| task.cast_signed()).collect::<Vec<_>>();
    let of = |sql: &'static str| sqlx::query(sql).bind(operation.batch.0);
    let rerun = |tasks: &[u32], version: Option<Version>, inside: Option<&[SeenBatch]>| {
        let seen = inside.unwrap_or_default();
        of(sql!("batch/rerun"))
            .bind(numbers(tasks))
            .bind(note.clone())
            .bind(generation)
            .bind(version.map(|version| version.to_string()))
            .bind(inside.is_some())
            .bind(seen.iter().map(|seen| seen.batch.0).collect::<Vec<_>>())
            .bind(seen.iter().map(|seen| seen.generation.cast_signed()).collect::<Vec<_>>())
    };
    match &operation.what {
        BatchVerb::Abort => of(sql!("batch/abort")).bind(note).bind(grace_ms).bind(generation),
        BatchVerb::Resume => of(sql!("batch/resume")).bind(note).bind(generation),
        BatchVerb::Cancel { tasks } => {
            of(sql!("batch/cancel")).bind(numbers(tasks)).bind(note).bind(grace_ms).bind(generation)
        }
        BatchVerb::Mark { task, state } => {
            of(sql!("batch/mark")).bind(task.cast_signed()).bind(state.as_str()).bind(note).bind(generation)
        }
        BatchVerb::Rerun { tasks } => rerun(tasks, None, None),
        BatchVerb::RerunFailed { tasks, inside } => rerun(tasks, None, Some(inside)),
        BatchVerb::RerunIn { version, tasks, inside } => rerun(tasks, Some(*version), inside.as_deref()),
    }
}

/// Parses the task number that an error names: "task 7 of batch …", "batch … has no task 7".
fn task_in(message: &str) -> Option<i32> {
    let (_, rest) = message.split_once("task ")?;
    rest.split(' ').next()?.parse().ok()
}

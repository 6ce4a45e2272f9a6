//! Recovery of runs of dead workers, and of runs that did not stop in time.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::finish::{End, Finish};
use milepost_core::ident::{JobId, Run, RunToken, WorkerId};
use milepost_core::port::{MaintenanceStore, RetryDelay, StoreResult};
use milepost_core::rescue::{LostEnd, LostRun};
use milepost_core::retention::{Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::sql;
use milepost_core::transition::Verb;
use milepost_core::worker::{Backoffs, Rescued};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::finish;
use crate::row::{self, Decoded, named, stop_verb};
use crate::session::Session;
use crate::store::PostgresStore;

#[async_trait]
impl MaintenanceStore for PostgresStore {
    async fn rescue_expired(&self, limit: u32, delay: RetryDelay<'_>) -> StoreResult<Vec<Rescued>> {
        let fail = |e| self.fail("rescue_expired", e);
        self.follow_clock().await.map_err(fail)?;
        let mut rescued = Vec::new();
        // Workers whose runs are all taken back, or are locked by transactions that must end first.
        let mut done: Vec<i32> = Vec::new();
        loop {
            let left = limit.saturating_sub(u32::try_from(rescued.len()).unwrap_or(u32::MAX));
            if left == 0 {
                return Ok(rescued);
            }
            let one = async |tx: &mut Session<'_>| rescue_next(tx, &done, left, delay).await;
            let Some((worker, mut lost)) = self.inner.hot.atomically(one).await.map_err(fail)? else {
                return Ok(rescued);
            };
            if u32::try_from(lost.len()).is_ok_and(|taken| taken < left) {
                done.push(worker);
            }
            rescued.append(&mut lost);
        }
    }

    async fn stop_overdue(&self, limit: u32) -> StoreResult<Vec<JobId>> {
        let stopped = self.inner.hot.atomically(async |tx| stop_late(tx, limit).await).await;
        stopped.map_err(|e| self.fail("stop_overdue", e))
    }

    async fn fill_groups(&self) -> StoreResult<u64> {
        self.fill_free_groups().await
    }

    async fn notice_promotion(&self) -> StoreResult<Option<u32>> {
        let row = self.inner.calm.row(sqlx::query(sql!("note_timeline"))).await;
        let timeline =
            row.and_then(row::value::<Option<i32>>).map_err(|e| self.fail("notice_promotion", e))?;
        Ok(timeline.and_then(|timeline| u32::try_from(timeline).ok()))
    }

    async fn may_delete(&self) -> StoreResult<bool> {
        self.may_delete_by_clock().await.map_err(|e| self.fail("may_delete", e))
    }

    async fn prune(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        policy.check()?;
        self.prune_batch(policy, pace).await
    }

    async fn prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        policy.check()?;
        self.count_prunable(policy).await
    }
}

/// Takes back the runs of the next dead worker that is not in `done`; `None` if there is none.
async fn rescue_next(
    tx: &mut Session<'_>,
    done: &[i32],
    limit: u32,
    delay: RetryDelay<'_>,
) -> Decoded<Option<(i32, Vec<Rescued>)>> {
    let Some(expired) = tx.row(sqlx::query(sql!("expired_worker")).bind(done)).await? else {
        return Ok(None);
    };
    let worker: i32 = expired.try_get(0)?;
    // An invalid value, written by another program, counts as no backoff settings.
    let backoffs: Backoffs = serde_json::from_str(expired.try_get(1)?).unwrap_or_default();
    let delay = |kind: &str, attempt: u32| delay(kind, attempt, backoffs.get(kind));
    tx.execute(sqlx::query(sql!("mark_worker_lost")).bind(worker)).await?;
    let lost = rescue_worker(tx, WorkerId(worker), limit, &delay).await?;
    tx.execute(sqlx::query(sql!("clear_worker")).bind(worker)).await?;
    Ok(Some((worker, lost)))
}

/// Returns how long a job of this kind waits after this attempt.
type Delay<'a> = &'a (dyn Fn(&str, u32) -> Duration + Send + Sync);

/// Takes back the runs of a dead worker.
async fn rescue_worker(
    tx: &mut Session<'_>,
    worker: WorkerId,
    limit: u32,
    delay: Delay<'_>,
) -> Decoded<Vec<Rescued>> {
    tx.execute(sqlx::query(sql!("batch/join_of_worker")).bind(worker.0)).await?;
    let rows = tx.rows(sqlx::query(sql!("lost_runs")).bind(worker.0).bind(i64::from(limit))).await?;
    let ends =
        rows.iter().map(|row| lost_run(row, worker, delay)).collect::<Decoded<Vec<(Verb, Finish)>>>()?;
    let with = |verbs: &[Verb]| -> Vec<&Finish> {
        ends.iter().filter(|(verb, _)| verbs.contains(verb)).map(|(_, finish)| finish).collect()
    };
    let (stopped, back) = (with(&[Verb::Cancel, Verb::Abort]), with(&[Verb::Retry, Verb::Fail]));
    if !stopped.is_empty() {
        finish::stop(tx, &stopped, Some(worker)).await?;
    }
    if !back.is_empty() {
        finish::take_back(tx, &back, worker).await?;
    }
    finish::settle_tasks(tx, ends.iter().map(|(_, finish)| finish)).await?;
    free_groups(tx, with(&[Verb::Cancel, Verb::Abort, Verb::Fail]).into_iter()).await?;
    Ok(ends.iter().map(|(verb, finish)| Rescued { run: finish.run, worker, verb: *verb }).collect())
}

/// Reads a run whose worker died, and how it ends. A requested stop is read from the job's row when it is written; only its failure is given.
fn lost_run(row: &PgRow, worker: WorkerId, delay: Delay<'_>) -> Decoded<(Verb, Finish)> {
    let number = |column: &str| row.try_get::<i32, _>(column).map(i32::unsigned_abs);
    let (attempt, max_attempts) = (number("attempt")?, number("max_attempts")?);
    let (stop, progressed) = (stop_verb(row, "stop_verb")?, row.try_get("progressed")?);
    let (lost, kind) = (LostRun { attempt, max_attempts, stop, progressed }, row.try_get("kind")?);
    let LostEnd { verb, delay, failure } = lost.end(worker, || delay(kind, lost.failures()));
    let end = if verb == Verb::Retry { End::Retry { delay, failure } } else { End::Fail { failure } };
    let finish = Finish { run: run(row)?, end, grouped: row.try_get("grouped")?, task: row.try_get("task")? };
    Ok((verb, finish))
}

/// Ends runs that were asked to stop and did not stop in time.
async fn stop_late(tx: &mut Session<'_>, limit: u32) -> Decoded<Vec<JobId>> {
    let overdue = tx.rows(sqlx::query(sql!("batch/join_overdue")).bind(i64::from(limit))).await?;
    if overdue.is_empty() {
        return Ok(Vec::new());
    }
    let overdue: Vec<Uuid> = row::values(overdue)?;
    let rows = tx.rows(sqlx::query(sql!("overdue_stops")).bind(overdue)).await?;
    let stop = |row: &PgRow| {
        let end = if named::<Verb>(row, "verb")? == Verb::Abort { End::Abort } else { End::Cancel };
        Ok(Finish { run: run(row)?, end, grouped: row.try_get("grouped")?, task: row.try_get("task")? })
    };
    let stops = rows.iter().map(stop).collect::<Decoded<Vec<Finish>>>()?;
    if stops.is_empty() {
        return Ok(Vec::new());
    }
    let stopped = finish::stop(tx, &stops.iter().collect::<Vec<_>>(), None).await?;
    finish::settle_tasks(tx, stops.iter()).await?;
    free_groups(tx, stops.iter()).await?;
    Ok(stopped.into_iter().map(JobId).collect())
}

fn run(row: &PgRow) -> Decoded<Run> {
    Ok(Run { job: JobId(row.try_get("id")?), token: RunToken(row.try_get("token")?) })
}

async fn free_groups<'a>(tx: &mut Session<'_>, ends: impl Iterator<Item = &'a Finish>) -> Decoded<()> {
    let grouped: Vec<Uuid> = ends.filter(|finish| finish.grouped).map(|finish| finish.run.job.0).collect();
    if !grouped.is_empty() {
        tx.execute(sqlx::query(sql!("free_groups")).bind(grouped)).await?;
    }
    Ok(())
}

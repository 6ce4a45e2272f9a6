//! Forgetting what is over, a bounded batch a transaction.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff_sqlx::Timestamp;
use milepost_core::duration::whole_ms;
use milepost_core::port::StoreResult;
use milepost_core::retention::{Keep, Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::state::JobState;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;
use crate::session::Query;
use crate::statement;
use crate::store::PostgresStore;

/// The states in which jobs are forgotten in time.
const STATES: [JobState; 4] = [JobState::Succeeded, JobState::Canceled, JobState::Skipped, JobState::Failed];

/// Where the last batch of each state came to. The entries of what was forgotten stay in the index until vacuum
/// comes; the next batch starts behind them. One that finds nothing lets the next look from the start again.
#[derive(Debug, Default)]
pub(crate) struct Reached(Mutex<[Option<Timestamp>; STATES.len()]>);

impl Reached {
    fn get(&self, at: usize) -> Option<Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(at).copied().flatten()
    }

    fn set(&self, at: usize, reached: Option<Timestamp>) {
        if let Some(place) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
            *place = reached;
        }
    }
}

impl PostgresStore {
    /// One batch of each sort, unless it is another process's turn.
    pub(crate) async fn prune_batch(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        if pace.rest == 0 {
            return self.prune_all(policy, pace.limit).await;
        }
        if self.change(sqlx::query(statement::TAKE_TURN)).await? == 0 {
            return Ok(Pruned::default());
        }
        let began = Instant::now();
        let pruned = self.prune_all(policy, pace.limit).await;
        let rest = if matches!(&pruned, Ok(Pruned { rows: 0, .. })) { 0 } else { pace.rest };
        self.change(sqlx::query(statement::PASS_TURN).bind(whole_ms(began.elapsed() * rest))).await?;
        pruned
    }

    async fn prune_all(&self, policy: &RetentionPolicy, limit: u32) -> StoreResult<Pruned> {
        let mut pruned = Pruned::default();
        for (at, state) in STATES.into_iter().enumerate() {
            if let Keep::For(period) = policy.job(state) {
                let batch = self.prune_jobs(at, state, period, policy.keys, limit).await?;
                *pruned.what.jobs_in(state) += batch.jobs;
                batch.add_to(&mut pruned);
            }
            if let (Keep::For(period), true) = (policy.history, state.is_ended()) {
                let batch = self.shorten_history(state, period, limit).await?;
                pruned.what.histories += batch.jobs;
                batch.add_to(&mut pruned);
            }
        }
        pruned.what.keys = self.prune_by_age(statement::PRUNE_KEYS, policy.keys, limit).await?;
        pruned.what.workers = self.prune_by_age(statement::PRUNE_WORKERS, policy.workers, limit).await?;
        pruned.rows += pruned.what.keys + pruned.what.workers;
        pruned.more |= pruned.what.keys.max(pruned.what.workers) >= u64::from(limit);
        Ok(pruned)
    }

    async fn prune_jobs(
        &self,
        at: usize,
        state: JobState,
        period: Duration,
        keys: Keep,
        limit: u32,
    ) -> StoreResult<Batch> {
        let statement = sqlx::query(statement::PRUNE_JOBS)
            .bind(state.as_str())
            .bind(whole_ms(period))
            .bind(self.inner.reached.get(at))
            .bind(i64::from(limit))
            .bind(keys.period().map(whole_ms))
            .bind(i64::from(limit));
        let batch = self.batch(statement).await?;
        self.inner.reached.set(at, batch.reached);
        Ok(batch)
    }

    async fn shorten_history(&self, state: JobState, period: Duration, limit: u32) -> StoreResult<Batch> {
        let statement = sqlx::query(statement::SHORTEN_HISTORY)
            .bind(state.as_str())
            .bind(whole_ms(period))
            .bind(i64::from(limit))
            .bind(i64::from(limit));
        self.batch(statement).await
    }

    async fn prune_by_age(&self, sql: &'static str, keep: Keep, limit: u32) -> StoreResult<u64> {
        let Keep::For(period) = keep else { return Ok(0) };
        self.change(sqlx::query(sql).bind(whole_ms(period)).bind(i64::from(limit))).await
    }

    pub(crate) async fn count_prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        let counts = sqlx::query(statement::PRUNABLE)
            .bind(policy.succeeded.period().map(whole_ms))
            .bind(policy.canceled.period().map(whole_ms))
            .bind(policy.failed.period().map(whole_ms))
            .bind(policy.history.period().map(whole_ms))
            .bind(policy.keys.period().map(whole_ms))
            .bind(policy.workers.period().map(whole_ms));
        let counts = self.inner.calm.row(counts).await;
        counts
            .and_then(|row| prunable(&row.ok_or(sqlx::Error::RowNotFound)?))
            .map_err(|e| self.fail("prunable", e))
    }

    async fn batch(&self, query: Query) -> StoreResult<Batch> {
        let row = self.inner.hot.row(query).await;
        row.and_then(|row| Batch::decode(&row.ok_or(sqlx::Error::RowNotFound)?))
            .map_err(|e| self.fail("prune", e))
    }

    /// Answers how many rows were changed.
    async fn change(&self, query: Query) -> StoreResult<u64> {
        self.inner.hot.execute(query).await.map_err(|e| self.fail("prune", e))
    }
}

/// What one statement forgot.
struct Batch {
    jobs: u64,
    rows: u64,
    reached: Option<Timestamp>,
    more: bool,
}

impl Batch {
    fn decode(row: &PgRow) -> Decoded<Self> {
        Ok(Self {
            jobs: count(row, "jobs")?,
            rows: count(row, "rows")?,
            reached: row.try_get("reached")?,
            more: row.try_get("more")?,
        })
    }

    const fn add_to(&self, pruned: &mut Pruned) {
        pruned.rows += self.rows;
        pruned.more |= self.more;
    }
}

fn prunable(row: &PgRow) -> Decoded<Prunable> {
    Ok(Prunable {
        succeeded: count(row, "succeeded")?,
        canceled: count(row, "canceled")?,
        failed: count(row, "failed")?,
        histories: count(row, "histories")?,
        keys: count(row, "keys")?,
        workers: count(row, "workers")?,
    })
}

fn count(row: &PgRow, column: &str) -> Decoded<u64> {
    Ok(row.try_get::<i64, _>(column)?.unsigned_abs())
}

//! Forgetting what is over, a bounded batch a transaction.
//!
//! What has ended is found by walking the table `ended` as it lies on the disk, some blocks at a time and round and round:
//! new rows fill the room of those that were forgotten, so the oldest follow the newest. An index by time would be paid
//! for by the end of every job.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff_sqlx::Timestamp;
use milepost_core::duration::whole_ms;
use milepost_core::port::StoreResult;
use milepost_core::retention::{Keep, Pace, Prunable, Pruned, RetentionPolicy};
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;
use crate::session::Query;
use crate::statement;
use crate::store::PostgresStore;

/// How many blocks of `ended` one batch looks at: about 40,000 jobs, a few milliseconds.
const BLOCKS: i64 = 500;
/// A walk round rests for this part of the shortest period: so much longer than it says a job may stay.
const PERIOD_SHARE: u32 = 100;
/// It rests no longer than this.
const REST_MAX: Duration = Duration::from_secs(3600);

/// Where this process goes on.
#[derive(Debug, Default)]
pub(crate) struct Reached(Mutex<Place>);

#[derive(Debug, Default)]
struct Place {
    /// Up to when dead letters were forgotten. Their entries stay in the index until vacuum comes; the next batch starts
    /// behind them. One that finds nothing lets the next look from the start again.
    letters: Option<Timestamp>,
    /// The block of `ended` from which the next batch without rests looks. Those with rests keep theirs in the database.
    block: i64,
}

impl Reached {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Some blocks of `ended`.
#[derive(Clone, Copy)]
struct Blocks {
    from: i64,
    to: i64,
}

impl Blocks {
    /// Nothing that has ended is ever forgotten.
    const NONE: Self = Self { from: 0, to: 0 };

    const fn at(from: i64) -> Self {
        Self { from, to: from + BLOCKS }
    }

    /// As the ids that rows in them have at least, and less than.
    fn places(self) -> [String; 2] {
        [self.from, self.to].map(|block| format!("({block},0)"))
    }
}

impl PostgresStore {
    /// One batch of each sort, unless it is another process's turn.
    pub(crate) async fn prune_batch(&self, policy: &RetentionPolicy, pace: Pace) -> StoreResult<Pruned> {
        if pace.rest == 0 {
            let from = self.inner.reached.lock().block;
            let (pruned, next) = self.prune_blocks(policy, pace.limit, from).await?;
            self.inner.reached.lock().block = next.unwrap_or(0);
            return Ok(pruned);
        }
        let Some(from) = self.take_turn().await? else { return Ok(Pruned::default()) };
        let began = Instant::now();
        let pruned = self.prune_blocks(policy, pace.limit, from).await;
        let breath = began.elapsed() * pace.rest;
        let (rest, next) = match &pruned {
            Ok((pruned, next)) if pruned.more => (breath, next.unwrap_or(0)),
            Ok(_) => (breath.max(round_rest(policy)), 0),
            Err(_) => (breath, from),
        };
        self.change(sqlx::query(statement::PASS_TURN).bind(whole_ms(rest)).bind(next)).await?;
        pruned.map(|(pruned, _)| pruned)
    }

    /// The block at which to go on; `None` when it is another's turn.
    async fn take_turn(&self) -> StoreResult<Option<i64>> {
        let row = self.inner.hot.row(sqlx::query(statement::TAKE_TURN)).await;
        row.and_then(|row| row.map(|row| row.try_get("place")).transpose()).map_err(|e| self.fail("prune", e))
    }

    /// Answers also the block at which to go on; `None` when the walk has come round.
    async fn prune_blocks(
        &self,
        policy: &RetentionPolicy,
        limit: u32,
        from: i64,
    ) -> StoreResult<(Pruned, Option<i64>)> {
        let mut pruned = Pruned::default();
        let walks = shortest_period(policy).is_some();
        let blocks = if walks { Blocks::at(from) } else { Blocks::NONE };
        let (mut left, in_all) = self.prune_jobs(policy, limit, blocks, &mut pruned).await?;
        if let Keep::For(period) = policy.history {
            let history_left = self.shorten_history(period, limit, blocks, &mut pruned).await?;
            left = left.into_iter().chain(history_left).min();
        }
        pruned.what.keys = self.prune_by_age(statement::PRUNE_KEYS, policy.keys, limit).await?;
        pruned.what.workers = self.prune_by_age(statement::PRUNE_WORKERS, policy.workers, limit).await?;
        pruned.what.audit = self.prune_audit(policy, limit).await?;
        self.prune_inbox(policy, limit, &mut pruned).await?;
        self.prune_targets(limit, &mut pruned).await?;
        let Prunable { keys, workers, audit, .. } = pruned.what;
        pruned.rows += keys + workers + audit;
        let next = left.or((walks && blocks.to < in_all).then_some(blocks.to));
        pruned.more |= next.is_some() || keys.max(workers).max(audit) >= u64::from(limit);
        Ok((pruned, next))
    }

    /// Answers the first block that it did not finish, and how many there are.
    async fn prune_jobs(
        &self,
        policy: &RetentionPolicy,
        limit: u32,
        blocks: Blocks,
        pruned: &mut Pruned,
    ) -> StoreResult<(Option<i64>, i64)> {
        let ms = |keep: Keep| keep.period().map(whole_ms);
        let letters = self.inner.reached.lock().letters;
        let [first, end] = blocks.places();
        let query = sqlx::query(statement::PRUNE_JOBS)
            .bind(ms(policy.succeeded))
            .bind(ms(policy.canceled))
            .bind(ms(policy.failed))
            .bind(letters)
            .bind(ms(policy.keys))
            .bind(i64::from(limit))
            .bind(i64::from(limit))
            .bind(first)
            .bind(end);
        let row = self.one(query).await?;
        let mut read = || -> Decoded<_> {
            pruned.what.succeeded = count(&row, "succeeded")?;
            pruned.what.canceled = count(&row, "canceled")?;
            pruned.what.failed = count(&row, "failed")?;
            pruned.rows = count(&row, "rows")?;
            pruned.more = row.try_get("more_letters")?;
            self.inner.reached.lock().letters = row.try_get("letters_reached")?;
            Ok((row.try_get("block_left")?, row.try_get("blocks")?))
        };
        read().map_err(|e| self.fail("prune", e))
    }

    /// Answers the first block that it did not finish.
    async fn shorten_history(
        &self,
        period: Duration,
        limit: u32,
        blocks: Blocks,
        pruned: &mut Pruned,
    ) -> StoreResult<Option<i64>> {
        let [first, end] = blocks.places();
        let query = sqlx::query(statement::SHORTEN_HISTORY)
            .bind(whole_ms(period))
            .bind(i64::from(limit))
            .bind(i64::from(limit))
            .bind(first)
            .bind(end);
        let row = self.one(query).await?;
        let mut read = || -> Decoded<_> {
            pruned.what.histories += count(&row, "jobs")?;
            pruned.rows += count(&row, "rows")?;
            row.try_get("block_left")
        };
        read().map_err(|e| self.fail("prune", e))
    }

    /// Rows of files that no run needs any more.
    async fn prune_targets(&self, limit: u32, pruned: &mut Pruned) -> StoreResult<()> {
        let row = self.one(sqlx::query(statement::PRUNE_TARGETS).bind(i64::from(limit))).await?;
        let mut read = || -> Decoded<()> {
            pruned.rows += count(&row, "rows")?;
            pruned.more |= row.try_get::<bool, _>("more")?;
            Ok(())
        };
        read().map_err(|e| self.fail("prune", e))
    }

    /// What inboxes need no longer.
    async fn prune_inbox(
        &self,
        policy: &RetentionPolicy,
        limit: u32,
        pruned: &mut Pruned,
    ) -> StoreResult<()> {
        let ids = self.prune_by_age(statement::INBOX_PRUNE_PROCESSED, policy.inbox, limit).await?;
        let mut letters = 0;
        if let Keep::For(period) = policy.failed {
            let query =
                sqlx::query(statement::INBOX_PRUNE_DEAD).bind(whole_ms(period)).bind(i64::from(limit));
            letters = count(&self.one(query).await?, "rows").map_err(|e| self.fail("prune", e))?;
        }
        (pruned.what.inbox, pruned.what.inbox_dead) = (ids, letters);
        pruned.rows += ids + letters;
        pruned.more |= ids.max(letters) >= u64::from(limit);
        Ok(())
    }

    /// By a function: no role but the owner's has the right to delete entries.
    async fn prune_audit(&self, policy: &RetentionPolicy, limit: u32) -> StoreResult<u64> {
        let Keep::For(period) = policy.audit else { return Ok(0) };
        let query = sqlx::query(statement::AUDIT_PRUNE).bind(whole_ms(period)).bind(i64::from(limit));
        count(&self.one(query).await?, "rows").map_err(|e| self.fail("prune", e))
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
            .bind(policy.workers.period().map(whole_ms))
            .bind(policy.batches.period().map(whole_ms))
            .bind(policy.inbox.period().map(whole_ms))
            .bind(policy.audit.period().map(whole_ms));
        let counts = self.inner.calm.row(counts).await;
        counts
            .and_then(|row| prunable(&row.ok_or(sqlx::Error::RowNotFound)?))
            .map_err(|e| self.fail("prunable", e))
    }

    async fn one(&self, query: Query) -> StoreResult<PgRow> {
        let row = self.inner.hot.row(query).await;
        row.and_then(|row| row.ok_or(sqlx::Error::RowNotFound)).map_err(|e| self.fail("prune", e))
    }

    /// Answers how many rows were changed.
    async fn change(&self, query: Query) -> StoreResult<u64> {
        self.inner.hot.execute(query).await.map_err(|e| self.fail("prune", e))
    }
}

/// After how long the first of what has ended is forgotten, or its history; `None`: never.
fn shortest_period(policy: &RetentionPolicy) -> Option<Duration> {
    [policy.succeeded, policy.canceled, policy.history].into_iter().filter_map(Keep::period).min()
}

/// How long the next walk round is put off.
fn round_rest(policy: &RetentionPolicy) -> Duration {
    shortest_period(policy).map_or(REST_MAX, |period| (period / PERIOD_SHARE).min(REST_MAX))
}

fn prunable(row: &PgRow) -> Decoded<Prunable> {
    Ok(Prunable {
        succeeded: count(row, "succeeded")?,
        canceled: count(row, "canceled")?,
        failed: count(row, "failed")?,
        histories: count(row, "histories")?,
        keys: count(row, "keys")?,
        workers: count(row, "workers")?,
        batches: count(row, "batches")?,
        inbox: count(row, "inbox")?,
        inbox_dead: count(row, "inbox_dead")?,
        events: 0,
        audit: count(row, "audit")?,
    })
}

fn count(row: &PgRow, column: &str) -> Decoded<u64> {
    Ok(row.try_get::<i64, _>(column)?.unsigned_abs())
}

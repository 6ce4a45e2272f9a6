//! Deletion of old rows, in transactions of bounded size.
//!
//! Ended jobs are found by scanning the table `ended` block by block in physical order, repeatedly: new rows fill the space
//! of deleted ones, so the oldest rows follow the newest. An index by time would add a cost to the end of every job.

use std::time::{Duration, Instant};

use milepost_core::duration::whole_ms;
use milepost_core::port::StoreResult;
use milepost_core::retention::{Keep, Pace, Prunable, Pruned, RetentionPolicy};
use milepost_core::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::row::Decoded;
use crate::session::Query;
use crate::store::PostgresStore;

/// Number of blocks of `ended` that one batch scans: about 40,000 jobs, a few milliseconds.
const BLOCKS: i64 = 500;
/// After a complete scan, the next one starts after this fraction of the shortest retention period, so a job may stay that
/// much longer than its period.
const PERIOD_SHARE: u32 = 100;
/// Upper limit of that pause.
const REST_MAX: Duration = Duration::from_secs(3600);

/// A range of blocks of `ended`.
#[derive(Clone, Copy)]
struct Blocks {
    from: i64,
    to: i64,
}

impl Blocks {
    /// An empty range, if the policy keeps ended jobs forever.
    const NONE: Self = Self { from: 0, to: 0 };

    const fn at(from: i64) -> Self {
        Self { from, to: from + BLOCKS }
    }

    /// Returns the range as row IDs (`ctid`): the first one, and the one after the last.
    fn places(self) -> [String; 2] {
        [self.from, self.to].map(|block| format!("({block},0)"))
    }
}

impl PostgresStore {
    /// Deletes one batch of each kind of old rows, unless it is another process's turn.
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
        self.change(sqlx::query(sql!("pass_turn")).bind(whole_ms(rest)).bind(next)).await?;
        pruned.map(|(pruned, _)| pruned)
    }

    /// Returns the block at which to continue; `None` if it is another process's turn.
    async fn take_turn(&self) -> StoreResult<Option<i64>> {
        let row = self.inner.hot.row(sqlx::query(sql!("take_turn"))).await;
        row.and_then(|row| row.map(|row| row.try_get("place")).transpose()).map_err(|e| self.fail("prune", e))
    }

    /// Deletes a batch. Also returns the block at which to continue; `None` at the end of a scan.
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
        pruned.what.keys = self.prune_by_age(sql!("prune_keys"), policy.keys, limit).await?;
        pruned.what.workers = self.prune_by_age(sql!("prune_workers"), policy.workers, limit).await?;
        pruned.what.audit = self.prune_audit(policy, limit).await?;
        self.prune_inbox(policy, limit, &mut pruned).await?;
        self.prune_targets(limit, &mut pruned).await?;
        let Prunable { keys, workers, audit, .. } = pruned.what;
        pruned.rows += keys + workers + audit;
        let next = left.or((walks && blocks.to < in_all).then_some(blocks.to));
        pruned.more |= next.is_some() || keys.max(workers).max(audit) >= u64::from(limit);
        Ok((pruned, next))
    }

    /// Returns the first block that it did not finish, and the number of blocks.
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
        let query = sqlx::query(sql!("prune_jobs"))
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

    /// Returns the first block that it did not finish.
    async fn shorten_history(
        &self,
        period: Duration,
        limit: u32,
        blocks: Blocks,
        pruned: &mut Pruned,
    ) -> StoreResult<Option<i64>> {
        let [first, end] = blocks.places();
        let query = sqlx::query(sql!("shorten_history"))
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

    /// Deletes rows of files that no run needs any more.
    async fn prune_targets(&self, limit: u32, pruned: &mut Pruned) -> StoreResult<()> {
        let row = self.one(sqlx::query(sql!("prune_targets")).bind(i64::from(limit))).await?;
        let mut read = || -> Decoded<()> {
            pruned.rows += count(&row, "rows")?;
            pruned.more |= row.try_get::<bool, _>("more")?;
            Ok(())
        };
        read().map_err(|e| self.fail("prune", e))
    }

    /// Deletes records of processed events and dead letters of inboxes after their retention periods.
    async fn prune_inbox(
        &self,
        policy: &RetentionPolicy,
        limit: u32,
        pruned: &mut Pruned,
    ) -> StoreResult<()> {
        let ids = self.prune_by_age(sql!("inbox/prune_processed"), policy.inbox, limit).await?;
        let mut letters = 0;
        if let Keep::For(period) = policy.failed {
            let query = sqlx::query(sql!("inbox/prune_dead")).bind(whole_ms(period)).bind(i64::from(limit));
            letters = count(&self.one(query).await?, "rows").map_err(|e| self.fail("prune", e))?;
        }
        (pruned.what.inbox, pruned.what.inbox_dead) = (ids, letters);
        pruned.rows += ids + letters;
        pruned.more |= ids.max(letters) >= u64::from(limit);
        Ok(())
    }

    /// Uses an SQL function, because only the owner's role may delete audit entries.
    async fn prune_audit(&self, policy: &RetentionPolicy, limit: u32) -> StoreResult<u64> {
        let Keep::For(period) = policy.audit else { return Ok(0) };
        let query = sqlx::query(sql!("audit/prune")).bind(whole_ms(period)).bind(i64::from(limit));
        count(&self.one(query).await?, "rows").map_err(|e| self.fail("prune", e))
    }

    async fn prune_by_age(&self, sql: &'static str, keep: Keep, limit: u32) -> StoreResult<u64> {
        let Keep::For(period) = keep else { return Ok(0) };
        self.change(sqlx::query(sql).bind(whole_ms(period)).bind(i64::from(limit))).await
    }

    pub(crate) async fn count_prunable(&self, policy: &RetentionPolicy) -> StoreResult<Prunable> {
        let counts = sqlx::query(sql!("prunable"))
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

    /// Returns the number of rows changed.
    async fn change(&self, query: Query) -> StoreResult<u64> {
        self.inner.hot.execute(query).await.map_err(|e| self.fail("prune", e))
    }
}

/// Returns the shortest retention period of ended jobs and their history; `None` if all are kept forever.
fn shortest_period(policy: &RetentionPolicy) -> Option<Duration> {
    [policy.succeeded, policy.canceled, policy.history].into_iter().filter_map(Keep::period).min()
}

/// Returns the pause before the next scan.
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

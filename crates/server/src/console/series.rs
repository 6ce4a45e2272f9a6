//! Time series of the last 15 minutes, kept in memory: started and ended attempts, waits, run times and backlog.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::feed::{Counted, FeedPosition, InvalidFeed};
use milepost_core::listing::QueueKinds;
use milepost_core::port::{Store, StoreResult};
use milepost_core::transition::Verb;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::cached_counts::CachedCounts;

/// Length of a bucket, in seconds.
const BUCKET_S: i64 = 5;
/// Number of buckets: 15 minutes.
const BUCKETS: usize = 180;
/// Maximum number of durations that a bucket keeps for quantiles.
const LENGTHS_MAX: usize = 512;
/// Polling interval of the activity.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Polling interval of the backlog: one or two values for each bucket.
const BACKLOG_EVERY: Duration = Duration::from_secs(3);
/// After a failure of this length, the series starts again at the end of the feed: counting everything since could take as long
/// again.
const GAP_MAX: Duration = Duration::from_secs(60);
/// Maximum number of jobs for each second whose waits and run times the store returns.
const TOLD_MAX: u32 = 128;

/// Durations, of which a bounded sample is kept.
#[derive(Clone, Debug, Default)]
struct Lengths {
    seen: usize,
    kept: Vec<u64>,
}

impl Lengths {
    /// Adds a duration by reservoir sampling: each has the same chance of being kept.
    fn add(&mut self, ms: u64) {
        self.seen += 1;
        if self.kept.len() < LENGTHS_MAX {
            self.kept.push(ms);
        } else if let Some(kept) = self.kept.get_mut(fastrand::usize(..self.seen)) {
            *kept = ms;
        }
    }

    /// Returns the quantile, in milliseconds.
    fn quantile(&self, share: f64) -> Option<u64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
        sorted.get(at).copied()
    }
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    /// Start time, in seconds since 1970 divided by [`BUCKET_S`].
    at: i64,
    started: u64,
    succeeded: u64,
    failed: u64,
    waits: Lengths,
    runs: Lengths,
    backlog: Option<i64>,
    /// Whether the whole bucket was observed. Otherwise its counts may be incomplete.
    known: bool,
}

/// Recent activity of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Series {
    buckets: Mutex<VecDeque<Bucket>>,
}

/// The data of charts in columns, oldest first.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    /// Seconds since 1970.
    pub(super) at: Vec<i64>,
    /// Per second; `None` where nothing is counted.
    pub(super) started: Vec<Option<f64>>,
    pub(super) succeeded: Vec<Option<f64>>,
    pub(super) failed: Vec<Option<f64>>,
    /// In seconds.
    pub(super) wait_p50: Vec<Option<f64>>,
    pub(super) wait_p99: Vec<Option<f64>>,
    pub(super) run_p50: Vec<Option<f64>>,
    pub(super) run_p99: Vec<Option<f64>>,
    /// Jobs that wait; only of the last 15 minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) backlog: Vec<Option<i64>>,
}

impl Series {
    fn buckets(&self) -> MutexGuard<'_, VecDeque<Bucket>> {
        // The numbers are usable even if another thread panicked while it held the lock.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts polling the store until `stop` is cancelled. Must be called within a Tokio runtime.
    pub(crate) fn start(
        self: &Arc<Self>,
        store: &Arc<dyn Store>,
        known: Arc<CachedCounts>,
        stop: &CancellationToken,
    ) {
        let (series, asked) = (Arc::clone(self), Arc::clone(store));
        let happened = async move { series.look(asked.as_ref()).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(happened));
        let (series, asked) = (Arc::clone(self), Arc::clone(store));
        let waits = async move { series.look_at_backlog(&known, &asked).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(waits));
    }

    /// Records the number of waiting jobs, even while the console is not open, so that operators can see later when a backlog
    /// began.
    async fn look_at_backlog(&self, known: &CachedCounts, store: &Arc<dyn Store>) {
        loop {
            if let Ok(Some(queues)) = known.queues(store).await {
                let jobs = queues.iter().map(QueueKinds::waiting).sum();
                self.fill(Timestamp::now().as_second(), |bucket| bucket.backlog = Some(jobs));
            }
            tokio::time::sleep(BACKLOG_EVERY).await;
        }
    }

    async fn look(&self, store: &dyn Store) {
        let (mut at, mut answered, mut failing) = (None, Instant::now(), false);
        let mut from = 0;
        loop {
            if answered.elapsed() > GAP_MAX {
                at = None;
            }
            match self.look_once(store, at.as_ref()).await {
                Ok(end) => {
                    let now = Timestamp::now().as_second().div_euclid(BUCKET_S);
                    // The bucket in which polling starts is incomplete.
                    from = if at.is_some() { self.cover(from, now) } else { now + 1 };
                    (at, answered, failing) = (Some(end), Instant::now(), false);
                }
                Err(StoreError::Feed(InvalidFeed::Foreign)) => at = None,
                Err(error) => {
                    if !failing {
                        tracing::warn!(
                            error = error.chain(),
                            "the activity cannot be read from the store; retrying"
                        );
                    }
                    failing = true;
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Reads new activity and returns its end.
    async fn look_once(&self, store: &dyn Store, at: Option<&FeedPosition>) -> StoreResult<FeedPosition> {
        let Some(at) = at else { return store.feed_end().await };
        let activity = store.activity(at, TOLD_MAX).await?;
        activity.counted.iter().for_each(|counted| self.learn(counted));
        Ok(activity.end)
    }

    /// Marks the buckets from `from` up to `now` as fully observed. Returns the next value for `from`.
    fn cover(&self, from: i64, now: i64) -> i64 {
        for at in from.max(now - BUCKETS as i64)..now {
            self.fill(at * BUCKET_S, |bucket| bucket.known = true);
        }
        from.max(now)
    }

    /// Records the activity of one second. Activity older than the oldest bucket is ignored.
    fn learn(&self, counted: &Counted) {
        self.fill(counted.at_s, |bucket| match counted.verb {
            Verb::Claim => {
                bucket.started += counted.times;
                counted.took_ms.iter().for_each(|&ms| bucket.waits.add(ms));
            }
            Verb::Succeed => {
                bucket.succeeded += counted.times;
                counted.took_ms.iter().for_each(|&ms| bucket.runs.add(ms));
            }
            Verb::Retry | Verb::Fail => bucket.failed += counted.times,
            _ => {}
        });
    }

    fn fill(&self, at_s: i64, fill: impl FnOnce(&mut Bucket)) {
        let at = at_s.div_euclid(BUCKET_S);
        let mut buckets = self.buckets();
        let first = buckets.front().map_or(at, |bucket| bucket.at);
        let last = buckets.back().map_or(at - 1, |bucket| bucket.at);
        if at < first {
            return;
        }
        let missing = (last + 1).max(at + 1 - BUCKETS as i64)..=at;
        buckets.extend(missing.map(|at| Bucket { at, ..Bucket::default() }));
        while buckets.len() > BUCKETS {
            buckets.pop_front();
        }
        if let Some(bucket) = buckets.iter_mut().rev().find(|bucket| bucket.at == at) {
            fill(bucket);
        }
    }

    /// Returns the counts of the last minute and the 99th percentile of the waits.
    pub(super) fn last_minute(&self, now: Timestamp) -> Minute {
        let since = now.as_second().div_euclid(BUCKET_S) - 60 / BUCKET_S;
        let buckets = self.buckets();
        let mut minute = Minute::default();
        let mut waits = Lengths::default();
        for bucket in buckets.iter().filter(|bucket| bucket.at >= since) {
            minute.started += bucket.started;
            minute.succeeded += bucket.succeeded;
            minute.failed += bucket.failed;
            bucket.waits.kept.iter().for_each(|&ms| waits.add(ms));
        }
        minute.wait_p99_ms = waits.quantile(0.99);
        minute
    }

    /// Returns the columns of the charts, without the current bucket. Rates are `None` where nothing was observed, for example before the
    /// server started.
    pub(super) fn columns(&self, now: Timestamp) -> Columns {
        let current = now.as_second().div_euclid(BUCKET_S);
        let (mut columns, per_s) = (Columns::default(), |number: u64| number as f64 / BUCKET_S as f64);
        let seconds = |ms: Option<u64>| ms.map(|ms| ms as f64 / 1000.0);
        let known = self.buckets();
        let mut buckets = known.iter().filter(|bucket| bucket.at < current).peekable();
        for at in current - BUCKETS as i64..current {
            let empty = Bucket::default();
            let bucket = buckets.next_if(|bucket| bucket.at == at).unwrap_or(&empty);
            columns.at.push(at * BUCKET_S);
            let told = |number| bucket.known.then(|| per_s(number));
            columns.started.push(told(bucket.started));
            columns.succeeded.push(told(bucket.succeeded));
            columns.failed.push(told(bucket.failed));
            columns.wait_p50.push(seconds(bucket.waits.quantile(0.5)));
            columns.wait_p99.push(seconds(bucket.waits.quantile(0.99)));
            columns.run_p50.push(seconds(bucket.runs.quantile(0.5)));
            columns.run_p99.push(seconds(bucket.runs.quantile(0.99)));
            columns.backlog.push(bucket.backlog);
        }
        columns
    }
}

/// Figures of the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Minute {
    pub(super) started: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) wait_p99_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn tell(series: &Series, second: i64, verb: Verb, took_ms: &[u64]) {
        let took_ms = took_ms.to_vec();
        let times = took_ms.len() as u64;
        series.learn(&Counted { at_s: at(second).as_second(), verb, times, took_ms });
    }

    #[test]
    fn what_happened_is_counted_by_the_second() {
        let series = Series::default();
        tell(&series, 0, Verb::Claim, &[4_000; 10]);
        tell(&series, 7, Verb::Succeed, &[7_000]);
        tell(&series, 8, Verb::Retry, &[0]);
        let now = at(10).as_second() / BUCKET_S;
        assert_eq!(series.cover(now - 2, now), now);
        let columns = series.columns(at(10));
        assert_eq!(columns.at.len(), BUCKETS);
        assert_eq!(columns.started[BUCKETS - 3..], [None, Some(2.0), Some(0.0)], "not observed before");
        assert_eq!(columns.succeeded[BUCKETS - 3..], [None, Some(0.0), Some(0.2)]);
        assert_eq!((columns.wait_p99[BUCKETS - 2], columns.run_p50[BUCKETS - 1]), (Some(4.0), Some(7.0)));
        let minute = series.last_minute(at(10));
        assert_eq!(
            (minute.started, minute.succeeded, minute.failed, minute.wait_p99_ms),
            (10, 1, 1, Some(4_000))
        );
    }

    #[test]
    fn it_stays_small_over_long_rests_and_takes_late_changes() {
        let series = Series::default();
        let fail = |second| tell(&series, second, Verb::Fail, &[0]);
        [0, 100_000].into_iter().for_each(fail);
        assert_eq!(series.buckets().len(), BUCKETS);
        [99_990, 0].into_iter().for_each(fail);
        let now = at(100_005).as_second() / BUCKET_S;
        series.cover(0, now);
        assert_eq!(series.buckets().len(), BUCKETS);
        assert_eq!(series.columns(at(100_005)).failed.iter().flatten().sum::<f64>(), 0.4);
        let mut lengths = Lengths::default();
        (0..5_000).for_each(|ms| lengths.add(ms));
        assert_eq!(lengths.kept.len(), LENGTHS_MAX);
    }
}

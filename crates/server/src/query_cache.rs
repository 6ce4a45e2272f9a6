//! A cache for the result of a query that is slow on a large store: the result is reused for a while, and only one caller runs
//! the query.
//! Callers wait for the result. Console pages, which do not wait, use [`CachedCounts`](crate::console::cached_counts::CachedCounts).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// A query that takes longer than this counts as slow.
const QUICK: Duration = Duration::from_millis(100);
/// A slow result is valid for this multiple of its query time, so that at most 1/20 of the time is spent on the query.
const TIMES: u32 = 20;

/// The last result.
pub(crate) struct Last<T> {
    answer: Mutex<Option<Cached<T>>>,
    /// Number of changes. A result is invalid if a change was made after its query had started.
    changes: AtomicU64,
    /// How long the result of a quick query is valid.
    quick_for: Duration,
}

struct Cached<T> {
    begun: Instant,
    good_until: Instant,
    changes: u64,
    value: T,
}

impl<T> Default for Last<T> {
    /// Runs a quick query again on each call.
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl<T> Last<T> {
    /// Creates a cache in which the result of a quick query is valid for this time.
    pub(crate) fn new(quick_for: Duration) -> Self {
        Self { answer: Mutex::new(None), changes: AtomicU64::new(0), quick_for }
    }
}

impl<T: Clone> Last<T> {
    /// Invalidates the result after a change that later callers must see.
    pub(crate) fn forget(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns a valid result: the cached one, one whose query another caller started while this one waited, or the result of
    /// `ask`.
    pub(crate) async fn get<E>(&self, ask: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let came = Instant::now();
        let mut last = self.answer.lock().await;
        let changes = self.changes.load(Ordering::Acquire);
        let is_good = |answer: &&Cached<T>| {
            answer.changes == changes && (answer.begun > came || answer.good_until > Instant::now())
        };
        if let Some(answer) = last.as_ref().filter(is_good) {
            return Ok(answer.value.clone());
        }
        let begun = Instant::now();
        let value = ask.await?;
        let took = begun.elapsed();
        let good_for = if took > QUICK { took * TIMES } else { self.quick_for };
        let good_until = Instant::now() + good_for;
        *last = Some(Cached { begun, good_until, changes, value: value.clone() });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    async fn after(ms: u64, answer: u32) -> Result<u32, Infallible> {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(answer)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_quick_to_answer_is_asked_afresh_each_time() {
        let last = Last::default();
        assert_eq!(last.get(after(50, 1)).await, Ok(1));
        assert_eq!(last.get(after(50, 2)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_told_again_until_its_time_is_up_or_something_changed() {
        let last = Last::default();
        assert_eq!(last.get(after(1_000, 1)).await, Ok(1));
        tokio::time::advance(Duration::from_secs(19)).await;
        assert_eq!(last.get(after(1_000, 2)).await, Ok(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(last.get(after(1_000, 3)).await, Ok(3));
        last.forget();
        assert_eq!(last.get(after(1_000, 4)).await, Ok(4));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_share_the_answer_to_what_was_asked_after_they_came() {
        let last = Last::default();
        let second = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            last.get(after(50, 2)).await
        };
        let third = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            last.get(after(50, 3)).await
        };
        let answers = tokio::join!(last.get(after(50, 1)), second, third);
        assert_eq!(answers, (Ok(1), Ok(2), Ok(2)), "the first query started before the other callers");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_what_was_asked_before_a_change_is_not_kept() {
        let last = Last::default();
        let changed = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            last.forget();
            last.get(after(1_000, 2)).await
        };
        let answers = tokio::join!(last.get(after(1_000, 1)), changed);
        assert_eq!(answers, (Ok(1), Ok(2)));
    }
}

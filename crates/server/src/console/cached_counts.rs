//! A cache of counts that are slow on a large store: each is counted by one request at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::ident::BatchId;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::limit::LimitView;
use milepost_core::listing::QueueKinds;
use milepost_core::port::Store;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::batch_tasks::BatchTasks;
use crate::metrics::KINDS_MAX;
use crate::problem::Problem;

/// Minimum time for which an answer is fresh.
const FRESH: Duration = Duration::from_secs(1);
/// An answer is fresh for this multiple of its query time, so that counting takes at most a twentieth of the time.
const TIMES: u32 = 20;
/// How long a stale answer is still shown while the next one is counted: this multiple of its query time, plus this time.
const SHOWN: (u32, Duration) = (2, Duration::from_secs(10));
/// Maximum number of batches that are cached with their tasks.
const BOARDS_MAX: usize = 8;
/// Default time that a page waits for an answer. After that, it shows the previous answer, or none.
pub(crate) const PAGE_WAIT: Duration = Duration::from_millis(50);

/// The counts that pages share.
pub(crate) struct CachedCounts {
    page_wait: Duration,
    queues: Cached<Vec<QueueKinds>>,
    subscriptions: Cached<Vec<SubscriptionView>>,
    consumers: Cached<Vec<ConsumerView>>,
    limits: Cached<Vec<LimitView>>,
    batches: Mutex<HashMap<BatchId, Cached<Arc<BatchTasks>>>>,
}

impl CachedCounts {
    pub(crate) fn new(page_wait: Duration) -> Self {
        Self {
            page_wait,
            queues: Cached::new(page_wait),
            subscriptions: Cached::new(page_wait),
            consumers: Cached::new(page_wait),
            limits: Cached::new(page_wait),
            batches: Mutex::default(),
        }
    }

    /// Creates a cache with the same options.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.page_wait)
    }

    /// Every queue with its counts.
    pub(crate) async fn queues(&self, store: &Arc<dyn Store>) -> Seen<Vec<QueueKinds>> {
        let store = Arc::clone(store);
        self.queues.get(async move { store.queues_by_kind(KINDS_MAX).await }).await
    }

    pub(crate) async fn subscriptions(&self, store: &Arc<dyn Store>) -> Seen<Vec<SubscriptionView>> {
        let store = Arc::clone(store);
        self.subscriptions.get(async move { store.subscriptions().await }).await
    }

    pub(crate) async fn consumers(&self, store: &Arc<dyn Store>) -> Seen<Vec<ConsumerView>> {
        let store = Arc::clone(store);
        self.consumers.get(async move { store.consumers().await }).await
    }

    /// Every limit with the number of jobs that wait for it.
    pub(crate) async fn limits(&self, store: &Arc<dyn Store>) -> Seen<Vec<LimitView>> {
        let store = Arc::clone(store);
        self.limits.get(async move { store.limits().await }).await
    }

    /// A batch with its tasks.
    pub(crate) async fn board(
        &self,
        id: BatchId,
        read: impl Future<Output = Result<Arc<BatchTasks>, Problem>> + Send + 'static,
    ) -> Seen<Arc<BatchTasks>> {
        let kept = {
            let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
            if batches.len() >= BOARDS_MAX && !batches.contains_key(&id) {
                batches.clear();
            }
            batches.entry(id).or_insert_with(|| Cached::new(self.page_wait)).clone()
        };
        kept.get(read).await
    }

    /// Makes all answers stale, after a change: the next page asks again.
    pub(crate) fn forget(&self) {
        self.queues.forget();
        self.subscriptions.forget();
        self.consumers.forget();
        self.limits.forget();
        self.batches.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(Cached::forget);
    }
}

/// The last answer, if one came in time.
pub(crate) type Seen<T> = Result<Option<T>, Problem>;

#[derive(Clone)]
struct Cached<T: Clone> {
    page_wait: Duration,
    state: Arc<Mutex<State<T>>>,
    answered: Arc<Notify>,
}

struct State<T: Clone> {
    last: Option<Result<T, Problem>>,
    good_until: Instant,
    shown_until: Instant,
    asking: bool,
    /// The number of changes. An answer to a question asked before the last change is stale.
    changes: u64,
}

impl<T: Clone + Send + 'static> Cached<T> {
    fn new(page_wait: Duration) -> Self {
        let now = Instant::now();
        let state = State { last: None, good_until: now, shown_until: now, asking: false, changes: 0 };
        Self { page_wait, state: Arc::new(Mutex::new(state)), answered: Arc::new(Notify::new()) }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        let mut state = self.state();
        state.good_until = Instant::now();
        state.changes += 1;
    }

    async fn get<E>(&self, ask: impl Future<Output = Result<T, E>> + Send + 'static) -> Seen<T>
    where
        Problem: From<E>,
    {
        if let Ok(Some(answer)) = timeout(self.page_wait, self.wait(ask)).await {
            return answer.map(Some);
        }
        // Out of time: the previous answer, unless it is too old.
        let mut state = self.state();
        if state.shown_until <= Instant::now() {
            state.last = None;
        }
        state.last.clone().transpose()
    }

    /// Returns a fresh answer; `None` when a change made the answer to this caller's question stale.
    async fn wait<E>(
        &self,
        ask: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Option<Result<T, Problem>>
    where
        Problem: From<E>,
    {
        let mut ask = Some(ask);
        loop {
            let answered = self.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if let Some(good) = self.good() {
                return Some(good);
            }
            if let Some(ask) = ask.take_if(|_| self.must_ask()) {
                self.ask(ask);
            } else if ask.is_none() && !self.state().asking {
                return None;
            }
            answered.await;
        }
    }

    /// Returns the answer if it is fresh.
    fn good(&self) -> Option<Result<T, Problem>> {
        let state = self.state();
        if state.good_until > Instant::now() { state.last.clone() } else { None }
    }

    /// Returns whether this caller has to ask, and notes that it does.
    fn must_ask(&self) -> bool {
        let mut state = self.state();
        let must = !state.asking && state.good_until <= Instant::now();
        state.asking |= must;
        must
    }

    /// Asks in a separate task, so that a cancelled request does not lose the answer.
    fn ask<E>(&self, ask: impl Future<Output = Result<T, E>> + Send + 'static)
    where
        Problem: From<E>,
    {
        let (state, answered) = (Arc::clone(&self.state), Arc::clone(&self.answered));
        let changes = self.state().changes;
        tokio::spawn(async move {
            let begun = Instant::now();
            let answer = ask.await.map_err(Problem::from);
            let (took, now) = (begun.elapsed(), Instant::now());
            {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.last = Some(answer);
                state.good_until = if state.changes == changes { now + FRESH.max(took * TIMES) } else { now };
                state.shown_until = state.good_until + SHOWN.1 + took * SHOWN.0;
                state.asking = false;
            }
            answered.notify_waiters();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn slow(answer: u32) -> Result<u32, milepost_core::error::StoreError> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        Ok(answer)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_comes_with_a_later_page_and_is_asked_for_once() {
        let kept = Cached::new(PAGE_WAIT);
        assert!(matches!(kept.get(slow(1)).await, Ok(None)));
        assert!(matches!(kept.get(slow(2)).await, Ok(None)), "the first answer is pending");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(slow(3)).await, Ok(Some(1))));
    }

    #[tokio::test]
    async fn a_quick_answer_is_there_at_once_and_is_forgotten_when_something_changed() {
        let kept = Cached::new(PAGE_WAIT);
        assert!(matches!(kept.get(async { Ok::<_, Problem>(1) }).await, Ok(Some(1))));
        assert!(matches!(kept.get(async { Ok::<_, Problem>(2) }).await, Ok(Some(1))));
        kept.forget();
        assert!(matches!(kept.get(async { Ok::<_, Problem>(3) }).await, Ok(Some(3))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_long_ago_is_not_shown_as_of_now() {
        let kept = Cached::new(PAGE_WAIT);
        assert!(matches!(kept.get(slow(1)).await, Ok(None)));
        tokio::time::sleep(Duration::from_secs(64)).await;
        assert!(matches!(kept.get(slow(2)).await, Ok(Some(1))), "the next answer is pending");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert!(matches!(kept.get(slow(3)).await, Ok(None)), "the answer may be hours old");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(slow(4)).await, Ok(Some(3))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_before_something_changed_is_asked_again() {
        let kept = Cached::new(PAGE_WAIT);
        let after = |ms: u64, answer: u32| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok::<_, Problem>(answer)
        };
        assert!(matches!(kept.get(after(3_000, 1)).await, Ok(None)));
        kept.forget();
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(after(3_000, 2)).await, Ok(Some(1))), "there is no newer answer");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(
            matches!(kept.get(after(3_000, 3)).await, Ok(Some(2))),
            "the answer was not kept permanently"
        );
        kept.forget();
        let before = kept.get(after(20, 4));
        let changed = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            kept.forget();
            kept.get(after(20, 5)).await
        };
        let (_, changed) = tokio::join!(before, changed);
        assert!(
            matches!(changed, Ok(Some(5))),
            "a page after a change waits for an answer from after the change"
        );
    }
}

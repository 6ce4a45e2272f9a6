//! What is slow to count on a large store is remembered for a while, and counted by one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::ident::BatchId;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::limit::LimitView;
use milepost_core::listing::QueueKinds;
use milepost_core::port::{Store, StoreResult};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::board::Board;
use crate::metrics::KINDS_MAX;
use crate::problem::Problem;

/// For how long an answer is good that took no time.
const FRESH: Duration = Duration::from_secs(1);
/// For how many times as long as it took an answer is good: counting takes no more than this part of the time.
const TIMES: u32 = 20;
/// For how long an answer that is not good any more is still shown, while the next one is on its way: twice as long as it took, and a little.
const SHOWN: (u32, Duration) = (2, Duration::from_secs(10));
/// How many batches are remembered with their tasks.
const BOARDS_MAX: usize = 8;
/// How long a page waits for an answer, unless the server is configured otherwise; then it shows the answer before, or none.
pub(crate) const PAGE_WAIT: Duration = Duration::from_millis(50);

/// What pages share.
pub(crate) struct Known {
    page_wait: Duration,
    queues: Kept<Vec<QueueKinds>>,
    subscriptions: Kept<Vec<SubscriptionView>>,
    consumers: Kept<Vec<ConsumerView>>,
    limits: Kept<Vec<LimitView>>,
    boards: Mutex<HashMap<BatchId, Kept<Arc<Board>>>>,
}

impl Known {
    pub(crate) fn new(page_wait: Duration) -> Self {
        Self {
            page_wait,
            queues: Kept::new(page_wait),
            subscriptions: Kept::new(page_wait),
            consumers: Kept::new(page_wait),
            limits: Kept::new(page_wait),
            boards: Mutex::default(),
        }
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

    /// Every limit with who waits for it.
    pub(crate) async fn limits(&self, store: &Arc<dyn Store>) -> Seen<Vec<LimitView>> {
        let store = Arc::clone(store);
        self.limits.get(async move { store.limits().await }).await
    }

    /// A batch with its tasks.
    pub(crate) async fn board(&self, id: BatchId, store: &Arc<dyn Store>) -> Seen<Arc<Board>> {
        let kept = {
            let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
            if boards.len() >= BOARDS_MAX && !boards.contains_key(&id) {
                boards.clear();
            }
            boards.entry(id).or_insert_with(|| Kept::new(self.page_wait)).clone()
        };
        kept.get(Board::read(id, Arc::clone(store))).await
    }

    /// Somebody has changed something: the next look is a new one.
    pub(crate) fn forget(&self) {
        self.queues.forget();
        self.subscriptions.forget();
        self.consumers.forget();
        self.limits.forget();
        self.boards.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(Kept::forget);
    }
}

/// What is known: the last answer, if there has been one in time.
pub(crate) type Seen<T> = Result<Option<T>, Problem>;

#[derive(Clone)]
struct Kept<T: Clone> {
    page_wait: Duration,
    state: Arc<Mutex<State<T>>>,
    answered: Arc<Notify>,
}

struct State<T: Clone> {
    last: Option<Result<T, Problem>>,
    good_until: Instant,
    shown_until: Instant,
    asking: bool,
    /// How often something was changed: an answer to what was asked before that is not good.
    changes: u64,
}

impl<T: Clone + Send + 'static> Kept<T> {
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

    async fn get(&self, ask: impl Future<Output = StoreResult<T>> + Send + 'static) -> Seen<T> {
        if let Ok(Some(answer)) = timeout(self.page_wait, self.wait(ask)).await {
            return answer.map(Some);
        }
        // Out of time: what was known before, unless that is long ago, or nothing.
        let mut state = self.state();
        if state.shown_until <= Instant::now() {
            state.last = None;
        }
        state.last.clone().transpose()
    }

    /// A good answer; `None` when what was asked here was answered and something has changed meanwhile.
    async fn wait(
        &self,
        ask: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> Option<Result<T, Problem>> {
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

    /// What is known and good.
    fn good(&self) -> Option<Result<T, Problem>> {
        let state = self.state();
        if state.good_until > Instant::now() { state.last.clone() } else { None }
    }

    /// Whether it is this caller who has to ask.
    fn must_ask(&self) -> bool {
        let mut state = self.state();
        let must = !state.asking && state.good_until <= Instant::now();
        state.asking |= must;
        must
    }

    /// Asks beside the request, so that one that is given up does not lose the answer.
    fn ask(&self, ask: impl Future<Output = StoreResult<T>> + Send + 'static) {
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
        let kept = Kept::new(PAGE_WAIT);
        assert!(matches!(kept.get(slow(1)).await, Ok(None)));
        assert!(matches!(kept.get(slow(2)).await, Ok(None)), "the first is still on its way");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(slow(3)).await, Ok(Some(1))));
    }

    #[tokio::test]
    async fn a_quick_answer_is_there_at_once_and_is_forgotten_when_something_changed() {
        let kept = Kept::new(PAGE_WAIT);
        assert!(matches!(kept.get(async { Ok(1) }).await, Ok(Some(1))));
        assert!(matches!(kept.get(async { Ok(2) }).await, Ok(Some(1))));
        kept.forget();
        assert!(matches!(kept.get(async { Ok(3) }).await, Ok(Some(3))));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_of_long_ago_is_not_shown_as_of_now() {
        let kept = Kept::new(PAGE_WAIT);
        assert!(matches!(kept.get(slow(1)).await, Ok(None)));
        tokio::time::sleep(Duration::from_secs(64)).await;
        assert!(matches!(kept.get(slow(2)).await, Ok(Some(1))), "the next one is on its way");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert!(matches!(kept.get(slow(3)).await, Ok(None)), "hours may have passed");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(slow(4)).await, Ok(Some(3))));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_before_something_changed_is_asked_again() {
        let kept = Kept::new(PAGE_WAIT);
        let after = |ms: u64, answer: u32| async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(answer)
        };
        assert!(matches!(kept.get(after(3_000, 1)).await, Ok(None)));
        kept.forget();
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(after(3_000, 2)).await, Ok(Some(1))), "nothing newer is known");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(after(3_000, 3)).await, Ok(Some(2))), "it was not taken for good");
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
            "a page that comes after a change waits for the answer after it"
        );
    }
}

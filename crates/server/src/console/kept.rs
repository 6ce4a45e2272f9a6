//! What is slow to count on a large store is remembered for a while, and counted by one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use milepost_core::event::relay_listing::SubscriptionView;
use milepost_core::ident::BatchId;
use milepost_core::inbox::listing::ConsumerView;
use milepost_core::listing::QueueView;
use milepost_core::port::{Store, StoreResult};
use tokio::sync::Notify;

use super::board::Board;
use crate::problem::Problem;

/// For how long an answer is good that took no time.
const FRESH: Duration = Duration::from_secs(1);
/// For how many times as long as it took an answer is good: counting takes no more than this part of the time.
const TIMES: u32 = 20;
/// How many batches are remembered with their tasks.
const BOARDS_MAX: usize = 8;
/// How long a page waits for one; then it takes the one before, or none.
const PATIENCE: Duration = Duration::from_millis(50);

/// What pages share.
#[derive(Default)]
pub(crate) struct Known {
    queues: Kept<Vec<QueueView>>,
    subscriptions: Kept<Vec<SubscriptionView>>,
    consumers: Kept<Vec<ConsumerView>>,
    boards: Mutex<HashMap<BatchId, Kept<Arc<Board>>>>,
}

impl Known {
    /// Every queue with its counts.
    pub(crate) async fn queues(&self, store: &Arc<dyn Store>) -> Seen<Vec<QueueView>> {
        let store = Arc::clone(store);
        self.queues.get(async move { store.queues().await }).await
    }

    pub(crate) async fn subscriptions(&self, store: &Arc<dyn Store>) -> Seen<Vec<SubscriptionView>> {
        let store = Arc::clone(store);
        self.subscriptions.get(async move { store.subscriptions().await }).await
    }

    pub(crate) async fn consumers(&self, store: &Arc<dyn Store>) -> Seen<Vec<ConsumerView>> {
        let store = Arc::clone(store);
        self.consumers.get(async move { store.consumers().await }).await
    }

    /// A batch with its tasks.
    pub(crate) async fn board(&self, id: BatchId, store: &Arc<dyn Store>) -> Seen<Arc<Board>> {
        let kept = {
            let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
            if boards.len() >= BOARDS_MAX && !boards.contains_key(&id) {
                boards.clear();
            }
            boards.entry(id).or_default().clone()
        };
        kept.get(Board::read(id, Arc::clone(store))).await
    }

    /// Somebody has changed something: the next look is a new one.
    pub(crate) fn forget(&self) {
        self.queues.forget();
        self.subscriptions.forget();
        self.consumers.forget();
        self.boards.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(Kept::forget);
    }
}

/// What is known: the last answer, if there has been one in time.
pub(crate) type Seen<T> = Result<Option<T>, Problem>;

#[derive(Clone)]
struct Kept<T: Clone> {
    state: Arc<Mutex<State<T>>>,
    answered: Arc<Notify>,
}

struct State<T: Clone> {
    last: Option<Result<T, Problem>>,
    good_until: Instant,
    asking: bool,
}

impl<T: Clone> Default for Kept<T> {
    fn default() -> Self {
        let state = State { last: None, good_until: Instant::now(), asking: false };
        Self { state: Arc::new(Mutex::new(state)), answered: Arc::new(Notify::new()) }
    }
}

impl<T: Clone + Send + 'static> Kept<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        self.state().good_until = Instant::now();
    }

    async fn get(&self, ask: impl Future<Output = StoreResult<T>> + Send + 'static) -> Seen<T> {
        let answered = Arc::clone(&self.answered);
        let answer = answered.notified();
        tokio::pin!(answer);
        answer.as_mut().enable();
        if !self.must_ask() {
            if let Some(last) = self.good() {
                return last.map(Some);
            }
        } else {
            self.ask(ask);
        }
        // Out of time: what was known before, or nothing.
        let _ = tokio::time::timeout(PATIENCE, answer).await;
        self.state().last.clone().transpose()
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
        tokio::spawn(async move {
            let begun = Instant::now();
            let answer = ask.await.map_err(Problem::from);
            let good_for = FRESH.max(begun.elapsed() * TIMES);
            {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                state.last = Some(answer);
                state.good_until = Instant::now() + good_for;
                state.asking = false;
            }
            answered.notify_waiters();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_comes_with_a_later_page_and_is_asked_for_once() {
        let kept = Kept::default();
        let slow = |answer: u32| async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Ok(answer)
        };
        assert!(matches!(kept.get(slow(1)).await, Ok(None)));
        assert!(matches!(kept.get(slow(2)).await, Ok(None)), "the first is still on its way");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(matches!(kept.get(slow(3)).await, Ok(Some(1))));
    }

    #[tokio::test]
    async fn a_quick_answer_is_there_at_once_and_is_forgotten_when_something_changed() {
        let kept = Kept::default();
        assert!(matches!(kept.get(async { Ok(1) }).await, Ok(Some(1))));
        assert!(matches!(kept.get(async { Ok(2) }).await, Ok(Some(1))));
        kept.forget();
        assert!(matches!(kept.get(async { Ok(3) }).await, Ok(Some(3))));
    }
}

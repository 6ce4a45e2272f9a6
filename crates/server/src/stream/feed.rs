//! Looks at the store for all watchers of this process.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPage, FeedPosition, InvalidFeed};
use milepost_core::port::{Store, StoreResult};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::window::Window;
use crate::console::series::Series;

/// How often the store is looked at while somebody watches.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often when nobody does.
const IDLE_EVERY: Duration = Duration::from_secs(1);
/// How long to wait after the store did not answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long who watches waits for the store's first answer.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(5);
/// How many changes a window has at most.
const WINDOW_CHANGES_MAX: u32 = 500;
/// How many windows a watcher may be behind before it is dropped. With the size of a window this bounds the memory.
const WINDOWS_MAX: usize = 128;

/// What happens, for all who watch. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    /// Where the last window ended; nothing until the store has answered once. Windows are sent under this lock.
    at: Mutex<Option<FeedPosition>>,
    windows: broadcast::Sender<Arc<Window>>,
    /// What is counted of all that happens.
    series: Arc<Series>,
    /// Whether the store has answered once.
    begun: watch::Sender<bool>,
}

impl Feed {
    /// One that does not look yet. What it sees is counted in `series`.
    pub(crate) fn new(series: Arc<Series>) -> Self {
        let windows = broadcast::Sender::new(WINDOWS_MAX);
        let shared = Shared { at: Mutex::default(), windows, series, begun: watch::Sender::new(false) };
        Self { shared: Arc::new(shared) }
    }

    /// Begins to look, until it is to stop. Must be called within a Tokio runtime.
    pub(crate) fn start(&self, store: Arc<dyn Store>, stop: CancellationToken) {
        let feed = self.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move { feed.look(store.as_ref()).await }));
    }

    /// All that follows the position that is answered with it. `None`: the store has not answered since this process began.
    pub(crate) async fn watch(&self) -> Option<(FeedPosition, broadcast::Receiver<Arc<Window>>)> {
        let mut begun = self.shared.begun.subscribe();
        timeout(FIRST_ANSWER_MAX, begun.wait_for(|begun| *begun)).await.ok()?.ok()?;
        let at = self.shared.at.lock().unwrap_or_else(PoisonError::into_inner);
        at.clone().map(|at| (at, self.shared.windows.subscribe()))
    }

    async fn look(&self, store: &dyn Store) {
        let mut failing = false;
        loop {
            let pause = match self.look_once(store).await {
                Ok(true) => Duration::ZERO,
                Ok(false) if self.shared.windows.receiver_count() > 0 => LOOK_EVERY,
                Ok(false) => IDLE_EVERY,
                Err(error) => {
                    if !failing {
                        tracing::warn!(error = error.chain(), "what happens cannot be read; trying again");
                    }
                    failing = true;
                    tokio::time::sleep(PATIENCE).await;
                    continue;
                }
            };
            failing = false;
            tokio::time::sleep(pause).await;
        }
    }

    /// Answers whether there is more already.
    async fn look_once(&self, store: &dyn Store) -> StoreResult<bool> {
        let known = self.shared.at.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(after) = known else {
            self.move_to(store.feed_end().await?);
            return Ok(false);
        };
        match store.feed(&after, None, WINDOW_CHANGES_MAX).await {
            Ok(page) => Ok(self.send(after, page)),
            Err(StoreError::Feed(InvalidFeed::Foreign)) => {
                tracing::warn!("the store is not the one it was: those who watch begin anew");
                self.move_to(store.feed_end().await?);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn move_to(&self, position: FeedPosition) {
        *self.shared.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(position);
        self.shared.begun.send_replace(true);
    }

    fn send(&self, after: FeedPosition, page: FeedPage) -> bool {
        let mut at = self.shared.at.lock().unwrap_or_else(PoisonError::into_inner);
        *at = Some(page.end.clone());
        if page.end != after {
            self.shared.series.learn(page.changes.iter().map(|(_, change)| change));
            // Nobody may be listening.
            let _ = self.shared.windows.send(Arc::new(Window::new(after, page.end, page.changes)));
        }
        page.more
    }
}

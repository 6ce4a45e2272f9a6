//! Looks at the store for all watchers of this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPage, FeedPosition, InvalidFeed};
use milepost_core::port::{Store, StoreResult};
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::window::Window;

/// How often the store is looked at while somebody watches; it is left alone when nobody does.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long to wait after the store did not answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long who watches waits for the store's first answer.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(5);
/// How many changes are read at once. A store may look at all that is new for each page: few large ones cost less than many small ones.
pub(super) const PAGE_CHANGES: u32 = 5_000;
/// How many changes a window has at most.
pub(super) const WINDOW_CHANGES_MAX: usize = 500;
/// How many windows a watcher may be behind before it is dropped. With the size of a window this bounds the memory.
const WINDOWS_MAX: usize = 128;

/// What happens, for all who watch. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    /// Where the last window ended; nothing while nobody watches, and until the store has answered. Windows are sent under this lock.
    at: Mutex<Option<FeedPosition>>,
    windows: broadcast::Sender<Arc<Window>>,
    /// Told when somebody begins to watch.
    wanted: Notify,
    /// Whether there is a position to begin at.
    begun: watch::Sender<bool>,
}

impl Default for Feed {
    /// One that does not look yet.
    fn default() -> Self {
        let windows = broadcast::Sender::new(WINDOWS_MAX);
        let begun = watch::Sender::new(false);
        let shared = Shared { at: Mutex::default(), windows, wanted: Notify::new(), begun };
        Self { shared: Arc::new(shared) }
    }
}

impl Feed {
    /// Begins to look, until it is to stop. Must be called within a Tokio runtime.
    pub(crate) fn start(&self, store: Arc<dyn Store>, stop: CancellationToken) {
        let feed = self.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move { feed.look(store.as_ref()).await }));
    }

    /// All that follows the position that is answered with it. `None`: the store does not answer.
    pub(crate) async fn watch(&self) -> Option<(FeedPosition, broadcast::Receiver<Arc<Window>>)> {
        // Who waits counts as one who watches.
        let _waiting = self.shared.windows.subscribe();
        self.shared.wanted.notify_one();
        let mut begun = self.shared.begun.subscribe();
        timeout(FIRST_ANSWER_MAX, begun.wait_for(|begun| *begun)).await.ok()?.ok()?;
        let at = self.at();
        at.clone().map(|at| (at, self.shared.windows.subscribe()))
    }

    fn at(&self) -> MutexGuard<'_, Option<FeedPosition>> {
        self.shared.at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody watches. Then what happens is let go: who comes next begins at what is the end then.
    fn is_left(&self) -> bool {
        let mut at = self.at();
        let left = self.shared.windows.receiver_count() == 0;
        if left {
            *at = None;
            self.shared.begun.send_replace(false);
        }
        left
    }

    async fn look(&self, store: &dyn Store) {
        let mut failing = false;
        loop {
            if self.is_left() {
                self.shared.wanted.notified().await;
            }
            let pause = match self.look_once(store).await {
                Ok(true) => Duration::ZERO,
                Ok(false) => LOOK_EVERY,
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
        let known = self.at().clone();
        let Some(after) = known else {
            self.move_to(store.feed_end().await?);
            return Ok(false);
        };
        match store.feed(&after, None, PAGE_CHANGES).await {
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
        *self.at() = Some(position);
        self.shared.begun.send_replace(true);
    }

    fn send(&self, mut after: FeedPosition, mut page: FeedPage) -> bool {
        let mut at = self.at();
        while page.changes.len() > WINDOW_CHANGES_MAX {
            let rest = page.changes.split_off(WINDOW_CHANGES_MAX);
            let changes = std::mem::replace(&mut page.changes, rest);
            let end = changes.last().map_or_else(|| after.clone(), |(end, _)| end.clone());
            self.tell(Window::new(after, end.clone(), changes));
            after = end;
        }
        if page.end != after {
            self.tell(Window::new(after, page.end.clone(), page.changes));
        }
        *at = Some(page.end);
        page.more
    }

    fn tell(&self, window: Window) {
        // Nobody may be listening.
        let _ = self.shared.windows.send(Arc::new(window));
    }
}

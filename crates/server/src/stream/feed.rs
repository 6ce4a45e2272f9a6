//! The reader of state changes, shared by all streams of this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPage, FeedPosition, InvalidFeed};
use milepost_core::port::{Store, StoreResult};
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::window::Window;

/// Polling interval while there are streams. The store is not polled without streams.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Wait after the store did not respond.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a new stream waits for the store's first response.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(5);
/// Maximum number of changes in one query. A store may scan all new changes for each page, so a few large pages cost less than
/// many small ones.
pub(super) const PAGE_CHANGES: u32 = 5_000;
/// Maximum number of changes in a window.
pub(super) const WINDOW_CHANGES_MAX: usize = 500;
/// Maximum number of windows that a stream may lag behind before it is dropped. Together with the window size, this bounds the
/// memory.
const WINDOWS_MAX: usize = 128;

/// State changes for all streams. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Feed {
    shared: Arc<Shared>,
}

struct Shared {
    /// The end of the last window; `None` without streams, and until the store has responded. Windows are sent while this lock is
    /// held.
    at: Mutex<Option<FeedPosition>>,
    windows: broadcast::Sender<Arc<Window>>,
    /// Notified when a stream is opened.
    wanted: Notify,
    /// Whether there is a start position.
    begun: watch::Sender<bool>,
}

impl Default for Feed {
    /// Creates a feed that does not poll yet.
    fn default() -> Self {
        let windows = broadcast::Sender::new(WINDOWS_MAX);
        let begun = watch::Sender::new(false);
        let shared = Shared { at: Mutex::default(), windows, wanted: Notify::new(), begun };
        Self { shared: Arc::new(shared) }
    }
}

impl Feed {
    /// Starts polling until `stop` is cancelled. Must be called within a Tokio runtime.
    pub(crate) fn start(&self, store: Arc<dyn Store>, stop: CancellationToken) {
        let feed = self.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move { feed.look(store.as_ref()).await }));
    }

    /// Returns a position and the windows after it. `None`: the store does not respond.
    pub(crate) async fn watch(&self) -> Option<(FeedPosition, broadcast::Receiver<Arc<Window>>)> {
        // A waiting stream counts as open.
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

    /// Returns whether there are no streams. If so, resets the position: the next stream starts at the end of the feed at that
    /// time.
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
                        tracing::warn!(error = error.chain(), "the state changes cannot be read; retrying");
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

    /// Reads a page and sends it. Returns whether more changes are available already.
    async fn look_once(&self, store: &dyn Store) -> StoreResult<bool> {
        let known = self.at().clone();
        let Some(after) = known else {
            self.move_to(store.feed_end().await?);
            return Ok(false);
        };
        match store.feed(&after, None, PAGE_CHANGES).await {
            Ok(page) => Ok(self.send(after, page)),
            Err(StoreError::Feed(InvalidFeed::Foreign)) => {
                tracing::warn!("the store was replaced: all streams are reset");
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
        // There may be no receivers.
        let _ = self.shared.windows.send(Arc::new(window));
    }
}

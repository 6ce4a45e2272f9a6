//! One stream: first the missed changes, then new ones.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use milepost_core::error::StoreError;
use milepost_core::feed::{FeedPosition, InvalidFeed};
use milepost_core::port::Store;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use super::feed::{PAGE_CHANGES, WINDOW_CHANGES_MAX};
use super::filter::Filter;
use super::open_streams::OpenStream;
use super::window::{Window, heartbeat, notice, write};
use crate::access::{OpenCredentials, Over};

/// Interval of heartbeats.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

/// The reason why a stream ends.
enum Ended {
    /// The client has disconnected.
    Gone,
    /// The client accepts data too slowly.
    Slow,
    /// The store does not respond.
    StoreFailed(StoreError),
    /// The server shuts down.
    Stopping,
    /// The credentials are no longer valid.
    Over(Over),
}

/// A stream and its position.
pub(super) struct Watcher {
    pub(super) store: Arc<dyn Store>,
    pub(super) filter: Filter,
    pub(super) at: FeedPosition,
    pub(super) windows: Receiver<Arc<Window>>,
    pub(super) stop: CancellationToken,
    pub(super) seat: OpenStream,
    /// Whether it shows only the changes that `store` returns: windows contain those of all jobs.
    pub(super) is_limited: bool,
}

impl Watcher {
    /// Sends changes until the stream ends, then the reason. `upto`: the start of the windows. `credentials`: the lifetime of the
    /// credentials.
    pub(super) async fn run(
        mut self,
        upto: FeedPosition,
        credentials: OpenCredentials,
        out: mpsc::Sender<Bytes>,
    ) {
        // Reserve capacity for the last message now: a client that accepts nothing leaves no capacity later.
        let Ok(last_word) = out.clone().reserve_owned().await else { return };
        let ended = tokio::select! {
            ended = self.watch(upto, &out) => { let Err(ended) = ended; ended }
            over = credentials.over() => Ended::Over(over),
        };
        let (reason, words) = match &ended {
            Ended::Gone => return,
            Ended::Slow => {
                tracing::info!("a stream was ended: its client was too slow");
                self.seat.count_dropped();
                ("slow_reader", "the client was too slow; reconnect with the last id")
            }
            Ended::StoreFailed(error) => {
                tracing::warn!(error = error.chain(), "a stream ends: the store does not respond");
                ("store_unavailable", "the store does not respond; reconnect with the last id")
            }
            Ended::Stopping => ("shutting_down", "the server is shutting down; reconnect with the last id"),
            Ended::Over(Over { reason, words }) => (reason.as_str(), words.as_str()),
        };
        last_word.send(notice("dropped", reason, words, None));
    }

    async fn watch(
        &mut self,
        upto: FeedPosition,
        out: &mpsc::Sender<Bytes>,
    ) -> Result<std::convert::Infallible, Ended> {
        self.send(out, heartbeat(&self.at)).await?;
        self.catch_up(&upto, out).await?;
        let mut heartbeats = interval_at(Instant::now() + HEARTBEAT_EVERY, HEARTBEAT_EVERY);
        loop {
            let window = tokio::select! {
                window = self.windows.recv() => window,
                _ = heartbeats.tick() => {
                    self.send(out, heartbeat(&self.at)).await?;
                    continue;
                }
                () = out.closed() => return Err(Ended::Gone),
                () = self.stop.cancelled() => return Err(Ended::Stopping),
            };
            match window {
                Ok(window) => self.tell(&window, out).await?,
                Err(RecvError::Lagged(_)) => return Err(Ended::Slow),
                Err(RecvError::Closed) => return Err(Ended::Stopping),
            }
        }
    }

    async fn tell(&mut self, window: &Window, out: &mpsc::Sender<Bytes>) -> Result<(), Ended> {
        if self.is_limited || self.at != window.after {
            // The position of the client was, or still is, ahead of this process, or the window contains changes of others.
            return self.catch_up(&window.end, out).await;
        }
        self.at = window.end.clone();
        let text = window.text(&self.filter);
        if text.is_empty() { Ok(()) } else { self.send(out, text).await }
    }

    /// Reads the changes up to another position, for this stream only.
    async fn catch_up(&mut self, upto: &FeedPosition, out: &mpsc::Sender<Bytes>) -> Result<(), Ended> {
        while self.at != *upto {
            let page = match self.store.feed(&self.at, Some(upto), PAGE_CHANGES).await {
                Ok(page) => page,
                Err(StoreError::Feed(invalid)) => {
                    self.at = upto.clone();
                    let text = notice("reset", reset_reason(&invalid), &invalid.to_string(), Some(upto));
                    return self.send(out, text).await;
                }
                Err(error) => return Err(Ended::StoreFailed(error)),
            };
            for changes in page.changes.chunks(WINDOW_CHANGES_MAX) {
                let text = write(changes, &self.filter);
                if !text.is_empty() {
                    self.send(out, text).await?;
                }
            }
            if page.end == self.at {
                // The stream is ahead of that position: a later window may reach it.
                return Ok(());
            }
            self.at = page.end;
        }
        Ok(())
    }

    async fn send(&self, out: &mpsc::Sender<Bytes>, text: Bytes) -> Result<(), Ended> {
        match timeout(self.seat.reader_time(), out.send(text)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Ended::Gone),
            Err(_) => Err(Ended::Slow),
        }
    }
}

fn reset_reason(invalid: &InvalidFeed) -> &'static str {
    match invalid {
        InvalidFeed::TooFarBehind => "too_far_behind",
        _ => "other_store",
    }
}

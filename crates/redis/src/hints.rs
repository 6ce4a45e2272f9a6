//! Hints from other processes to query the store. Several hints at a time are merged into one.

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use tokio::sync::watch;

/// Notifies all listeners of this process.
#[derive(Debug)]
pub(crate) struct Hints {
    ready: watch::Sender<()>,
    stop: watch::Sender<()>,
}

impl Hints {
    pub(crate) fn new() -> Self {
        Self { ready: watch::Sender::new(()), stop: watch::Sender::new(()) }
    }

    pub(crate) fn tell(&self, wake: Wake) {
        match wake {
            Wake::Ready | Wake::Batch => self.ready.send_replace(()),
            Wake::Stop => self.stop.send_replace(()),
        }
    }

    pub(crate) fn listen(&self) -> Listener {
        Listener { ready: self.ready.subscribe(), stop: self.stop.subscribe() }
    }
}

/// A listener for hints.
pub(crate) struct Listener {
    ready: watch::Receiver<()>,
    stop: watch::Receiver<()>,
}

#[async_trait]
impl WakeStream for Listener {
    async fn next(&mut self) -> Wake {
        tokio::select! {
            biased;
            Ok(()) = self.stop.changed() => Wake::Stop,
            Ok(()) = self.ready.changed() => Wake::Ready,
            // The helper was dropped, so there are no further hints.
            else => std::future::pending().await,
        }
    }
}

//! Notifications within this process: jobs may be ready, a job may have a stop request, batches have work left.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::command::Hint;

/// Notifies all waiting tasks of this process.
#[derive(Debug)]
pub(crate) struct Notifier {
    pub(crate) ready: watch::Sender<()>,
    pub(crate) stop: watch::Sender<()>,
    pub(crate) batches: watch::Sender<()>,
    pub(crate) log: watch::Sender<()>,
    changed: watch::Sender<()>,
    /// The number of waiting listeners.
    pub(crate) waiting: AtomicUsize,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        let [ready, stop, batches, log, changed] = [(); 5].map(watch::Sender::new);
        Self { ready, stop, batches, log, changed, waiting: AtomicUsize::new(0) }
    }

    /// Returns whether anyone waits, so that checking the file is worthwhile.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Returns a receiver that is notified of every commit that this process makes or notices, whatever its hint.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Announces that batches have work left.
    pub(crate) fn ring_for_batches(&self) {
        self.batches.send_replace(());
    }

    /// Returns whether anyone follows the event log, so that checking its end is worthwhile.
    pub(crate) fn is_log_followed(&self) -> bool {
        self.log.receiver_count() > 0
    }

    /// Announces that the event log has grown.
    pub(crate) fn ring_for_log(&self) {
        self.log.send_replace(());
    }

    pub(crate) fn ring(&self, hint: Hint) {
        self.changed.send_replace(());
        if hint.stop {
            self.stop.send_replace(());
        }
        if hint.ready {
            self.ready.send_replace(());
        }
    }
}

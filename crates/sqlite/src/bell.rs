//! Notifications within this process: jobs may be ready, a job may have a stop request, batches have work left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use tokio::sync::watch;

use crate::command::Hint;
use crate::due::DueTimes;
use crate::writer::Message;

/// Notifies all waiting tasks of this process.
#[derive(Debug)]
pub(crate) struct Bell {
    ready: watch::Sender<()>,
    stop: watch::Sender<()>,
    batches: watch::Sender<()>,
    log: watch::Sender<()>,
    changed: watch::Sender<()>,
    waiting: AtomicUsize,
}

impl Bell {
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

/// Waits for notifications.
pub(crate) struct Listener {
    bell: Arc<Bell>,
    writer: Sender<Message>,
    ready: watch::Receiver<()>,
    stop: watch::Receiver<()>,
    batches: watch::Receiver<()>,
    due: DueTimes,
}

impl Listener {
    pub(crate) fn new(bell: &Arc<Bell>, writer: Sender<Message>, due: DueTimes) -> Self {
        let (ready, stop, batches) =
            (bell.ready.subscribe(), bell.stop.subscribe(), bell.batches.subscribe());
        Self { bell: Arc::clone(bell), writer, ready, stop, batches, due }
    }
}

/// Follows the event log.
pub(crate) struct LogListener {
    listener: Listener,
    log: watch::Receiver<()>,
}

impl LogListener {
    pub(crate) fn new(listener: Listener) -> Self {
        let log = listener.bell.log.subscribe();
        Self { listener, log }
    }
}

#[async_trait]
impl WakeStream for LogListener {
    async fn next(&mut self) -> Wake {
        // The listener holds the bell, so its channels are never closed.
        tokio::select! {
            wake = self.listener.next() => wake,
            _ = self.log.changed() => Wake::Ready,
        }
    }
}

/// Counts one waiting listener for as long as this value exists.
struct Waiting<'a>(&'a Bell);

impl<'a> Waiting<'a> {
    fn new(bell: &'a Bell, writer: &Sender<Message>) -> Self {
        if bell.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            // The writer may be idle and not checking the file. If the writer has ended, there are no more notifications.
            drop(writer.send(Message::Look));
        }
        Self(bell)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl WakeStream for Listener {
    async fn next(&mut self) -> Wake {
        let _waiting = Waiting::new(&self.bell, &self.writer);
        // The listener holds the bell, so its channels are never closed.
        tokio::select! {
            biased;
            _ = self.stop.changed() => return Wake::Stop,
            _ = self.batches.changed() => return Wake::Batch,
            _ = self.ready.changed() => {}
            () = self.due.next() => {}
        }
        self.due.announced();
        Wake::Ready
    }
}

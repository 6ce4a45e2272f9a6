//! Hints to those who wait: something may be ready, somebody may have asked a job to stop, batches have something left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use tokio::sync::watch;

use crate::command::Hint;
use crate::due::DueTimes;
use crate::writer::Message;

/// Rings for everybody of this process who waits.
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

    /// Whether somebody waits, so that looking at the file is worth it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// What this process commits, whether anybody has to be told or not.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Batches have something left to be done.
    pub(crate) fn ring_for_batches(&self) {
        self.batches.send_replace(());
    }

    /// Whether somebody follows the log of events, so that looking where it ends is worth it.
    pub(crate) fn is_log_followed(&self) -> bool {
        self.log.receiver_count() > 0
    }

    /// The log of events has grown.
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

/// One who waits.
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

/// One who follows the log of events.
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
        // The bell lives as long as the listener.
        tokio::select! {
            wake = self.listener.next() => wake,
            _ = self.log.changed() => Wake::Ready,
        }
    }
}

/// Counts one who waits, for as long as it stands.
struct Waiting<'a>(&'a Bell);

impl<'a> Waiting<'a> {
    fn new(bell: &'a Bell, writer: &Sender<Message>) -> Self {
        if bell.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            // The writer may sleep without looking at the file. When it is gone, nothing rings any more.
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
        // The bell lives as long as this listener, so neither side is ever closed.
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

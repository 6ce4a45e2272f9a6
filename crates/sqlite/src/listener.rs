//! Listeners: how the tasks of this process wait until there may be something to do.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use async_trait::async_trait;
use milepost_core::port::{Wake, WakeStream};
use tokio::sync::watch;

use crate::command::Message;
use crate::due::DueTimes;
use crate::notifications::Notifier;
use crate::store::SqliteStore;

/// Waits for notifications.
pub(crate) struct Listener {
    notifier: Arc<Notifier>,
    writer: Sender<Message>,
    ready: watch::Receiver<()>,
    stop: watch::Receiver<()>,
    batches: watch::Receiver<()>,
    due: DueTimes,
}

impl Listener {
    fn new(notifier: &Arc<Notifier>, writer: Sender<Message>, due: DueTimes) -> Self {
        let (ready, stop, batches) =
            (notifier.ready.subscribe(), notifier.stop.subscribe(), notifier.batches.subscribe());
        Self { notifier: Arc::clone(notifier), writer, ready, stop, batches, due }
    }
}

/// Follows the event log. Waits for neither jobs nor their times.
pub(crate) struct LogListener {
    notifier: Arc<Notifier>,
    writer: Sender<Message>,
    log: watch::Receiver<()>,
}

impl SqliteStore {
    pub(crate) fn listener(&self) -> Listener {
        let notifier = self.notifier();
        Listener::new(notifier, self.writer_messages(), DueTimes::new(self.clone(), notifier.changes()))
    }

    pub(crate) fn log_listener(&self) -> LogListener {
        let notifier = Arc::clone(self.notifier());
        let log = notifier.log.subscribe();
        LogListener { notifier, writer: self.writer_messages(), log }
    }
}

#[async_trait]
impl WakeStream for LogListener {
    async fn next(&mut self) -> Wake {
        let _waiting = Waiting::new(&self.notifier, &self.writer);
        // This holds the notifier, so the channel is never closed.
        let _ = self.log.changed().await;
        Wake::Ready
    }
}

/// Counts one waiting listener for as long as this value exists.
struct Waiting<'a>(&'a Notifier);

impl<'a> Waiting<'a> {
    fn new(notifier: &'a Notifier, writer: &Sender<Message>) -> Self {
        if notifier.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            // The writer may be idle and not checking the file. If the writer has ended, there are no more notifications.
            drop(writer.send(Message::Look));
        }
        Self(notifier)
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
        let _waiting = Waiting::new(&self.notifier, &self.writer);
        // The listener holds the notifier, so its channels are never closed.
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

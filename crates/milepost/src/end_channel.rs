//! The channel of the ends of runs, from executors to the completer.

use milepost_core::finish::Finish;
use tokio::sync::mpsc;

/// The most ends in one call of the store.
pub(crate) const BATCH_MAX: usize = 2000;

/// The channel into which executors send their ends.
#[derive(Clone, Debug)]
pub(crate) struct Ends(mpsc::Sender<Finish>);

impl Ends {
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Finish>) {
        let (sender, receiver) = mpsc::channel(4 * BATCH_MAX);
        (Self(sender), receiver)
    }

    /// Waits while too many ends are unanswered. This slows claims down when the store is slow.
    pub(crate) async fn send(&self, finish: Finish) {
        if self.0.send(finish).await.is_err() {
            tracing::debug!("a run ended after its worker had stopped; the job will be rescued");
        }
    }
}

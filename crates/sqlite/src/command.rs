//! Commands for the writer thread: a closure that runs in a savepoint of a shared transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use milepost_core::error::StoreError;
use rusqlite::Transaction;
use tokio::sync::oneshot;

use crate::error::{Outage, defect};

/// The notifications that follow the commit of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hint {
    /// Jobs may have become ready.
    pub(crate) ready: bool,
    /// A running job may have a stop request.
    pub(crate) stop: bool,
}

impl Hint {
    pub(crate) const NONE: Self = Self { ready: false, stop: false };
    pub(crate) const READY: Self = Self { ready: true, stop: false };
}

/// A closure that waits for the writer, with its types erased.
pub(crate) trait Command: Send {
    /// Runs the closure; returns whether its writes are kept.
    fn run(&mut self, tx: &Transaction<'_>) -> bool;
    /// Replies to the caller, once it is known whether the transaction is durable.
    fn answer(self: Box<Self>, lost: Option<&Outage>);
    /// Returns the time at which it was queued.
    fn queued_at(&self) -> Instant;
    /// Returns the notifications to send when it is durable.
    fn hint(&self) -> Hint;
}

/// Messages to the writer thread.
pub(crate) enum Message {
    /// Run this command.
    Run(Box<dyn Command>),
    /// A listener began to wait for notifications.
    Look,
    /// End after the messages sent before, close the file, then answer.
    Close(oneshot::Sender<()>),
}

/// A [`Command`] that runs a closure.
pub(crate) struct Call<T, E, F> {
    verb: &'static str,
    hint: Hint,
    queued_at: Instant,
    work: Option<F>,
    outcome: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, F> Call<T, E, F> {
    pub(crate) fn new(verb: &'static str, hint: Hint, work: F) -> (Self, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        let call = Self { verb, hint, queued_at: Instant::now(), work: Some(work), outcome: None, reply };
        (call, answer)
    }
}

impl<T, E, F> Command for Call<T, E, F>
where
    T: Send,
    E: From<StoreError> + Send,
    F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send,
{
    fn run(&mut self, tx: &Transaction<'_>) -> bool {
        let Some(work) = self.work.take() else {
            return false;
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|panic| {
            let words = format!("the closure panicked: {}", words_of(panic.as_ref()));
            Err(E::from(defect(self.verb, words)))
        });
        let stays = outcome.is_ok();
        self.outcome = Some(outcome);
        stays
    }

    fn answer(self: Box<Self>, lost: Option<&Outage>) {
        let outcome = match (self.outcome, lost) {
            // An error of the closure itself does not depend on the outcome of the transaction.
            (Some(Err(error)), _) => Err(error),
            (_, Some(outage)) => Err(E::from(outage.told(self.verb))),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => Err(E::from(defect(self.verb, "the writer did not run the command"))),
        };
        // A caller that stopped waiting does not need the reply.
        drop(self.reply.send(outcome));
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn hint(&self) -> Hint {
        match self.outcome {
            Some(Ok(_)) => self.hint,
            _ => Hint::NONE,
        }
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}

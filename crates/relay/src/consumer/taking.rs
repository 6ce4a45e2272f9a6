//! One event in the hands of a handler.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use milepost_core::error::Cause;
use milepost_core::event::Event;
use milepost_core::ident::EventId;
use milepost_core::port::{InboxCache, Remembered};
use tokio::sync::OwnedSemaphorePermit;

use super::{Handler, Receipt};

/// How long an event waits that somebody else is taking in, as the cache says.
const PROCESSING_WAIT: Duration = Duration::from_secs(1);

/// What remembers which events the consumer of this name has taken in.
#[derive(Clone)]
pub(super) struct Memory {
    pub(super) cache: Arc<dyn InboxCache>,
    pub(super) consumer: String,
}

/// A message in hand.
pub(super) struct Message {
    pub(super) event: Event,
    pub(super) receipt: Box<dyn Receipt>,
    pub(super) _place: OwnedSemaphorePermit,
}

/// What became of a piece of work.
pub(super) enum Ended {
    /// What was kept was taken in.
    Drained,
    /// An event was handled and acknowledged.
    Handled(EventId),
    /// An event was acknowledged that had been handled before.
    Remembered,
    /// An event waits for somebody else who is taking it in.
    PutOff,
    Failed(Failed),
}

/// A message whose handler failed.
pub(super) struct Failed {
    pub(super) message: Option<Box<Message>>,
    pub(super) why: Cause,
}

/// Has an event taken in, unless it is known that it was or is being taken in.
pub(super) async fn take_in(handler: &dyn Handler, memory: Option<&Memory>, message: Box<Message>) -> Ended {
    let id = message.event.id;
    if let Some(Memory { cache, consumer }) = memory {
        match cache.recall(consumer, id).await {
            Remembered::Nothing => {}
            Remembered::Done => {
                told(message.receipt.acknowledge().await);
                return Ended::Remembered;
            }
            Remembered::Processing => {
                told(message.receipt.retry(PROCESSING_WAIT).await);
                return Ended::PutOff;
            }
        }
    }
    let answer = caught(handler.handle(&message.event)).await;
    if let Some(Memory { cache, consumer }) = memory {
        match answer {
            Ok(()) => cache.remember(consumer, id).await,
            Err(_) => cache.forget(consumer, id).await,
        }
    }
    match answer {
        Ok(()) => {
            told(message.receipt.acknowledge().await);
            Ended::Handled(id)
        }
        Err(why) => Ended::Failed(Failed { message: Some(message), why }),
    }
}

pub(super) async fn caught(doing: impl Future<Output = Result<(), Cause>>) -> Result<(), Cause> {
    AssertUnwindSafe(doing).catch_unwind().await.unwrap_or_else(|_| Err("the handler panicked".into()))
}

/// A broker that did not hear it brings the message again, which the inbox knows by then.
pub(super) fn told(answer: Result<(), String>) {
    if let Err(why) = answer {
        tracing::debug!(why, "the broker was not told what became of a message");
    }
}

//! Processing of one event by a handler.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use milepost_core::error::Cause;
use milepost_core::event::Event;
use milepost_core::ident::EventId;
use milepost_core::port::{InboxCache, Remembered};
use tokio::sync::OwnedSemaphorePermit;

use super::{Handler, Receipt, reply};

/// How long an event waits if another consumer is processing it according to the cache.
const PROCESSING_WAIT: Duration = Duration::from_secs(1);

/// The cache of processed events, and the name of the consumer.
#[derive(Clone)]
pub(super) struct Memory {
    pub(super) cache: Arc<dyn InboxCache>,
    pub(super) consumer: String,
}

/// A message in progress.
pub(super) struct Message {
    pub(super) event: Event,
    pub(super) receipt: Box<dyn Receipt>,
    pub(super) _place: OwnedSemaphorePermit,
}

/// The result of a piece of work.
pub(super) enum Ended {
    /// The ready events of the inbox were processed.
    Drained,
    /// An event was handled and acknowledged.
    Handled(EventId),
    /// An event was acknowledged that had been handled before.
    Remembered,
    /// An event waits because another consumer is processing it.
    PutOff,
    Failed(Failed),
}

/// A message whose handler failed.
pub(super) struct Failed {
    pub(super) message: Option<Box<Message>>,
    pub(super) why: Cause,
}

/// Runs the handler for an event, unless the cache has recorded that it was processed or is being processed.
pub(super) async fn take_in(handler: &dyn Handler, memory: Option<&Memory>, message: Box<Message>) -> Ended {
    let id = message.event.id;
    if let Some(Memory { cache, consumer }) = memory {
        match cache.recall(consumer, id).await {
            Remembered::Nothing => {}
            Remembered::Done => {
                tell(message.receipt.acknowledge()).await;
                return Ended::Remembered;
            }
            Remembered::Processing => {
                tell(message.receipt.retry(PROCESSING_WAIT)).await;
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
            tell(message.receipt.acknowledge()).await;
            Ended::Handled(id)
        }
        Err(why) => Ended::Failed(Failed { message: Some(message), why }),
    }
}

pub(super) async fn caught(doing: impl Future<Output = Result<(), Cause>>) -> Result<(), Cause> {
    AssertUnwindSafe(doing).catch_unwind().await.unwrap_or_else(|_| Err("the handler panicked".into()))
}

/// Reports a result to the broker, and logs if that fails. The broker redelivers the message at the latest when the connection or the process has ended,
/// and the inbox recognizes it.
pub(super) async fn tell(report: impl Future<Output = Result<(), String>>) {
    if let Err(why) = reply(report).await {
        tracing::warn!(why, "the result of a message could not be sent to the broker");
    }
}

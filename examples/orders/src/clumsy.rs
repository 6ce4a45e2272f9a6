//! Deliberate failures between a broker and its consumers.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use milepost::event::{Aggregate, Event};
use milepost_relay::consumer::Handler;

use crate::Cause;

/// Fails every fifth event. Alternately, it fails before the event is processed, so that later events of its order arrive first, and
/// between commit and acknowledgement, like a process that dies there, so that the event is delivered again.
pub(crate) struct Clumsy<H> {
    handler: H,
    handled: AtomicU64,
}

impl<H> Clumsy<H> {
    pub(crate) const fn new(handler: H) -> Self {
        Self { handler, handled: AtomicU64::new(0) }
    }
}

#[async_trait]
impl<H: Handler> Handler for Clumsy<H> {
    async fn handle(&self, event: &Event) -> Result<(), Cause> {
        let nth = self.handled.fetch_add(1, Ordering::Relaxed) % 10;
        if nth == 4 {
            return Err("dropped before it was processed".into());
        }
        self.handler.handle(event).await?;
        if nth == 9 { Err("dropped before it was acknowledged".into()) } else { Ok(()) }
    }

    async fn drain(&self, aggregate: &Aggregate) -> Result<(), Cause> {
        self.handler.drain(aggregate).await
    }
}

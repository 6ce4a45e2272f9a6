//! Events pass through.

use async_trait::async_trait;
use milepost_core::event::listing::{EventFilter, LoggedEvent};
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::port::{EventLog, StoreResult};

use super::Faulty;

#[async_trait]
impl EventLog for Faulty {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        self.inner.emit_many(events).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        self.inner.events(filter).await
    }
}

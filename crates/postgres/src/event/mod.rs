//! Events: emission into the log, and listings.

mod emit;
mod error;
mod listing;

use async_trait::async_trait;
use milepost_core::event::listing::{EventFilter, LoggedEvent};
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::port::{EventLog, StoreResult};

pub use emit::{emit, emit_many};
pub(crate) use emit::{emit_in, emit_many_in, headers_text};
pub(crate) use listing::{after_place, read_event, read_event_with};

use crate::store::PostgresStore;

#[async_trait]
impl EventLog for PostgresStore {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        self.emit_events(events).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        self.list_events(filter).await
    }
}

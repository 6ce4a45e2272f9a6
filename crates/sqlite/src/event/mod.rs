//! Events: how they come into the log, and how people read it.

mod emit;
mod listing;

use async_trait::async_trait;
use milepost_core::event::listing::{EventFilter, LoggedEvent};
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::port::{EventLog, StoreResult};

pub use emit::{emit, emit_many};
pub(crate) use listing::read_event;

use crate::command::Hint;
use crate::store::SqliteStore;

#[async_trait]
impl EventLog for SqliteStore {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        emit::check_call(events)?;
        NewEvent::check_all(events, self.options().payload_bytes_max)?;
        let events = events.to_vec();
        self.write("emit", Hint::READY, move |tx| emit::insert(tx, &events)).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        let filter = filter.clone();
        self.read("events", move |conn| listing::events(conn, &filter)).await
    }
}

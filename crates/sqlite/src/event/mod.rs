//! Events: emission and listing.

mod emit;
mod listing;

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::audit::{AuditedAction, made_events};
use milepost_core::event::listing::{EventFilter, LoggedEvent};
use milepost_core::event::{Emitted, NewEvent};
use milepost_core::port::{EventLog, StoreResult};

pub use emit::{emit, emit_many};
pub(crate) use listing::{after_place, read_event};

use crate::command::Hint;
use crate::store::SqliteStore;

#[async_trait]
impl EventLog for SqliteStore {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        emit::check_call(events)?;
        NewEvent::check_all(events, self.options().payload_bytes_max)?;
        let (action, events) = (AuditedAction::emit(events), Arc::<[NewEvent]>::from(events));
        let given = Arc::clone(&events);
        let tell = move |emitted: &Vec<Emitted>| made_events(&given, emitted);
        self.act_telling("emit", Hint::READY, action, move |tx| emit::insert(tx, &events), tell).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        let filter = filter.clone();
        self.read("events", move |conn| listing::events(conn, &filter)).await
    }
}

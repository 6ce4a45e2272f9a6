//! Store port for the event log.

use async_trait::async_trait;

use super::StoreResult;
use crate::error::StoreError;
use crate::event::listing::{EventFilter, LoggedEvent};
use crate::event::{Emitted, NewEvent};

/// Writes and lists events, each call in a separate transaction.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Writes the events to the log, all or none, and returns the results in their order. Events of one aggregate are
    /// numbered in this order. An event that already exists with the same id and content changes nothing. When this returns
    /// `Ok`, the events are durable. [`TooLarge`](StoreError::TooLarge) when there are more events than one transaction may
    /// process; some stores have such a limit.
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>>;

    /// Writes one event to the log, like [`emit_many`](Self::emit_many).
    async fn emit(&self, event: &NewEvent) -> StoreResult<Emitted> {
        let emitted = self.emit_many(std::slice::from_ref(event)).await?;
        let unanswered =
            || StoreError::Database { verb: "emit", cause: "the store returned no result".into() };
        emitted.first().copied().ok_or_else(unanswered)
    }

    /// Lists a page of the log.
    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>>;
}

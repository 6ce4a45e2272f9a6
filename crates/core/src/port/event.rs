//! The log of events.

use async_trait::async_trait;

use super::StoreResult;
use crate::error::StoreError;
use crate::event::listing::{EventFilter, LoggedEvent};
use crate::event::{Emitted, NewEvent};

/// Takes events, each call in a transaction of its own, and shows them.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Writes the events to the log, all or none, and answers in their order; those of one aggregate are numbered in it. An
    /// event that is there, with the same id and content, changes nothing. When this returns `Ok`, the events are durable.
    /// [`TooLarge`](StoreError::TooLarge) when there are more than one transaction may take, which some stores bound.
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>>;

    /// Writes one event to the log, as [`emit_many`](Self::emit_many) does.
    async fn emit(&self, event: &NewEvent) -> StoreResult<Emitted> {
        let emitted = self.emit_many(std::slice::from_ref(event)).await?;
        let unanswered = || StoreError::Database { verb: "emit", cause: "it was not answered".into() };
        emitted.first().copied().ok_or_else(unanswered)
    }

    /// A page of the log, for people.
    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>>;
}

//! Store port for inboxes, for operators and for processes that run consumers.

use async_trait::async_trait;

use super::StoreResult;
use crate::event::Aggregate;
use crate::event::listing::AggregatePlace;
use crate::inbox::Consumer;
use crate::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};

/// Management of inboxes. Receiving an event is not part of this port, because it joins the consumer's transaction.
#[async_trait]
pub trait InboxStore: Send + Sync {
    /// Stores the settings of a consumer. Existing gaps keep their deadline.
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()>;

    /// Lists the consumers that have settings or have processed events, by name. Reads every row that it counts.
    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>>;

    /// Sets the first event of an aggregate that a consumer processes; earlier events are duplicates for it. The position never
    /// moves back. Returns whether it changed.
    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool>;

    /// Lists up to `limit` aggregates of a consumer whose next event may be parked.
    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>>;

    /// Lists the aggregates of one consumer, or of all, with events that wait for a missing one. Ordered by deadline, after this position.
    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>>;

    /// Resolves gaps whose deadline has passed, of this consumer or of all, up to about `limit` events. Any number of
    /// processes may call it at the same time.
    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp>;

    /// Lists dead letters, newest first.
    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>>;

    /// Parks dead letters again, so that they wait for the missing event before them, all or none.
    /// [`Inbox`](crate::error::StoreError::Inbox) when a letter does not exist, or its consumer has already passed its
    /// event.
    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64>;

    /// Deletes dead letters. Returns the number deleted.
    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64>;
}

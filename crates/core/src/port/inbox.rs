//! The inboxes of consumers, as operators and runners of consumers need them.

use async_trait::async_trait;

use super::StoreResult;
use crate::event::Aggregate;
use crate::event::listing::AggregatePlace;
use crate::inbox::Consumer;
use crate::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};

/// Looks after inboxes. What takes an event in is not here: it joins the consumer's transaction.
#[async_trait]
pub trait InboxStore: Send + Sync {
    /// Says what a consumer wants. Gaps that wait already keep their time.
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()>;

    /// The consumers that said what they want or have taken events in, by name. Reads all that it counts.
    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>>;

    /// Says from which event on a consumer takes in those of an aggregate; what comes before is a duplicate to it. Never goes back;
    /// answers whether it changed anything.
    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool>;

    /// Aggregates of a consumer whose next event may be among those that are kept, at most so many.
    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>>;

    /// The aggregates of which events wait for one that is missing, of one consumer or all; those first that are given up first, after
    /// this place.
    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>>;

    /// Gives up gaps whose time is over, of this consumer or of all, at most about so many events. Any number of processes may
    /// do so at once.
    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp>;

    /// What was given up, newest first.
    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>>;

    /// Lets events that were given up wait again for the one that is missing before them, all or none.
    /// [`Inbox`](crate::error::StoreError::Inbox) when there is no such letter, or its consumer has gone on past it.
    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64>;

    /// Drops dead letters for good. Answers how many there were.
    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64>;
}

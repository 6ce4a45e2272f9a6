//! Inbox operations of the faulty store, which have no faults.

use async_trait::async_trait;
use milepost_core::event::Aggregate;
use milepost_core::event::listing::AggregatePlace;
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};
use milepost_core::port::{InboxStore, StoreResult};

use super::Faulty;

#[async_trait]
impl InboxStore for Faulty {
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()> {
        self.pass("put_consumer", self.inner.put_consumer(consumer)).await
    }

    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>> {
        self.pass("consumers", self.inner.consumers()).await
    }

    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool> {
        self.pass("expect_from", self.inner.expect_from(consumer, aggregate, sequence)).await
    }

    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>> {
        self.pass("inbox_ready", self.inner.inbox_ready(consumer, limit)).await
    }

    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>> {
        self.pass("gaps", self.inner.gaps(consumer, after, limit)).await
    }

    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp> {
        self.pass("give_up_gaps", self.inner.give_up_gaps(consumer, limit)).await
    }

    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>> {
        self.pass("dead_letters", self.inner.dead_letters(filter)).await
    }

    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        self.pass("retry_dead", self.inner.retry_dead(letters)).await
    }

    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        self.pass("drop_dead", self.inner.drop_dead(letters)).await
    }
}

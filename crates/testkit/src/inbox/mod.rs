//! Consumers' transactions on either store, with effects that can be counted.

mod postgres;
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::Received;
use milepost_core::port::{Store, StoreResult};

/// A consumer's database.
#[derive(Clone)]
pub struct Desk {
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its transactions.
    pub transactions: Arc<dyn Transactions>,
}

/// Makes transactions.
#[async_trait]
pub trait Transactions: Send + Sync {
    /// Begins one.
    async fn begin(&self) -> Box<dyn Taking>;

    /// The effects that are committed, in the order in which they were made: consumer, aggregate, sequence.
    async fn effects(&self) -> Vec<(String, String, i64)>;

    /// Makes what inboxes hold look older by an hour.
    async fn age(&self);
}

/// A transaction of a consumer.
#[async_trait]
pub trait Taking: Send {
    /// As the store's `once`.
    async fn once(&mut self, consumer: &str, event: EventId) -> StoreResult<bool>;
    /// As the store's `receive`.
    async fn receive(&mut self, consumer: &str, event: &Event) -> StoreResult<Received>;
    /// As the store's `next_parked`.
    async fn next_parked(&mut self, consumer: &str, aggregate: &Aggregate) -> StoreResult<Option<Event>>;
    /// As the store's `expect_from`.
    async fn expect_from(
        &mut self,
        consumer: &str,
        aggregate: &Aggregate,
        sequence: i64,
    ) -> StoreResult<bool>;
    /// Has an effect.
    async fn effect(&mut self, consumer: &str, event: &Event);
    /// Ends it.
    async fn commit(self: Box<Self>);
    /// Ends it without a trace.
    async fn roll_back(self: Box<Self>);
    /// Dies in the middle of it.
    async fn die(self: Box<Self>);
}

impl Desk {
    /// Begins a transaction.
    pub async fn begin(&self) -> Box<dyn Taking> {
        self.transactions.begin().await
    }

    /// Takes an event in, with all that follows it, in a transaction of its own.
    pub async fn take(&self, consumer: &str, event: &Event) -> Received {
        let mut tx = self.begin().await;
        let received = take_in(tx.as_mut(), consumer, event).await;
        tx.commit().await;
        received
    }

    /// Takes in what was kept of an aggregate; answers the sequences.
    pub async fn drain(&self, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
        let mut tx = self.begin().await;
        let drained = drain(tx.as_mut(), consumer, aggregate).await;
        tx.commit().await;
        drained
    }

    /// The sequences of the effects of an aggregate, in order.
    pub async fn effects_of(&self, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
        let effects = self.transactions.effects().await;
        effects
            .into_iter()
            .filter(|(of, id, _)| of == consumer && *id == aggregate.id)
            .map(|(_, _, sequence)| sequence)
            .collect()
    }
}

/// What every consumer does with an event: if it is its turn, its effect, and those of all that follow it.
pub async fn take_in(tx: &mut dyn Taking, consumer: &str, event: &Event) -> Received {
    let received = tx.receive(consumer, event).await.expect("received");
    if let Received::Apply { .. } = received {
        tx.effect(consumer, event).await;
    }
    if received.more() {
        drain(tx, consumer, &event.aggregate).await;
    }
    received
}

/// Takes in what was kept of an aggregate; answers the sequences.
pub async fn drain(tx: &mut dyn Taking, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
    let mut drained = Vec::new();
    while let Some(event) = tx.next_parked(consumer, aggregate).await.expect("asked") {
        tx.effect(consumer, &event).await;
        drained.push(event.sequence);
    }
    drained
}

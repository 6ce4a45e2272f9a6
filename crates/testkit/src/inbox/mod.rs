//! Transactions of consumers on either store, with effects that tests count.

mod postgres;
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use milepost_core::event::{Aggregate, Event};
use milepost_core::ident::EventId;
use milepost_core::inbox::Received;
use milepost_core::port::{Store, StoreResult};

/// The database of a consumer.
#[derive(Clone)]
pub struct Desk {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The source of transactions.
    pub transactions: Arc<dyn Transactions>,
}

/// Creates transactions.
#[async_trait]
pub trait Transactions: Send + Sync {
    /// Begins a transaction.
    async fn begin(&self) -> Box<dyn Taking>;

    /// Returns the committed effects in the order in which they were made: consumer, aggregate, sequence.
    async fn effects(&self) -> Vec<(String, String, i64)>;

    /// Makes the contents of inboxes one hour older.
    async fn age(&self);
}

/// A transaction of a consumer.
#[async_trait]
pub trait Taking: Send {
    /// Calls the store's `once`.
    async fn once(&mut self, consumer: &str, event: EventId) -> StoreResult<bool>;
    /// Calls the store's `receive`.
    async fn receive(&mut self, consumer: &str, event: &Event) -> StoreResult<Received>;
    /// Calls the store's `next_parked`.
    async fn next_parked(&mut self, consumer: &str, aggregate: &Aggregate) -> StoreResult<Option<Event>>;
    /// Calls the store's `expect_from`.
    async fn expect_from(
        &mut self,
        consumer: &str,
        aggregate: &Aggregate,
        sequence: i64,
    ) -> StoreResult<bool>;
    /// Records an effect.
    async fn effect(&mut self, consumer: &str, event: &Event);
    /// Commits the transaction.
    async fn commit(self: Box<Self>);
    /// Rolls the transaction back.
    async fn roll_back(self: Box<Self>);
    /// Abandons the transaction like a process that crashes.
    async fn die(self: Box<Self>);
}

impl Desk {
    /// Begins a transaction.
    pub async fn begin(&self) -> Box<dyn Taking> {
        self.transactions.begin().await
    }

    /// Processes an event, and all events that have become ready by it, in one transaction.
    pub async fn take(&self, consumer: &str, event: &Event) -> Received {
        let mut tx = self.begin().await;
        let received = take_in(tx.as_mut(), consumer, event).await;
        tx.commit().await;
        received
    }

    /// Processes the ready events of an aggregate. Returns their sequences.
    pub async fn drain(&self, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
        let mut tx = self.begin().await;
        let drained = drain(tx.as_mut(), consumer, aggregate).await;
        tx.commit().await;
        drained
    }

    /// Returns the sequences of the effects of an aggregate, in order.
    pub async fn effects_of(&self, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
        let effects = self.transactions.effects().await;
        effects
            .into_iter()
            .filter(|(of, id, _)| of == consumer && *id == aggregate.id)
            .map(|(_, _, sequence)| sequence)
            .collect()
    }
}

/// Processes an event as every consumer does: if it is the next one, records its effect and those of all events that have become ready by it.
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

/// Processes the ready events of an aggregate. Returns their sequences.
pub async fn drain(tx: &mut dyn Taking, consumer: &str, aggregate: &Aggregate) -> Vec<i64> {
    let mut drained = Vec::new();
    while let Some(event) = tx.next_parked(consumer, aggregate).await.expect("asked") {
        tx.effect(consumer, &event).await;
        drained.push(event.sequence);
    }
    drained
}

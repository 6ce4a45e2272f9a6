//! What people ask of subscriptions.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::event::Aggregate;
use crate::event::listing::{AggregatePlace, DeadPlace};
use crate::event::relay_listing::{DeadVerb, DeadView, ParkedVerb, ParkedView, Replay, SubscriptionView};
use crate::ident::EventId;

/// Looks at subscriptions and intervenes. What cannot be done is a [`Relay`](crate::error::StoreError::Relay) error and changes
/// nothing.
#[async_trait]
pub trait SubscriptionStore: Send + Sync {
    /// All subscriptions, by name.
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>>;

    /// Lets a paused subscription go on. Answers whether it was paused; it is an error when there is none.
    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool>;

    /// Forgets a subscription, with its position and what is parked and was given up. Answers whether there was one.
    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool>;

    /// Parked aggregates, of one subscription or all; those that have waited longest first, after this place.
    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>>;

    /// Does something with the first event of a parked aggregate.
    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        verb: &ParkedVerb,
    ) -> StoreResult<()>;

    /// Events that were given up, of one subscription or all; newest first, before this place.
    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>>;

    /// Does something with an event that was given up.
    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()>;

    /// Has events published again that were published; answers how many. They go out in each aggregate's order, and those that are
    /// emitted meanwhile after them.
    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64>;

    /// Takes a log that was restored or copied from another server as it is: positions are kept by this server's transactions from now
    /// on. Events around the old positions are published again. Answers how many subscriptions were changed.
    async fn reseed(&self) -> StoreResult<u64>;

    /// Forgets a portion of what is older than `keep` and what every subscription has gone past. What is parked or was given up stays.
    /// `None`: it has been through the whole log.
    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>>;
}

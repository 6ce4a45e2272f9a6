//! Store port for operations on subscriptions.

use std::time::Duration;

use async_trait::async_trait;

use super::StoreResult;
use crate::error::StoreError;
use crate::event::listing::{AggregatePlace, DeadPlace};
use crate::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, Replay, SubscriptionView,
};
use crate::event::{Aggregate, RelayError};
use crate::ident::EventId;

/// The maximum number of parked aggregates that one call changes.
pub const PARKED_CHANGED_MAX: usize = 10_000;
/// How many of them are read at once: each comes with the payload of its first event.
const PARKED_AT_ONCE: u32 = 20;

/// Inspection and control of subscriptions. An operation that is not possible is a [`Relay`](crate::error::StoreError::Relay)
/// error and changes nothing.
#[async_trait]
pub trait SubscriptionStore: Send + Sync {
    /// Lists all subscriptions, by name.
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>>;

    /// Resumes a paused subscription. Returns whether it was paused; a missing subscription is an error.
    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool>;

    /// Removes a subscription with its position, parked events and dead letters. Returns whether it existed.
    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool>;

    /// Lists parked aggregates of one subscription or all, those parked longest first, after this position.
    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>>;

    /// Retries, skips or edits the first event of a parked aggregate; with an `event`, only if that is the first one.
    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        event: Option<EventId>,
        verb: &ParkedVerb,
    ) -> StoreResult<()>;

    /// Retries or skips the first event of up to [`PARKED_CHANGED_MAX`] parked aggregates, one after the other. Returns the aggregates, and
    /// whether each was changed: not if its event was published or dead-lettered after it was listed.
    async fn change_all_parked(
        &self,
        subscription: &str,
        verb: &ParkedVerb,
    ) -> StoreResult<Vec<(Aggregate, bool)>> {
        let (mut changed, mut after) = (Vec::new(), None);
        while changed.len() < PARKED_CHANGED_MAX {
            let parked = self.parked(Some(subscription), after.as_ref(), PARKED_AT_ONCE).await?;
            let Some(last) = parked.last() else { break };
            after = Some(last.place());
            for ParkedView { first, .. } in parked {
                let done = self.change_parked(subscription, &first.aggregate, Some(first.id), verb).await;
                let is_changed = match done {
                    Err(StoreError::Relay(RelayError::NotParked { .. } | RelayError::NotFirst { .. })) => {
                        false
                    }
                    done => done.map(|()| true)?,
                };
                changed.push((first.aggregate, is_changed));
            }
        }
        if changed.is_empty() && !self.subscriptions().await?.iter().any(|view| view.name == subscription) {
            return Err(RelayError::NoSuchSubscription(subscription.to_owned()).into());
        }
        Ok(changed)
    }

    /// Lists dead letters of one subscription or all, newest first, before this position.
    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>>;

    /// Returns what became of these events for each subscription, ordered by subscription. Events that are not in the log are left out.
    async fn deliveries(&self, events: &[EventId]) -> StoreResult<Vec<Delivery>>;

    /// Retries or drops a dead letter.
    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()>;

    /// Publishes events again; returns their number. They are published in the order of each aggregate, and before events that are
    /// emitted in the meantime.
    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64>;

    /// Accepts a log that was restored or copied from another server: positions are based on this server's transactions from now on.
    /// Events around the old positions are published again. Returns the number of subscriptions changed.
    async fn reseed(&self) -> StoreResult<u64>;

    /// Deletes a portion of the events that are older than `keep` and that every subscription has passed. Parked events and dead
    /// letters are kept. `None`: the whole log has been processed.
    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>>;
}

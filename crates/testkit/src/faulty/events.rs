//! Event operations of the faulty store, which are passed through unchanged.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::event::listing::{AggregatePlace, DeadPlace, EventFilter, LoggedEvent};
use milepost_core::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, Replay, SubscriptionView,
};
use milepost_core::event::{
    Aggregate, Begin, Changes, DueEvents, Emitted, NewEvent, PageSize, Publisher, Retried,
};
use milepost_core::event_work::EventWork;
use milepost_core::ident::EventId;
use milepost_core::port::{EventLog, LogReader, RelayStore, StoreResult, SubscriptionStore, WakeStream};

use super::Faulty;
use super::interceptor::InterceptedReader;

#[async_trait]
impl EventLog for Faulty {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        self.pass("emit_many", self.inner.emit_many(events)).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        self.pass("events", self.inner.events(filter)).await
    }
}

#[async_trait]
impl RelayStore for Faulty {
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool> {
        self.pass("subscribe", self.inner.subscribe(subscription, begin)).await
    }

    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool> {
        self.pass("record_changes", self.inner.record_changes(subscription, changes)).await
    }

    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader> {
        match &self.interceptor {
            Some(interceptor) => {
                Box::new(InterceptedReader::new(self.inner.clone(), publisher, interceptor.clone()))
            }
            None => self.inner.reader(publisher),
        }
    }

    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool> {
        self.pass("renew", self.inner.renew(publisher)).await
    }

    async fn leave(&self, publisher: &Publisher) -> StoreResult<()> {
        self.pass("leave", self.inner.leave(publisher)).await
    }

    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()> {
        self.pass("report_sink", self.inner.report_sink(publisher, down)).await
    }

    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()> {
        self.pass("pause_subscription", self.inner.pause_subscription(subscription, why)).await
    }

    async fn due(
        &self,
        publisher: &Publisher,
        aggregates_max: u32,
        size: PageSize,
    ) -> StoreResult<DueEvents> {
        self.pass("due", self.inner.due(publisher, aggregates_max, size)).await
    }

    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>> {
        self.pass("settle_parked", self.inner.settle_parked(publisher, retried)).await
    }

    async fn start_work(&self, publisher: &Publisher, works: &[EventWork]) -> StoreResult<Option<u64>> {
        self.pass("start_work", self.inner.start_work(publisher, works)).await
    }

    fn log_wakes(&self) -> Box<dyn WakeStream> {
        self.inner.log_wakes()
    }
}

#[async_trait]
impl SubscriptionStore for Faulty {
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>> {
        self.pass("subscriptions", self.inner.subscriptions()).await
    }

    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool> {
        self.pass("resume_subscription", self.inner.resume_subscription(subscription)).await
    }

    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool> {
        self.pass("remove_subscription", self.inner.remove_subscription(subscription)).await
    }

    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>> {
        self.pass("parked", self.inner.parked(subscription, after, limit)).await
    }

    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        event: Option<EventId>,
        verb: &ParkedVerb,
    ) -> StoreResult<()> {
        self.pass("change_parked", self.inner.change_parked(subscription, aggregate, event, verb)).await
    }

    async fn deliveries(&self, events: &[EventId]) -> StoreResult<Vec<Delivery>> {
        self.pass("deliveries", self.inner.deliveries(events)).await
    }

    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>> {
        self.pass("dead_events", self.inner.dead_events(subscription, before, limit)).await
    }

    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()> {
        self.pass("change_dead", self.inner.change_dead(subscription, event, verb)).await
    }

    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64> {
        self.pass("replay", self.inner.replay(subscription, replay)).await
    }

    async fn reseed(&self) -> StoreResult<u64> {
        self.pass("reseed", self.inner.reseed()).await
    }

    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>> {
        self.pass("prune_log", self.inner.prune_log(keep)).await
    }
}

//! Events, subscriptions and inboxes, with hidden data in payloads. Publishers get the real values.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::error::StoreError;
use milepost_core::event::listing::{AggregatePlace, DeadPlace, EventFilter, LoggedEvent};
use milepost_core::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, Replay, SubscriptionView,
};
use milepost_core::event::{
    Aggregate, Begin, Changes, DueEvents, Emitted, NewEvent, PageSize, Publisher, Retried,
};
use milepost_core::event_work::EventWork;
use milepost_core::hide::HideRefusal;
use milepost_core::ident::EventId;
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};
use milepost_core::port::{
    EventLog, InboxStore, LogReader, RelayStore, StoreResult, SubscriptionStore, WakeStream,
};

use super::HidingStore;

#[async_trait]
impl EventLog for HidingStore {
    async fn emit_many(&self, events: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        self.inner.emit_many(events).await
    }

    async fn events(&self, filter: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        let mut events = self.inner.events(filter).await?;
        events.iter_mut().for_each(|logged| self.mask_event(&mut logged.event));
        Ok(events)
    }
}

#[async_trait]
impl RelayStore for HidingStore {
    async fn subscribe(&self, subscription: &str, begin: Begin) -> StoreResult<bool> {
        self.inner.subscribe(subscription, begin).await
    }

    async fn record_changes(&self, subscription: &str, changes: &Changes) -> StoreResult<bool> {
        self.inner.record_changes(subscription, changes).await
    }

    fn reader(&self, publisher: Publisher) -> Box<dyn LogReader> {
        self.inner.reader(publisher)
    }

    async fn renew(&self, publisher: &Publisher) -> StoreResult<bool> {
        self.inner.renew(publisher).await
    }

    async fn leave(&self, publisher: &Publisher) -> StoreResult<()> {
        self.inner.leave(publisher).await
    }

    async fn report_sink(&self, publisher: &Publisher, down: Option<&str>) -> StoreResult<()> {
        self.inner.report_sink(publisher, down).await
    }

    async fn pause_subscription(&self, subscription: &str, why: &str) -> StoreResult<()> {
        self.inner.pause_subscription(subscription, why).await
    }

    async fn due(
        &self,
        publisher: &Publisher,
        aggregates_max: u32,
        size: PageSize,
    ) -> StoreResult<DueEvents> {
        self.inner.due(publisher, aggregates_max, size).await
    }

    async fn settle_parked(&self, publisher: &Publisher, retried: &[Retried]) -> StoreResult<Vec<Aggregate>> {
        self.inner.settle_parked(publisher, retried).await
    }

    async fn start_work(&self, publisher: &Publisher, works: &[EventWork]) -> StoreResult<Option<u64>> {
        self.inner.start_work(publisher, works).await
    }

    fn log_wakes(&self) -> Box<dyn WakeStream> {
        self.inner.log_wakes()
    }
}

#[async_trait]
impl SubscriptionStore for HidingStore {
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>> {
        let mut views = self.inner.subscriptions().await?;
        for why in views.iter_mut().filter_map(|view| view.parked_why.as_mut()) {
            self.hidden.mask_text_of_any(why);
        }
        Ok(views)
    }

    async fn resume_subscription(&self, subscription: &str) -> StoreResult<bool> {
        self.inner.resume_subscription(subscription).await
    }

    async fn remove_subscription(&self, subscription: &str) -> StoreResult<bool> {
        self.inner.remove_subscription(subscription).await
    }

    async fn parked(
        &self,
        subscription: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<ParkedView>> {
        let mut parked = self.inner.parked(subscription, after, limit).await?;
        for view in &mut parked {
            self.hidden.mask_text(&view.first.aggregate.kind, &mut view.why);
            self.mask_event(&mut view.first);
        }
        Ok(parked)
    }

    async fn change_parked(
        &self,
        subscription: &str,
        aggregate: &Aggregate,
        event: Option<EventId>,
        verb: &ParkedVerb,
    ) -> StoreResult<()> {
        if let ParkedVerb::Edit(payload) = verb
            && self.hidden.has_placeholder(&aggregate.kind, payload)
        {
            let what = "the payload of the event".to_owned();
            return Err(StoreError::Hide(HideRefusal::Placeholder { what }));
        }
        self.inner.change_parked(subscription, aggregate, event, verb).await
    }

    async fn dead_events(
        &self,
        subscription: Option<&str>,
        before: Option<&DeadPlace>,
        limit: u32,
    ) -> StoreResult<Vec<DeadView>> {
        let mut dead = self.inner.dead_events(subscription, before, limit).await?;
        for view in &mut dead {
            self.hidden.mask_text(&view.event.aggregate.kind, &mut view.why);
            self.mask_event(&mut view.event);
        }
        Ok(dead)
    }

    async fn deliveries(&self, events: &[EventId]) -> StoreResult<Vec<Delivery>> {
        self.inner.deliveries(events).await
    }

    async fn change_dead(&self, subscription: &str, event: EventId, verb: DeadVerb) -> StoreResult<()> {
        self.inner.change_dead(subscription, event, verb).await
    }

    async fn replay(&self, subscription: &str, replay: &Replay) -> StoreResult<u64> {
        self.inner.replay(subscription, replay).await
    }

    async fn reseed(&self) -> StoreResult<u64> {
        self.inner.reseed().await
    }

    async fn prune_log(&self, keep: Duration) -> StoreResult<Option<u64>> {
        self.inner.prune_log(keep).await
    }
}

#[async_trait]
impl InboxStore for HidingStore {
    async fn put_consumer(&self, consumer: &Consumer) -> StoreResult<()> {
        self.inner.put_consumer(consumer).await
    }

    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>> {
        self.inner.consumers().await
    }

    async fn expect_from(&self, consumer: &str, aggregate: &Aggregate, sequence: i64) -> StoreResult<bool> {
        self.inner.expect_from(consumer, aggregate, sequence).await
    }

    async fn inbox_ready(&self, consumer: &str, limit: u32) -> StoreResult<Vec<Aggregate>> {
        self.inner.inbox_ready(consumer, limit).await
    }

    async fn gaps(
        &self,
        consumer: Option<&str>,
        after: Option<&AggregatePlace>,
        limit: u32,
    ) -> StoreResult<Vec<Gap>> {
        self.inner.gaps(consumer, after, limit).await
    }

    async fn give_up_gaps(&self, consumer: Option<&str>, limit: u32) -> StoreResult<GivenUp> {
        self.inner.give_up_gaps(consumer, limit).await
    }

    async fn dead_letters(&self, filter: &DeadFilter) -> StoreResult<Vec<DeadLetter>> {
        let mut letters = self.inner.dead_letters(filter).await?;
        for letter in &mut letters {
            self.hidden.mask_text(&letter.aggregate.kind, &mut letter.why);
            letter.event.iter_mut().for_each(|event| self.mask_event(event));
        }
        Ok(letters)
    }

    async fn retry_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        self.inner.retry_dead(letters).await
    }

    async fn drop_dead(&self, letters: &[LetterId]) -> StoreResult<u64> {
        self.inner.drop_dead(letters).await
    }
}

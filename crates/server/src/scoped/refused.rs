//! What cannot be divided by queues and kinds: alerts, events, subscriptions, inboxes, tokens, retention and the doctor.
//!
//! Requests about these are refused before they reach a handler. Pages that show them beside other things show none.

use std::time::Duration;

use async_trait::async_trait;
use milepost_core::alert::{
    ActiveAlert, AlertKey, AlertTarget, Incident, IncidentFilter, IncidentTimes, NoticeClaim, NoticeOutcome,
    NoticeRules, NoticeTimes, SilenceUntil,
};
use milepost_core::doctor::{Check, Finding, Look};
use milepost_core::error::StoreError;
use milepost_core::event::Holding;
use milepost_core::event::listing::{AggregatePlace, DeadPlace, EventFilter, LoggedEvent};
use milepost_core::event::relay_listing::{
    DeadVerb, DeadView, Delivery, ParkedVerb, ParkedView, Replay, SubscriptionView,
};
use milepost_core::event::{
    Aggregate, Begin, Changes, DueEvents, Emitted, NewEvent, Outcome, Page, PageSize, Publisher, Retried,
};
use milepost_core::event_work::EventWork;
use milepost_core::ident::{EventId, JobId};
use milepost_core::inbox::Consumer;
use milepost_core::inbox::listing::{ConsumerView, DeadFilter, DeadLetter, Gap, GivenUp, LetterId};
use milepost_core::port::{
    AbandonedRun, AlertStore, DoctorStore, EventLog, InboxStore, LogReader, MaintenanceStore, RelayStore,
    RetentionStore, RetryDelay, StoreResult, SubscriptionStore, TokenStore, Wake, WakeStream,
};
use milepost_core::retention::{Pace, Prunable, Pruned, Retained, RetentionPeriod, RetentionPolicy};
use milepost_core::token::{FoundToken, NewToken, TokenView};
use milepost_core::worker::Rescued;

use super::ScopedStore;

impl ScopedStore {
    fn refused<T>(&self, what: &str) -> StoreResult<T> {
        Err(self.whole_store(what))
    }
}

#[async_trait]
impl EventLog for ScopedStore {
    async fn emit_many(&self, _: &[NewEvent]) -> StoreResult<Vec<Emitted>> {
        self.refused("the event log")
    }

    async fn events(&self, _: &EventFilter) -> StoreResult<Vec<LoggedEvent>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl RelayStore for ScopedStore {
    async fn subscribe(&self, _: &str, _: Begin) -> StoreResult<bool> {
        self.refused("a subscription")
    }

    async fn record_changes(&self, _: &str, _: &Changes) -> StoreResult<bool> {
        self.refused("a subscription")
    }

    fn reader(&self, _: Publisher) -> Box<dyn LogReader> {
        Box::new(NoLog(self.whole_store("the event log")))
    }

    async fn renew(&self, _: &Publisher) -> StoreResult<bool> {
        self.refused("a publisher")
    }

    async fn leave(&self, _: &Publisher) -> StoreResult<()> {
        self.refused("a publisher")
    }

    async fn report_sink(&self, _: &Publisher, _: Option<&str>) -> StoreResult<()> {
        self.refused("a publisher")
    }

    async fn pause_subscription(&self, _: &str, _: &str) -> StoreResult<()> {
        self.refused("a subscription")
    }

    async fn due(&self, _: &Publisher, _: u32, _: PageSize) -> StoreResult<DueEvents> {
        self.refused("the event log")
    }

    async fn settle_parked(&self, _: &Publisher, _: &[Retried]) -> StoreResult<Vec<Aggregate>> {
        self.refused("the event log")
    }

    async fn start_work(&self, _: &Publisher, _: &[EventWork]) -> StoreResult<Option<u64>> {
        self.refused("a publisher")
    }

    fn log_wakes(&self) -> Box<dyn WakeStream> {
        Box::new(NoWakes)
    }
}

/// A reader of no events.
struct NoLog(StoreError);

impl NoLog {
    fn refused<T>(&self) -> StoreResult<T> {
        match &self.0 {
            StoreError::OutsideScope(refusal) => Err(StoreError::OutsideScope(refusal.clone())),
            error => Err(StoreError::Database { verb: "reader", cause: error.to_string().into() }),
        }
    }
}

#[async_trait]
impl LogReader for NoLog {
    fn stand_aside(&mut self, _: bool) {}

    async fn balance(&mut self) -> StoreResult<Holding> {
        self.refused()
    }

    async fn page(&mut self, _: PageSize) -> StoreResult<Page> {
        self.refused()
    }

    fn pass(&mut self) -> bool {
        false
    }

    async fn commit(&mut self, _: &Outcome) -> StoreResult<()> {
        self.refused()
    }
}

/// A stream without hints.
struct NoWakes;

#[async_trait]
impl WakeStream for NoWakes {
    async fn next(&mut self) -> Wake {
        std::future::pending().await
    }
}

#[async_trait]
impl SubscriptionStore for ScopedStore {
    async fn subscriptions(&self) -> StoreResult<Vec<SubscriptionView>> {
        Ok(Vec::new())
    }

    async fn resume_subscription(&self, _: &str) -> StoreResult<bool> {
        self.refused("a subscription")
    }

    async fn remove_subscription(&self, _: &str) -> StoreResult<bool> {
        self.refused("a subscription")
    }

    async fn parked(
        &self,
        _: Option<&str>,
        _: Option<&AggregatePlace>,
        _: u32,
    ) -> StoreResult<Vec<ParkedView>> {
        Ok(Vec::new())
    }

    async fn change_parked(
        &self,
        _: &str,
        _: &Aggregate,
        _: Option<EventId>,
        _: &ParkedVerb,
    ) -> StoreResult<()> {
        self.refused("a subscription")
    }

    async fn deliveries(&self, _: &[EventId]) -> StoreResult<Vec<Delivery>> {
        Ok(Vec::new())
    }

    async fn dead_events(
        &self,
        _: Option<&str>,
        _: Option<&DeadPlace>,
        _: u32,
    ) -> StoreResult<Vec<DeadView>> {
        Ok(Vec::new())
    }

    async fn change_dead(&self, _: &str, _: EventId, _: DeadVerb) -> StoreResult<()> {
        self.refused("a subscription")
    }

    async fn replay(&self, _: &str, _: &Replay) -> StoreResult<u64> {
        self.refused("a subscription")
    }

    async fn reseed(&self) -> StoreResult<u64> {
        self.refused("the event log")
    }

    async fn prune_log(&self, _: Duration) -> StoreResult<Option<u64>> {
        self.refused("retention")
    }
}

#[async_trait]
impl InboxStore for ScopedStore {
    async fn put_consumer(&self, _: &Consumer) -> StoreResult<()> {
        self.refused("an inbox")
    }

    async fn consumers(&self) -> StoreResult<Vec<ConsumerView>> {
        Ok(Vec::new())
    }

    async fn expect_from(&self, _: &str, _: &Aggregate, _: i64) -> StoreResult<bool> {
        self.refused("an inbox")
    }

    async fn inbox_ready(&self, _: &str, _: u32) -> StoreResult<Vec<Aggregate>> {
        self.refused("an inbox")
    }

    async fn gaps(&self, _: Option<&str>, _: Option<&AggregatePlace>, _: u32) -> StoreResult<Vec<Gap>> {
        Ok(Vec::new())
    }

    async fn give_up_gaps(&self, _: Option<&str>, _: u32) -> StoreResult<GivenUp> {
        self.refused("an inbox")
    }

    async fn dead_letters(&self, _: &DeadFilter) -> StoreResult<Vec<DeadLetter>> {
        Ok(Vec::new())
    }

    async fn retry_dead(&self, _: &[LetterId]) -> StoreResult<u64> {
        self.refused("an inbox")
    }

    async fn drop_dead(&self, _: &[LetterId]) -> StoreResult<u64> {
        self.refused("an inbox")
    }
}

#[async_trait]
impl RetentionStore for ScopedStore {
    async fn put_retention(&self, _: RetentionPeriod) -> StoreResult<()> {
        self.refused("retention")
    }

    async fn remove_retention(&self, _: Retained) -> StoreResult<bool> {
        self.refused("retention")
    }

    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl MaintenanceStore for ScopedStore {
    async fn rescue_expired(&self, _: u32, _: RetryDelay<'_>) -> StoreResult<Vec<Rescued>> {
        self.refused("maintenance")
    }

    async fn stop_overdue(&self, _: u32) -> StoreResult<Vec<JobId>> {
        self.refused("maintenance")
    }

    async fn fill_groups(&self) -> StoreResult<u64> {
        self.refused("maintenance")
    }

    async fn notice_promotion(&self) -> StoreResult<Option<u32>> {
        self.refused("maintenance")
    }

    async fn may_delete(&self) -> StoreResult<bool> {
        self.refused("retention")
    }

    async fn prune(&self, _: &RetentionPolicy, _: Pace) -> StoreResult<Pruned> {
        self.refused("retention")
    }

    async fn prunable(&self, _: &RetentionPolicy) -> StoreResult<Prunable> {
        self.refused("retention")
    }
}

#[async_trait]
impl DoctorStore for ScopedStore {
    fn checks(&self) -> Vec<Check> {
        Vec::new()
    }

    async fn examine(&self, _: Check, _: &Look) -> StoreResult<Option<Finding>> {
        Ok(None)
    }

    async fn repair_rows(&self, _: Check, _: u32) -> StoreResult<u64> {
        self.refused("a repair")
    }

    async fn abandoned_runs(&self, _: &Look, _: u32) -> StoreResult<Vec<AbandonedRun>> {
        self.refused("a repair")
    }

    async fn note_repair(&self, _: Check, _: u64) -> StoreResult<()> {
        self.refused("a repair")
    }
}

#[async_trait]
impl AlertStore for ScopedStore {
    async fn observe_alerts(&self, _: &[ActiveAlert], _: &IncidentTimes) -> StoreResult<()> {
        self.refused("the record of alerts")
    }

    async fn claim_notices(&self, _: &NoticeRules, _: &NoticeTimes) -> StoreResult<Option<NoticeClaim>> {
        self.refused("the record of alerts")
    }

    async fn end_notices(&self, _: &NoticeClaim, _: &NoticeOutcome) -> StoreResult<bool> {
        self.refused("the record of alerts")
    }

    async fn incidents(&self, _: &IncidentFilter) -> StoreResult<Vec<Incident>> {
        Ok(Vec::new())
    }

    async fn alert_targets(&self) -> StoreResult<Vec<AlertTarget>> {
        Ok(Vec::new())
    }

    async fn silence_alert(&self, _: &AlertKey, _: SilenceUntil) -> StoreResult<bool> {
        self.refused("a silence")
    }

    async fn unsilence_alert(&self, _: &AlertKey) -> StoreResult<bool> {
        self.refused("a silence")
    }
}

/// Access control itself: whether the own token and session are still valid.
#[async_trait]
impl TokenStore for ScopedStore {
    async fn create_token(&self, _: &NewToken) -> StoreResult<TokenView> {
        self.refused("a token")
    }

    async fn token(&self, prefix: &str) -> StoreResult<Option<FoundToken>> {
        if prefix == self.token.prefix { self.inner.token(prefix).await } else { Ok(None) }
    }

    async fn tokens(&self) -> StoreResult<Vec<FoundToken>> {
        self.refused("the list of tokens")
    }

    async fn has_tokens(&self) -> StoreResult<bool> {
        self.inner.has_tokens().await
    }

    async fn revoke_token(&self, _: &str, _: &str) -> StoreResult<bool> {
        self.refused("a token")
    }

    async fn touch_token(&self, _: &str) -> StoreResult<()> {
        self.refused("a token")
    }
}

//! Operations on limits, retention periods and schedules of the faulty store, which are passed through unchanged.

use super::Faulty;
use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::limit::{Limit, LimitView, Target};
use milepost_core::port::{LimitStore, RetentionStore, ScheduleStore, StoreResult};
use milepost_core::precedence::{Over, Put};
use milepost_core::retention::{Retained, RetentionPeriod};
use milepost_core::schedule::{Clock, Made, Order, Schedule, ScheduleView, Source, Tick, Ticked};

#[async_trait]
impl LimitStore for Faulty {
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put> {
        self.pass("put_limit", self.inner.put_limit(limit, source)).await
    }

    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool> {
        self.pass("remove_limit", self.inner.remove_limit(target, source)).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        self.pass("limits", self.inner.limits()).await
    }
}

#[async_trait]
impl RetentionStore for Faulty {
    async fn put_retention(&self, period: RetentionPeriod) -> StoreResult<()> {
        self.pass("put_retention", self.inner.put_retention(period)).await
    }

    async fn remove_retention(&self, of: Retained) -> StoreResult<bool> {
        self.pass("remove_retention", self.inner.remove_retention(of)).await
    }

    async fn stored_retention(&self) -> StoreResult<Vec<RetentionPeriod>> {
        self.pass("stored_retention", self.inner.stored_retention()).await
    }
}

#[async_trait]
impl ScheduleStore for Faulty {
    async fn clock(&self) -> StoreResult<Clock> {
        self.pass("clock", self.inner.clock()).await
    }

    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>> {
        self.pass("schedules_without_payloads", self.inner.schedules_without_payloads()).await
    }
    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        self.pass("schedules_after", self.inner.schedules_after(name, limit)).await
    }

    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>> {
        self.pass("schedule", self.inner.schedule(name)).await
    }

    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        self.pass("due_schedules", self.inner.due_schedules(limit)).await
    }

    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
        over: Over,
    ) -> StoreResult<Put> {
        self.pass("write_schedule", self.inner.write_schedule(schedule, source, next_at, over)).await
    }

    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool> {
        self.pass("remove_schedule", self.inner.remove_schedule(name, source)).await
    }

    async fn pause_schedule(&self, name: &str) -> StoreResult<bool> {
        self.pass("pause_schedule", self.inner.pause_schedule(name)).await
    }

    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool> {
        self.pass("unpause_schedule", self.inner.unpause_schedule(name, version, next_at)).await
    }

    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made> {
        self.pass("make", self.inner.make(schedule, order)).await
    }

    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>> {
        self.pass("tick_schedule", self.inner.tick_schedule(tick)).await
    }
}

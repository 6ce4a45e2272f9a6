//! Schedules and limits of a limited token.

use async_trait::async_trait;
use jiff::Timestamp;
use milepost_core::error::StoreError;
use milepost_core::limit::{Limit, LimitView, Target};
use milepost_core::port::{LimitStore, ScheduleStore, StoreResult};
use milepost_core::precedence::{Over, Put};
use milepost_core::schedule::{Clock, Made, Order, Schedule, ScheduleView, Source, Tick, Ticked};
use uuid::Uuid;

use super::ScopedStore;

/// The maximum number of queries for one page of a list.
const PAGES_MAX: u32 = 100;

impl ScopedStore {
    async fn own_schedules(&self, views: Vec<ScheduleView>) -> StoreResult<Vec<ScheduleView>> {
        let mut own = Vec::new();
        for view in views {
            if self.owns_schedule(&view.schedule).await? {
                own.push(view);
            }
        }
        Ok(own)
    }

    /// Returns whether there is a schedule of others with this name.
    async fn is_taken(&self, name: &str) -> StoreResult<bool> {
        match self.inner.schedule(name).await? {
            Some(view) => Ok(!self.owns_schedule(&view.schedule).await?),
            None => Ok(false),
        }
    }

    /// Refuses a schedule of others as if it did not exist.
    async fn check_schedule(&self, name: &str) -> StoreResult<()> {
        if self.is_taken(name).await? { Err(StoreError::NoSuchSchedule(name.to_owned())) } else { Ok(()) }
    }

    fn check_target(&self, target: &Target) -> StoreResult<()> {
        if self.owns_target(target) {
            Ok(())
        } else {
            Err(self.token.refusal(format!("this is for {target}")))
        }
    }
}

#[async_trait]
impl ScheduleStore for ScopedStore {
    async fn clock(&self) -> StoreResult<Clock> {
        self.inner.clock().await
    }

    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>> {
        let (mut after, mut own) = (name.map(str::to_owned), Vec::new());
        for _ in 0..PAGES_MAX {
            let found = self.inner.schedules_after(after.as_deref(), limit).await?;
            let is_last = found.len() < limit as usize;
            after = found.last().map(|view| view.schedule.name.clone());
            own.extend(self.own_schedules(found).await?);
            if is_last || own.len() >= limit as usize {
                break;
            }
        }
        own.truncate(limit as usize);
        Ok(own)
    }

    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>> {
        self.own_schedules(self.inner.schedules_without_payloads().await?).await
    }

    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>> {
        let found = self.inner.schedule(name).await?.into_iter().collect();
        Ok(self.own_schedules(found).await?.pop())
    }

    async fn run_schedule_now(&self, name: &str, asked: Option<Uuid>) -> StoreResult<Made> {
        self.check_schedule(name).await?;
        self.inner.run_schedule_now(name, asked).await
    }

    async fn due_schedules(&self, _: u32) -> StoreResult<Vec<ScheduleView>> {
        Err(self.whole_store("the list of due schedules"))
    }

    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
        over: Over,
    ) -> StoreResult<Put> {
        if !self.owns_schedule(schedule).await? {
            let what = "its jobs or batches are of other queues or kinds";
            return Err(self.token.refusal(format!("schedule {:?}: {what}", schedule.name)));
        }
        if self.is_taken(&schedule.name).await? {
            return Err(self.token.refusal(format!("the name {:?} is not free for it", schedule.name)));
        }
        self.inner.write_schedule(schedule, source, next_at, over).await
    }

    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool> {
        self.check_schedule(name).await?;
        self.inner.remove_schedule(name, source).await
    }

    async fn pause_schedule(&self, name: &str) -> StoreResult<bool> {
        self.check_schedule(name).await?;
        self.inner.pause_schedule(name).await
    }

    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool> {
        self.check_schedule(name).await?;
        self.inner.unpause_schedule(name, version, next_at).await
    }

    async fn tick_schedule(&self, _: &Tick) -> StoreResult<Option<Ticked>> {
        Err(self.whole_store("the ticking of schedules"))
    }

    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made> {
        self.check_schedule(schedule).await?;
        match order {
            Order::Job(job) => self.token.check_jobs([(job.queue.as_str(), job.kind.as_str())])?,
            Order::Batch(batch) if self.owns_dag(&batch.dag).await? => {}
            Order::Batch(_) => return Err(StoreError::NoSuchSchedule(schedule.to_owned())),
        }
        self.inner.make(schedule, order).await
    }
}

#[async_trait]
impl LimitStore for ScopedStore {
    async fn put_limit(&self, limit: &Limit, source: Source) -> StoreResult<Put> {
        self.check_target(&limit.target)?;
        self.inner.put_limit(limit, source).await
    }

    async fn remove_limit(&self, target: &Target, source: Source) -> StoreResult<bool> {
        self.check_target(target)?;
        self.inner.remove_limit(target, source).await
    }

    async fn limits(&self) -> StoreResult<Vec<LimitView>> {
        let mut limits = self.inner.limits().await?;
        limits.retain(|limit| self.owns_limit(limit));
        Ok(limits)
    }
}

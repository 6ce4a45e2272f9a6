//! What keeps schedules, and what lets their ticks happen once.

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::{BatchStore, IntakeStore, StoreResult};
use crate::error::StoreError;
use crate::ownership::{Put, Synced};
use crate::schedule::{Clock, Made, Order, Schedule, ScheduleView, Source, Tick, Ticked};

/// Keeps schedules and lets them tick. Any number of processes may do so at once: a tick is one atomic step that
/// happens only while the schedule has the version it was decided on.
#[async_trait]
pub trait ScheduleStore: IntakeStore + BatchStore {
    /// The store's time and the next tick.
    async fn clock(&self) -> StoreResult<Clock>;

    /// Every schedule, by name.
    async fn schedules(&self) -> StoreResult<Vec<ScheduleView>>;

    /// One schedule.
    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>>;

    /// Up to `limit` schedules with a tick that is due, longest due first. One that cannot be read is left out
    /// and told in the log, so that it does not hold up the others.
    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>>;

    /// Stores a checked schedule. One of the same name is replaced, but an operator's only by an operator; it keeps
    /// its next tick when it ticks as before, and gets this one when it does not. It stays paused if it was.
    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
    ) -> StoreResult<Put>;

    /// Removes a schedule, an operator's only for an operator; what it made stays. Answers whether one was removed.
    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool>;

    /// Stops a schedule's ticks. Answers whether that changed anything.
    async fn pause_schedule(&self, name: &str) -> StoreResult<bool>;

    /// Lets a paused schedule go on with this tick, unless it has another version by now. Answers whether it does.
    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool>;

    /// Makes what a tick is to make and moves the schedule on, both or neither, in a call that leaves no transaction
    /// open. `None`, and nothing was changed, when the schedule has another version by now, is paused or gone. A
    /// batch that cannot be started is refused, and the schedule moves on without it.
    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>>;

    /// Stores a schedule. Its first tick is the next one from now; when it replaces one that ticks the same way,
    /// ticks that are due stay due.
    async fn put_schedule(&self, schedule: &Schedule, source: Source) -> StoreResult<Put> {
        check(schedule)?;
        let now = self.clock().await?.now;
        self.write_schedule(schedule, source, schedule.spec.next_after(now)).await
    }

    /// Lets a paused schedule go on with its next tick from now; those that came meanwhile are dropped. Answers
    /// whether that changed anything.
    async fn resume_schedule(&self, name: &str) -> StoreResult<bool> {
        loop {
            let view =
                self.schedule(name).await?.ok_or_else(|| StoreError::NoSuchSchedule(name.to_owned()))?;
            if view.paused_at.is_none() {
                return Ok(false);
            }
            let next_at = view.schedule.spec.next_after(self.clock().await?.now);
            if self.unpause_schedule(name, view.version, next_at).await? {
                return Ok(true);
            }
        }
    }

    /// Enqueues a job, or starts a batch, of a schedule at once, whatever its ticks and even while it is paused. Whoever may have to
    /// repeat that gives what it is known by: it is made once.
    async fn run_schedule_now(&self, name: &str, asked: Option<Uuid>) -> StoreResult<Made> {
        let view = self.schedule(name).await?.ok_or_else(|| StoreError::NoSuchSchedule(name.to_owned()))?;
        let order = view.schedule.run_now(self.clock().await?.now, asked)?;
        self.make(name, &order).await
    }

    /// Makes what the schedule of this name orders, beside its ticks. What has its key already is answered instead.
    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made>;

    /// Makes the schedules of a configuration stand as it says and removes those that it no longer names.
    /// Operators' schedules are left alone, and what they paused stays paused.
    async fn sync_schedules(&self, configured: &[Schedule]) -> StoreResult<Synced> {
        configured.iter().try_for_each(check)?;
        let mut synced = Synced::default();
        for schedule in configured {
            if self.put_schedule(schedule, Source::Config).await? == Put::Foreign {
                synced.foreign.push(schedule.name.clone());
            }
        }
        for view in self.schedules().await? {
            let name = view.schedule.name;
            let named = configured.iter().any(|schedule| schedule.name == name);
            if view.source == Source::Config && !named && self.remove_schedule(&name, Source::Config).await? {
                synced.removed.push(name);
            }
        }
        Ok(synced)
    }
}

fn check(schedule: &Schedule) -> StoreResult<()> {
    schedule.check().map_err(|invalid| {
        let name = schedule.name.chars().take(60).collect();
        StoreError::InvalidSchedule { name, invalid }
    })
}

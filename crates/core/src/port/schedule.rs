//! Store port for schedules and their ticks.

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::{AdminStore, BatchStore, IntakeStore, StoreResult};
use crate::batch::error::InvalidBatch;
use crate::batch::listing::BatchFilter;
use crate::batch::nominal::NominalTime;
use crate::batch::start::Started;
use crate::bulk::definition::Definition;
use crate::error::StoreError;
use crate::job::Enqueued;
use crate::job::error::InvalidJob;
use crate::precedence::{Over, Put, Scope, Synced};
use crate::schedule::{
    Clock, Fingerprint, InputOfTicks, InvalidSchedule, Made, Makes, Order, Schedule, ScheduleView, Source,
    Tick, Ticked,
};
use crate::search::JobFilter;

/// Storage and ticks of schedules. Any number of processes may tick at the same time: a tick is one atomic step that
/// succeeds only if the schedule still has the version that the decision was based on.
#[async_trait]
pub trait ScheduleStore: IntakeStore + AdminStore + BatchStore {
    /// Returns the store's time and the time of the next tick.
    async fn clock(&self) -> StoreResult<Clock>;

    /// Lists all schedules, by name.
    async fn schedules(&self) -> StoreResult<Vec<ScheduleView>> {
        self.schedules_after(None, u32::MAX).await
    }

    /// Lists up to `limit` schedules by name, those that follow this name.
    async fn schedules_after(&self, name: Option<&str>, limit: u32) -> StoreResult<Vec<ScheduleView>>;

    /// Lists all schedules by name without reading their payloads and inputs, which are `null` then: they can have many megabytes.
    async fn schedules_without_payloads(&self) -> StoreResult<Vec<ScheduleView>>;

    /// Returns one schedule.
    async fn schedule(&self, name: &str) -> StoreResult<Option<ScheduleView>>;

    /// Lists up to `limit` schedules with a due tick, longest overdue first. An unreadable schedule is skipped and
    /// logged, so that it does not block the others.
    async fn due_schedules(&self, limit: u32) -> StoreResult<Vec<ScheduleView>>;

    /// Stores a checked schedule. It replaces one with the same name; only an operator can replace an operator's
    /// schedule. If the tick times are unchanged, the schedule keeps its next tick; otherwise it gets this one. A
    /// paused schedule stays paused.
    async fn write_schedule(
        &self,
        schedule: &Schedule,
        source: Source,
        next_at: Option<Timestamp>,
        over: Over,
    ) -> StoreResult<Put>;

    /// Removes a schedule; only an operator can remove an operator's schedule. Its jobs and batches are kept. Returns
    /// whether one was removed.
    async fn remove_schedule(&self, name: &str, source: Source) -> StoreResult<bool>;

    /// Pauses a schedule. Returns whether that changed anything.
    async fn pause_schedule(&self, name: &str) -> StoreResult<bool>;

    /// Resumes a paused schedule with this next tick, unless it has another version by now. Returns whether it was resumed.
    async fn unpause_schedule(
        &self,
        name: &str,
        version: i64,
        next_at: Option<Timestamp>,
    ) -> StoreResult<bool>;

    /// Creates the jobs or the batch of a tick and advances the schedule, both or neither, in a call that leaves no
    /// transaction open. Returns `None` without changes when the schedule has another version by now, is paused or was
    /// removed. A batch that cannot be started is reported as refused, and the schedule advances without it.
    async fn tick_schedule(&self, tick: &Tick) -> StoreResult<Option<Ticked>>;

    /// Stores a schedule. Its first tick is the next one from now; when it replaces a schedule with the same tick
    /// times, due ticks stay due.
    async fn put_schedule(&self, schedule: &Schedule, source: Source) -> StoreResult<Put> {
        check(schedule)?;
        let now = self.clock().await?.now;
        self.write_schedule(schedule, source, schedule.spec.next_after(now), Over::Any).await
    }

    /// Stores an operator's schedule, if none with its name exists. Returns whether it was stored.
    async fn create_schedule(&self, schedule: &Schedule) -> StoreResult<bool> {
        check(schedule)?;
        let next_at = schedule.spec.next_after(self.clock().await?.now);
        let put = self.write_schedule(schedule, Source::Operator, next_at, Over::Nothing).await?;
        Ok(put == Put::Stands)
    }

    /// Stores an operator's schedule in place of the one with these settings. Returns whether it was stored; otherwise the schedule has been
    /// removed, or has other settings by now.
    async fn edit_schedule(&self, schedule: &Schedule, before: Fingerprint) -> StoreResult<bool> {
        check(schedule)?;
        let next_at = schedule.spec.next_after(self.clock().await?.now);
        loop {
            let Some(view) = self.schedule(&schedule.name).await? else { return Ok(false) };
            if view.schedule.fingerprint() != before {
                return Ok(false);
            }
            // A tick changes the version, too.
            let over = Over::Version(view.version);
            if self.write_schedule(schedule, Source::Operator, next_at, over).await? == Put::Stands {
                return Ok(true);
            }
        }
    }

    /// Resumes a paused schedule with its next tick from now; ticks during the pause are dropped. Returns whether that changed anything.
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

    /// Enqueues the job or starts the batch of a schedule immediately, whatever its ticks, even while it is paused. A caller that
    /// may have to repeat the call passes the same `asked` id: the job or batch is then created once.
    async fn run_schedule_now(&self, name: &str, asked: Option<Uuid>) -> StoreResult<Made> {
        let view = self.schedule(name).await?.ok_or_else(|| StoreError::NoSuchSchedule(name.to_owned()))?;
        let order = view.schedule.run_now(self.clock().await?.now, asked)?;
        if let (Some(_), Some(key)) = (asked, order.key())
            && let Some(made) = self.made_with_key(key).await?
        {
            self.confirm_seen().await?;
            return Ok(made);
        }
        self.make(name, &order).await
    }

    /// Returns the job or batch with this key, of whatever kind or DAG: the schedule may have been changed since it was created.
    async fn made_with_key(&self, key: &str) -> StoreResult<Option<Made>> {
        let key = Some(key.to_owned());
        let jobs = self.jobs(&JobFilter { key: key.clone(), limit: 1, ..JobFilter::default() }).await?;
        if let Some(job) = jobs.first() {
            return Ok(Some(Made::Job(Enqueued::kept(job.id))));
        }
        let batches = self.batches(&BatchFilter { key, limit: 1, ..BatchFilter::default() }).await?;
        Ok(batches.first().map(|batch| Made::Batch(Started { batch: batch.id, duplicate: true })))
    }

    /// Returns the input of a schedule's batches, as it would be now, and the schema of the current version of their DAG.
    ///
    /// # Errors
    /// [`StoreError::Batch`] with the reason if an expression of the input fails.
    async fn input_of_ticks(&self, schedule: &Schedule) -> StoreResult<InputOfTicks> {
        let Makes::Batch(batch) = &schedule.makes else { return Ok(InputOfTicks::Free) };
        let definition = match self.dag(&batch.dag, None).await {
            Err(StoreError::Batch(missing @ InvalidBatch::NoSuchDag { .. })) => {
                return Ok(InputOfTicks::NoDag(missing));
            }
            found => found?.1,
        };
        let Some(schema) = definition.input_schema else { return Ok(InputOfTicks::Free) };
        // The value of an expression can depend on the tick, but its type hardly ever does.
        let tick = NominalTime { at: self.clock().await?.now, zone: schedule.spec.zone_name().to_owned() };
        Ok(InputOfTicks::Bound { schema, input: batch.input_at(&tick)? })
    }

    /// Creates the job or batch of an order, independently of the schedule's ticks. If its key exists, returns the existing one.
    async fn make(&self, schedule: &str, order: &Order) -> StoreResult<Made>;

    /// Applies the schedules of a configuration, and removes those of its scope that it no longer contains. Operators'
    /// schedules are not changed, and schedules they paused stay paused.
    async fn sync_schedules(&self, configured: &[Schedule], scope: &Scope) -> StoreResult<Synced> {
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
            let superfluous = view.source == Source::Config && scope.has(&name) && !named;
            if superfluous && self.remove_schedule(&name, Source::Config).await? {
                synced.removed.push(name);
            }
        }
        Ok(synced)
    }
}

fn check(schedule: &Schedule) -> StoreResult<()> {
    schedule.check().map_err(|invalid| refused(schedule, invalid))
}

fn refused(schedule: &Schedule, invalid: InvalidSchedule) -> StoreError {
    StoreError::InvalidSchedule { name: schedule.name.chars().take(60).collect(), invalid }
}

/// Refuses a schedule whose jobs have the kind of this bulk job without its settings: no worker would ever take them.
///
/// # Errors
/// [`InvalidJob::BulkJob`], as [`StoreError::InvalidSchedule`].
pub fn check_kind_of_ticks(schedule: &Schedule, bulk: Option<&Definition>) -> StoreResult<()> {
    match (&schedule.makes, bulk) {
        (Makes::Job(job), Some(bulk))
            if job.kind == bulk.name && !bulk.directs(&job.queue, job.group.as_deref(), job.max_attempts) =>
        {
            let invalid = InvalidJob::BulkJob { kind: job.kind.clone() };
            Err(refused(schedule, InvalidSchedule::Job(invalid)))
        }
        _ => Ok(()),
    }
}

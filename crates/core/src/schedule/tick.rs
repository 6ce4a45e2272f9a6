//! One step of a schedule: the work for its due ticks and its next tick.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{CatchUp, Made, Order, ScheduleView};
use crate::batch::error::InvalidBatch;
use crate::batch::start::NewBatch;
use crate::clock::SET_BACK_MS_MIN;
use crate::job::NewJob;

/// One step of a schedule: the jobs or the batch for its due ticks, and the next tick.
#[derive(Clone, Debug)]
pub struct Tick {
    /// The schedule.
    pub schedule: String,
    /// The version that the step is based on. If another node has ticked since, the step does nothing.
    pub version: i64,
    /// The jobs to enqueue, oldest tick first.
    pub jobs: Vec<NewJob>,
    /// The batch to start.
    pub batch: Option<NewBatch>,
    /// Why there is no batch although a tick is due: its input cannot be evaluated for the tick.
    pub refused: Option<InvalidBatch>,
    /// The last of the ticks for which jobs or a batch are created.
    pub last_at: Option<Timestamp>,
    /// The number of missed ticks that create nothing; counted up to a bound.
    pub dropped: u32,
    /// The first tick that remains.
    pub next_at: Option<Timestamp>,
}

/// The result of one step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// The created jobs or batch, oldest tick first.
    pub made: Vec<Made>,
    /// Why the batch of the tick could not be started. The schedule advances nevertheless.
    pub refused: Option<InvalidBatch>,
}

impl Ticked {
    /// Returns the number of jobs and batches that did not exist before.
    #[must_use]
    pub fn new_ones(&self) -> usize {
        self.made.iter().filter(|made| !made.is_duplicate()).count()
    }
}

/// The last tick of a schedule, whose batch could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// The time of the tick.
    pub at: Timestamp,
    /// The reason.
    pub why: String,
}

/// Schedules are corrected only if the clock was set back by more than this. Ticks within this period have already happened.
const SET_BACK_MAX: SignedDuration = SignedDuration::from_millis(SET_BACK_MS_MIN);

impl ScheduleView {
    /// Returns the step that moves a schedule back if it ticked while the clock was ahead and would otherwise create nothing until that
    /// time is reached. Jobs that it already created are not created again, because their keys contain the tick. `None`: its next tick is
    /// the one that follows `now`.
    #[must_use]
    pub fn step_back(&self, now: Timestamp) -> Option<Tick> {
        let next_at = self.next_at.filter(|_| self.paused_at.is_none())?;
        let spec = &self.schedule.spec;
        spec.next_after(now.checked_add(SET_BACK_MAX).ok()?).filter(|missed| *missed < next_at)?;
        Some(Tick {
            schedule: self.schedule.name.clone(),
            version: self.version,
            jobs: Vec::new(),
            batch: None,
            refused: None,
            last_at: None,
            dropped: 0,
            next_at: spec.next_after(now),
        })
    }

    /// Returns the step for the ticks that are due at `now`; `None` when none is due.
    #[must_use]
    pub fn tick(&self, now: Timestamp) -> Option<Tick> {
        let next_at = self.next_at.filter(|next_at| *next_at <= now && self.paused_at.is_none())?;
        let CatchUp { fire, dropped, next_at } = self.schedule.catch_up(next_at, now);
        let mut tick = Tick {
            schedule: self.schedule.name.clone(),
            version: self.version,
            jobs: Vec::new(),
            batch: None,
            refused: None,
            last_at: fire.last().copied(),
            dropped,
            next_at,
        };
        for nominal_at in fire {
            match self.schedule.tick(nominal_at) {
                Ok(Order::Job(job)) => tick.jobs.push(job),
                // There is at most one batch per step.
                Ok(Order::Batch(batch)) => tick.batch = Some(batch),
                Err(refused) => tick.refused = Some(refused),
            }
        }
        Some(tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Schedule, Spec};

    #[test]
    fn a_schedule_is_moved_back_when_a_tick_would_be_passed_over() {
        let now = Timestamp::from_second(1_800_000_003).unwrap();
        let after = |seconds: i64| now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
        let spec = Spec::every(std::time::Duration::from_secs(10)).unwrap();
        let schedule = Schedule::new("s", spec, NewJob::new("k", &()).unwrap());
        let moved_to = |next_at: Timestamp| {
            let view = ScheduleView { next_at: Some(next_at), ..ScheduleView::stored(schedule.clone(), now) };
            view.step_back(now).and_then(|step| step.next_at)
        };
        assert_eq!(moved_to(after(7)), None, "it is the next tick");
        assert_eq!(moved_to(after(17)), Some(after(7)));
        assert_eq!(moved_to(after(37)), Some(after(7)), "after the clock was ahead by half a minute");
    }
}

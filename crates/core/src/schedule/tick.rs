//! One step of a schedule.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{CatchUp, Made, Order, ScheduleView};
use crate::batch::error::InvalidBatch;
use crate::batch::start::NewBatch;
use crate::job::NewJob;

/// One step of a schedule: what the ticks that are due make, and the tick to wait for then.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Which schedule.
    pub schedule: String,
    /// The version it was decided on; when another node ticked meanwhile, nothing happens.
    pub version: i64,
    /// The jobs to enqueue, oldest tick first.
    pub jobs: Vec<NewJob>,
    /// The batch to start.
    pub batch: Option<NewBatch>,
    /// Why there is none although one is due: its input has no value for the tick.
    pub refused: Option<InvalidBatch>,
    /// The last of their ticks.
    pub last_at: Option<Timestamp>,
    /// How many missed ticks make nothing; counted up to a bound.
    pub dropped: u32,
    /// The first tick that stays.
    pub next_at: Option<Timestamp>,
}

/// What one step of a schedule came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticked {
    /// What was made, oldest tick first.
    pub made: Vec<Made>,
    /// Why the batch of the tick could not be started. The schedule went on nevertheless.
    pub refused: Option<InvalidBatch>,
}

impl Ticked {
    /// How much of it was not there before.
    #[must_use]
    pub fn new_ones(&self) -> usize {
        self.made.iter().filter(|made| !made.is_duplicate()).count()
    }
}

/// The last tick of a schedule, whose batch could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// Which tick.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// How far the clock may be set back without any schedule being looked at: its ticks of this time have happened.
const SET_BACK_MAX: SignedDuration = SignedDuration::from_mins(1);

impl ScheduleView {
    /// Returns the step back of a schedule that ticked while the clock was ahead, and that would make nothing until that time comes. Ticks
    /// that it made then are not made again: the keys of their jobs name them. `None`: its next tick is the one that follows `now`.
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

    /// What is to be done about the ticks that are due at `now`; `None` when none is.
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
                // Of these there is one a step.
                Ok(Order::Batch(batch)) => tick.batch = Some(batch),
                Err(refused) => tick.refused = Some(refused),
            }
        }
        Some(tick)
    }
}

//! Schedules: recurring work, ticks, and the handling of missed ticks.
//!
//! A *tick* is an instant at which a schedule creates a job or a batch. Ticks are computed in this module only, and from
//! the schedule alone: every node computes the same ticks, and a restart does not move them. The current time is always an
//! argument, which the stores provide.

mod catch_up;
mod cron;
mod error;
mod fingerprint;
mod input;
mod makes;
mod spec;
mod tick;
pub(crate) mod zone;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

pub use catch_up::{CatchUp, MISFIRE_MAX, MISFIRE_MAX_DEFAULT, Misfire};
pub use cron::Cron;
pub use error::InvalidSchedule;
pub use fingerprint::Fingerprint;
pub use input::InputOfTicks;
pub use makes::{BatchTemplate, JobTemplate, Made, Makes, Order};
pub use spec::{Every, Spec};
pub use tick::{Refusal, Tick, Ticked};

use crate::batch::error::InvalidBatch;
use crate::batch::nominal::NominalTime;
pub use crate::batch::nominal::ZONE_DEFAULT;
use crate::job::error::InvalidJob;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use crate::named::UnknownName;
use crate::text::{is_relative_segment, is_unprintable};

/// The default time that a tick may be late before it counts as missed.
pub const MISFIRE_GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// A recurring job or batch, and the times at which it is created.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedule {
    /// Its name, unique in the store.
    pub name: String,
    /// When it ticks.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = spec::SpecText))]
    pub spec: Spec,
    /// What each tick creates.
    #[serde(flatten)]
    pub makes: Makes,
    /// What happens to missed ticks.
    pub misfire: Misfire,
    /// How late a tick may be before it counts as missed.
    #[serde(rename = "misfire_grace_ms", serialize_with = "as_ms")]
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub misfire_grace: Duration,
}

impl Schedule {
    /// Creates a schedule for this job or batch. Its missed ticks create one job or batch together.
    pub fn new(name: impl Into<String>, spec: Spec, makes: impl Into<Makes>) -> Self {
        Self {
            name: name.into(),
            spec,
            makes: makes.into(),
            misfire: Misfire::default(),
            misfire_grace: MISFIRE_GRACE_DEFAULT,
        }
    }

    /// Sets the policy for missed ticks.
    #[must_use]
    pub const fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// Sets how late a tick may be without being missed.
    #[must_use]
    pub const fn misfire_grace(mut self, grace: Duration) -> Self {
        self.misfire_grace = grace;
        self
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidSchedule`] with the reason.
    pub fn check(&self) -> Result<(), InvalidSchedule> {
        let fits = (1..=NAME_BYTES_MAX).contains(&self.name.len());
        if !fits || self.name.contains(is_unprintable) || is_relative_segment(&self.name) {
            return Err(InvalidSchedule::Name { name: self.name.chars().take(60).collect() });
        }
        self.misfire.check()?;
        self.tick(Timestamp::UNIX_EPOCH).map_err(InvalidSchedule::Batch)?.check()
    }

    /// Returns the job or batch of the tick at `nominal_at`. Its key contains the schedule and the tick, so that a tick
    /// creates at most one.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] when an expression in the input of its batch cannot be evaluated.
    pub fn tick(&self, nominal_at: Timestamp) -> Result<Order, InvalidBatch> {
        self.makes.order(|_| format!("{KEY_PREFIX}{}/{nominal_at}", self.name), self.nominal(nominal_at))
    }

    /// Returns the job or batch that an operator requests at `now`, independently of the ticks. `asked` identifies the
    /// request when it is repeated.
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
    pub fn run_now(&self, now: Timestamp, asked: Option<Uuid>) -> Result<Order, InvalidBatch> {
        let key = |id| format!("{KEY_PREFIX}{}/now/{}", self.name, asked.unwrap_or(id));
        self.makes.order(key, self.nominal(now))
    }

    /// Returns a time with the time zone of the schedule.
    fn nominal(&self, at: Timestamp) -> NominalTime {
        NominalTime { at, zone: self.spec.zone_name().to_owned() }
    }
}

/// The prefix of the keys of all scheduled jobs and batches.
const KEY_PREFIX: &str = "schedule/";

/// The prefix, the name and the rest must fit in a key.
const _: () = assert!(KEY_PREFIX.len() + NAME_BYTES_MAX + "/now/".len() + 36 <= KEY_BYTES_MAX);

/// Returns the name of the schedule that created the job or batch with this key, if one did.
#[must_use]
pub fn schedule_of_key(key: &str) -> Option<&str> {
    let (name, _tick) = key.strip_prefix(KEY_PREFIX)?.rsplit_once('/')?;
    Some(name.strip_suffix("/now").unwrap_or(name))
}

/// The creator of a schedule or a limit. Configurations do not change those that an operator created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An operator, or a program that creates them individually.
    Operator,
    /// A configuration that lists all of its schedules or limits; those that it no longer lists are removed.
    Config,
}

impl Source {
    const NAMES: &'static [&'static str] = &["operator", "config"];

    /// Returns its name in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Config => "config",
        }
    }
}

impl std::str::FromStr for Source {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "operator" => Ok(Self::Operator),
            "config" => Ok(Self::Config),
            _ => Err(UnknownName { given: name.to_owned(), known: Self::NAMES }),
        }
    }
}

/// A schedule and its state.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    /// Its settings.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Who created it.
    pub source: Source,
    /// When it was paused, if it is paused.
    pub paused_at: Option<Timestamp>,
    /// Its next tick; none if it never ticks again.
    pub next_at: Option<Timestamp>,
    /// The last tick that created something.
    pub last_at: Option<Timestamp>,
    /// The number of jobs or batches that its ticks created.
    pub fired: i64,
    /// The number of ticks that created nothing: missed ones, and those whose batch could not be started.
    pub dropped: i64,
    /// The last tick, if its batch could not be started.
    pub refused: Option<Refusal>,
    /// Rises with every change; a tick is processed only if it is unchanged.
    #[serde(skip)]
    pub version: i64,
}

impl ScheduleView {
    /// Returns a schedule that an operator stored now and that has not ticked.
    #[must_use]
    pub fn stored(schedule: Schedule, now: Timestamp) -> Self {
        let next_at = schedule.spec.ticks_after(now).next();
        Self {
            schedule,
            source: Source::Operator,
            paused_at: None,
            next_at,
            last_at: None,
            fired: 0,
            dropped: 0,
            refused: None,
            version: 0,
        }
    }
}

/// The store's time and the next tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The current time.
    pub now: Timestamp,
    /// The earliest tick of all schedules that are not paused.
    pub next_at: Option<Timestamp>,
}

impl From<InvalidJob> for InvalidSchedule {
    fn from(invalid: InvalidJob) -> Self {
        Self::Job(invalid)
    }
}

fn as_ms<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn as_ms_opt<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => as_ms(duration, serializer),
        None => serializer.serialize_none(),
    }
}

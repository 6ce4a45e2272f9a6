//! Work that comes back: schedules, their ticks, and what becomes of ticks that were missed.
//!
//! A *tick* is an instant at which a schedule wants a job or a batch. Which instants these are is decided here alone, from
//! the schedule and nothing else: every node finds the same ones, and a restart moves none. The time is an
//! argument throughout; the stores say what it is.

mod catch_up;
mod cron;
mod error;
mod makes;
mod spec;
mod tick;
mod zone;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

pub use catch_up::{CatchUp, MISFIRE_MAX, Misfire};
pub use cron::Cron;
pub use error::InvalidSchedule;
pub use makes::{BatchTemplate, JobTemplate, Made, Makes, Order};
pub use spec::{Every, Spec};
pub use tick::{Refusal, Tick, Ticked};
pub(crate) use zone::named as zone_named;

use crate::batch::error::InvalidBatch;
use crate::batch::nominal::NominalTime;
use crate::error::{InvalidJob, UnknownName};
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX};
use crate::text::is_unprintable;

/// How late a tick may be before it counts as missed, unless configured otherwise.
pub const MISFIRE_GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// What is to run, and when, again and again.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedule {
    /// Names it among all schedules of the store.
    pub name: String,
    /// When it ticks.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = spec::SpecText))]
    pub spec: Spec,
    /// What each tick makes.
    #[serde(flatten)]
    pub makes: Makes,
    /// What becomes of ticks that were missed.
    pub misfire: Misfire,
    /// A tick that is no later than this was not missed.
    #[serde(rename = "misfire_grace_ms", serialize_with = "as_ms")]
    #[cfg_attr(feature = "openapi", schema(value_type = u64))]
    pub misfire_grace: Duration,
}

impl Schedule {
    /// A schedule that makes this job, or this batch, at each tick, and one for all ticks that were missed.
    pub fn new(name: impl Into<String>, spec: Spec, makes: impl Into<Makes>) -> Self {
        Self {
            name: name.into(),
            spec,
            makes: makes.into(),
            misfire: Misfire::default(),
            misfire_grace: MISFIRE_GRACE_DEFAULT,
        }
    }

    /// The schedule with this policy for missed ticks.
    #[must_use]
    pub const fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// The schedule whose ticks may be this late.
    #[must_use]
    pub const fn misfire_grace(mut self, grace: Duration) -> Self {
        self.misfire_grace = grace;
        self
    }

    /// Checks everything that can be checked without a database.
    ///
    /// # Errors
    /// [`InvalidSchedule`] says what is wrong.
    pub fn check(&self) -> Result<(), InvalidSchedule> {
        if self.name.contains(is_unprintable) || !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Err(InvalidSchedule::Name { name: self.name.chars().take(60).collect() });
        }
        self.misfire.check()?;
        self.tick(Timestamp::UNIX_EPOCH).map_err(InvalidSchedule::Batch)?.check()
    }

    /// What the tick at `nominal_at` makes. Its key names schedule and tick, so that a tick has at most one.
    ///
    /// # Errors
    /// [`InvalidBatch::Input`] when an expression in the input of its batch has no value.
    pub fn tick(&self, nominal_at: Timestamp) -> Result<Order, InvalidBatch> {
        self.makes.order(|_| format!("{KEY_PREFIX}{}/{nominal_at}", self.name), self.nominal(nominal_at))
    }

    /// What an operator asked for at `now`, beside the ticks; `asked` is what the asking is known by when it is repeated.
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
    pub fn run_now(&self, now: Timestamp, asked: Option<Uuid>) -> Result<Order, InvalidBatch> {
        let key = |id| format!("{KEY_PREFIX}{}/now/{}", self.name, asked.unwrap_or(id));
        self.makes.order(key, self.nominal(now))
    }

    /// A time with the time zone by whose clock it ticks.
    fn nominal(&self, at: Timestamp) -> NominalTime {
        NominalTime { at, zone: self.spec.zone_name().to_owned() }
    }
}

/// What the keys of all scheduled jobs and batches begin with.
const KEY_PREFIX: &str = "schedule/";

/// Names must leave room in the key for the prefix and what comes after them.
const _: () = assert!(KEY_PREFIX.len() + NAME_BYTES_MAX + "/now/".len() + 36 <= KEY_BYTES_MAX);

/// The name of the schedule that made the job or the batch with this key, if one did.
#[must_use]
pub fn schedule_of_key(key: &str) -> Option<&str> {
    let (name, _tick) = key.strip_prefix(KEY_PREFIX)?.rsplit_once('/')?;
    Some(name.strip_suffix("/now").unwrap_or(name))
}

/// Who made a schedule or a limit. What an operator made, no configuration changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A person or a program, one by one.
    Operator,
    /// A configuration that lists all of its own: what it no longer names is removed.
    Config,
}

impl Source {
    const NAMES: &'static [&'static str] = &["operator", "config"];

    /// Its name, as it stands in the store.
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

/// A schedule and where it stands.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    /// What was asked for.
    #[serde(flatten)]
    pub schedule: Schedule,
    /// Who made it.
    pub source: Source,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// Its next tick; `None` when there is none before the end of time.
    pub next_at: Option<Timestamp>,
    /// The last tick that made something.
    pub last_at: Option<Timestamp>,
    /// How many jobs or batches its ticks made.
    pub fired: i64,
    /// How many ticks made nothing: missed ones, and those whose batch could not be started.
    pub dropped: i64,
    /// The last tick, if its batch could not be started.
    pub refused: Option<Refusal>,
    /// Rises with every change; what a tick is compared with.
    #[serde(skip)]
    pub version: i64,
}

/// The store's time, and the tick to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Now.
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

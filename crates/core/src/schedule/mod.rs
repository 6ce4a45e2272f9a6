//! Work that comes back: schedules, their ticks, and what becomes of ticks that were missed.
//!
//! A *tick* is an instant at which a schedule wants a job. Which instants these are is decided here alone, from
//! the schedule and nothing else: every node finds the same ones, and a restart moves none. The time is an
//! argument throughout; the stores say what it is.

mod catch_up;
mod cron;
mod error;
mod spec;
mod zone;

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

pub use catch_up::{CatchUp, MISFIRE_MAX, Misfire};
pub use cron::Cron;
pub use error::InvalidSchedule;
pub use spec::{Every, Spec};

use crate::error::{InvalidJob, UnknownName};
use crate::ident::JobId;
use crate::job::{KEY_BYTES_MAX, NAME_BYTES_MAX, NewJob, PAYLOAD_BYTES_MAX, Priority, StartAt};

/// How late a tick may be before it counts as missed, unless configured otherwise.
pub const MISFIRE_GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// What is to run, and when, again and again.
#[derive(Clone, Debug, Serialize)]
pub struct Schedule {
    /// Names it among all schedules of the store.
    pub name: String,
    /// When it ticks.
    #[serde(flatten)]
    pub spec: Spec,
    /// What each tick enqueues.
    pub job: JobTemplate,
    /// What becomes of ticks that were missed.
    pub misfire: Misfire,
    /// A tick that is no later than this was not missed.
    #[serde(rename = "misfire_grace_ms", serialize_with = "as_ms")]
    pub misfire_grace: Duration,
}

impl Schedule {
    /// A schedule that enqueues `job` at each tick and makes up for missed ticks with one job.
    pub fn new(name: impl Into<String>, spec: Spec, job: impl Into<JobTemplate>) -> Self {
        Self {
            name: name.into(),
            spec,
            job: job.into(),
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
        if self.name.contains(char::is_control) || !(1..=NAME_BYTES_MAX).contains(&self.name.len()) {
            return Err(InvalidSchedule::Name { name: self.name.chars().take(60).collect() });
        }
        self.misfire.check()?;
        self.tick(Timestamp::UNIX_EPOCH).check(PAYLOAD_BYTES_MAX)?;
        Ok(())
    }

    /// The job of the tick at `nominal_at`. Its key names schedule and tick, so that a tick has at most one.
    #[must_use]
    pub fn tick(&self, nominal_at: Timestamp) -> NewJob {
        self.job.enqueue(format!("{KEY_PREFIX}{}/{nominal_at}", self.name), nominal_at)
    }

    /// A job that an operator asked for at `now`, beside the ticks.
    #[must_use]
    pub fn run_now(&self, now: Timestamp) -> NewJob {
        let mut job = self.job.enqueue(String::new(), now);
        job.key = Some(format!("{KEY_PREFIX}{}/now/{}", self.name, job.id));
        job
    }
}

/// What the keys of all scheduled jobs begin with.
const KEY_PREFIX: &str = "schedule/";

/// Names must leave room in the key for the prefix and what comes after them.
const _: () = assert!(KEY_PREFIX.len() + NAME_BYTES_MAX + "/now/".len() + 36 <= KEY_BYTES_MAX);

/// The name of the schedule that made the job with this key, if one did.
#[must_use]
pub fn schedule_of_key(key: &str) -> Option<&str> {
    let (name, _tick) = key.strip_prefix(KEY_PREFIX)?.rsplit_once('/')?;
    Some(name.strip_suffix("/now").unwrap_or(name))
}

/// What every job of a schedule has in common.
#[derive(Clone, Debug, Serialize)]
pub struct JobTemplate {
    /// Which handler runs it.
    pub kind: String,
    /// Where it waits.
    pub queue: String,
    /// Its input, as JSON text.
    pub payload: Box<RawValue>,
    /// Which jobs of the queue go first.
    pub priority: Priority,
    /// How many attempts it gets; a crash of its worker spends one.
    pub max_attempts: u32,
    /// Jobs of a group run one at a time.
    pub group: Option<String>,
    /// How long one attempt may take.
    #[serde(rename = "timeout_ms", serialize_with = "as_ms_opt")]
    pub timeout: Option<Duration>,
}

impl JobTemplate {
    fn enqueue(&self, key: String, nominal_at: Timestamp) -> NewJob {
        let Self { kind, queue, payload, priority, max_attempts, group, timeout } = self.clone();
        NewJob {
            id: JobId::new(),
            key: Some(key),
            nominal_at: Some(nominal_at),
            start: StartAt::Now,
            kind,
            queue,
            payload,
            priority,
            max_attempts,
            group,
            timeout,
        }
    }
}

impl From<NewJob> for JobTemplate {
    /// Key, start and id are left out: each tick brings its own.
    fn from(job: NewJob) -> Self {
        let NewJob { kind, queue, payload, priority, max_attempts, group, timeout, .. } = job;
        Self { kind, queue, payload, priority, max_attempts, group, timeout }
    }
}

/// Who made a schedule or a limit. What an operator made, no configuration changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// The last tick that made a job.
    pub last_at: Option<Timestamp>,
    /// How many jobs its ticks made.
    pub fired: i64,
    /// How many missed ticks made no job.
    pub dropped: i64,
    /// Rises with every change; what a tick is compared with.
    #[serde(skip)]
    pub version: i64,
}

impl ScheduleView {
    /// What is to be done about the ticks that are due at `now`; `None` when none is.
    #[must_use]
    pub fn tick(&self, now: Timestamp) -> Option<Tick> {
        let next_at = self.next_at.filter(|next_at| *next_at <= now && self.paused_at.is_none())?;
        let CatchUp { fire, dropped, next_at } = self.schedule.catch_up(next_at, now);
        Some(Tick {
            schedule: self.schedule.name.clone(),
            version: self.version,
            last_at: fire.last().copied(),
            jobs: fire.into_iter().map(|nominal_at| self.schedule.tick(nominal_at)).collect(),
            dropped,
            next_at,
        })
    }
}

/// One step of a schedule: the jobs of the ticks that are due, and the tick to wait for then.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Which schedule.
    pub schedule: String,
    /// The version it was decided on; when another node ticked meanwhile, nothing happens.
    pub version: i64,
    /// The jobs to enqueue, oldest tick first.
    pub jobs: Vec<NewJob>,
    /// The last of their ticks.
    pub last_at: Option<Timestamp>,
    /// How many missed ticks make no job; counted up to a bound.
    pub dropped: u32,
    /// The first tick that stays.
    pub next_at: Option<Timestamp>,
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

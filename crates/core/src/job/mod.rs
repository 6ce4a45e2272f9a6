//! Jobs to be enqueued, their options and their limits.

pub mod duplicate;
pub mod error;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::duplicate::{DuplicateAction, EnqueueOutcome, OnDuplicate};
use self::error::InvalidJob;
use crate::duration::check_wait;
use crate::ident::JobId;
pub use crate::json::PAYLOAD_DEPTH_MAX;
use crate::json::{check_payload, is_same_json};
use crate::text::{is_deceptive, is_relative_segment};
use crate::trace::Traceparent;

/// The default limit for the size of a payload, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// The longest kind, queue or group name, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// The longest job key, in bytes; limited because keys are indexed in a B-tree.
pub const KEY_BYTES_MAX: usize = 1000;
/// How the keys begin that the HTTP API derives from the header `Idempotency-Key`.
pub const IDEMPOTENCY_PREFIX: &str = "idempotency:";
/// The default number of attempts of a job.
pub const MAX_ATTEMPTS_DEFAULT: u32 = 25;
/// The queue of jobs that specify none.
pub const QUEUE_DEFAULT: &str = "default";

/// Priority of a job within its queue: 1 is claimed first, 4 last. There are few values on purpose: a claim probes each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Priority(u8);

impl Priority {
    /// All priorities, first to last.
    pub const ALL: [Self; 4] = [Self(1), Self(2), Self(3), Self(4)];
    /// The priority that is claimed before all others.
    pub const FIRST: Self = Self(1);
    /// The priority that is claimed after all others.
    pub const LAST: Self = Self(4);

    /// Returns the priority as a number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(2)
    }
}

impl TryFrom<u8> for Priority {
    type Error = InvalidJob;

    fn try_from(value: u8) -> Result<Self, Self::Error> {
        match value {
            1..=4 => Ok(Self(value)),
            _ => Err(InvalidJob::OutOfRange {
                field: "priority",
                value: value.into(),
                range: "from 1 (first) to 4 (last)",
            }),
        }
    }
}

impl From<Priority> for u8 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

/// The earliest time at which a new job may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// As soon as it is committed.
    #[default]
    Now,
    /// This long after the store accepts it, by the store's clock.
    After(Duration),
    /// At this time.
    At(Timestamp),
}

/// A job to be enqueued.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its permanent id, generated here so that an enqueue can be repeated safely.
    pub id: JobId,
    /// Its kind, which determines the handler.
    pub kind: String,
    /// The queue in which it waits.
    pub queue: String,
    /// Its input, as JSON text.
    pub payload: Box<RawValue>,
    /// Its priority within the queue.
    pub priority: Priority,
    /// At most one job of the kind holds this key; a repeated enqueue returns the existing job.
    pub key: Option<String>,
    /// What happens when a job holds the key, and how long it holds it. `None`: the existing job is kept, as long as its key exists.
    pub on_duplicate: Option<OnDuplicate>,
    /// The jobs of a group run one at a time, or up to the number that its [limit](crate::limit) allows.
    pub group: Option<String>,
    /// The earliest time at which it may start.
    pub start: StartAt,
    /// The maximum number of attempts; a crash of its worker uses one.
    pub max_attempts: u32,
    /// The time limit of one attempt; `None`: the handler's setting applies.
    pub timeout: Option<Duration>,
    /// The schedule tick that the job belongs to.
    pub nominal_at: Option<Timestamp>,
    /// The trace span that it follows from: the active span where the job was created.
    pub traceparent: Option<Traceparent>,
}

impl NewJob {
    /// Creates a job of `kind` with `payload` and default options.
    ///
    /// # Errors
    /// [`InvalidJob::NotJson`] when the payload cannot be written as JSON.
    pub fn new(kind: impl Into<String>, payload: &impl Serialize) -> Result<Self, InvalidJob> {
        let payload = serde_json::value::to_raw_value(payload)
            .map_err(|e| InvalidJob::NotJson { why: e.to_string() })?;
        Ok(Self::with_raw(kind, payload))
    }

    /// Creates a job of `kind` whose payload is JSON text.
    ///
    /// # Errors
    /// [`InvalidJob::NotJson`] with line and column when the text is not JSON.
    pub fn from_json(kind: impl Into<String>, payload: String) -> Result<Self, InvalidJob> {
        let payload =
            RawValue::from_string(payload).map_err(|e| InvalidJob::NotJson { why: e.to_string() })?;
        Ok(Self::with_raw(kind, payload))
    }

    fn with_raw(kind: impl Into<String>, payload: Box<RawValue>) -> Self {
        Self {
            id: JobId::new(),
            kind: kind.into(),
            queue: QUEUE_DEFAULT.to_owned(),
            payload,
            priority: Priority::default(),
            key: None,
            on_duplicate: None,
            group: None,
            start: StartAt::Now,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            timeout: None,
            nominal_at: None,
            traceparent: Traceparent::current(),
        }
    }

    /// Sets the queue.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Sets the key: at most one job of the kind ever has it, unless [`on_duplicate`](Self::on_duplicate) decides otherwise.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets what happens when a job holds the key, and how long it holds it.
    #[must_use]
    pub const fn on_duplicate(mut self, on_duplicate: OnDuplicate) -> Self {
        self.on_duplicate = Some(on_duplicate);
        self
    }

    /// Sets the group: its jobs run one at a time, or up to the number that its [limit](crate::limit) allows.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets the priority.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the earliest start time.
    #[must_use]
    pub const fn start(mut self, start: StartAt) -> Self {
        self.start = start;
        self
    }

    /// Sets the maximum number of attempts.
    #[must_use]
    pub const fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the time limit of each attempt.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Checks everything that does not need a database.
    ///
    /// # Errors
    /// [`InvalidJob`] with the field and the reason.
    pub fn check(&self, payload_bytes_max: usize) -> Result<(), InvalidJob> {
        check_id(self.id)?;
        check_name("kind", &self.kind, NAME_BYTES_MAX)?;
        check_name("queue", &self.queue, NAME_BYTES_MAX)?;
        if let Some(key) = &self.key {
            check_key("key", key, KEY_BYTES_MAX)?;
        }
        if let Some(group) = &self.group {
            check_key("group", group, NAME_BYTES_MAX)?;
        }
        check_attempts(self.max_attempts)?;
        check_timeout(self.timeout)?;
        check_start(self.start)?;
        self.check_on_duplicate()?;
        check_payload(self.payload.get(), payload_bytes_max)
    }

    fn check_on_duplicate(&self) -> Result<(), InvalidJob> {
        let Some(on_duplicate) = self.on_duplicate else { return Ok(()) };
        if self.key.is_none() {
            return Err(InvalidJob::OnDuplicate { why: "it needs a key" });
        }
        if on_duplicate.action == DuplicateAction::Debounce && self.start != StartAt::Now {
            return Err(InvalidJob::OnDuplicate {
                why: "debounce decides the start; give no other start or delay",
            });
        }
        on_duplicate.check()
    }

    /// Returns whether an existing job with this queue, group and payload (JSON text) was enqueued by the same request, so
    /// that this enqueue is a repetition.
    #[must_use]
    pub fn is_same(&self, queue: &str, group: Option<&str>, payload: &str) -> bool {
        self.queue == queue && self.group.as_deref() == group && is_same_json(self.payload.get(), payload)
    }
}

/// Rejects the highest UUID: lists begin below it.
fn check_id(id: JobId) -> Result<(), InvalidJob> {
    if id.0.is_max() {
        return Err(unusable("id", &id.to_string(), "this UUID is reserved; generate a UUIDv7"));
    }
    Ok(())
}

pub(crate) fn check_attempts(max_attempts: u32) -> Result<(), InvalidJob> {
    if (1..=1_000_000).contains(&max_attempts) {
        return Ok(());
    }
    Err(InvalidJob::OutOfRange {
        field: "max_attempts",
        value: max_attempts.into(),
        range: "from 1 to 1000000",
    })
}

pub(crate) fn check_timeout(timeout: Option<Duration>) -> Result<(), InvalidJob> {
    match timeout {
        Some(Duration::ZERO) => {
            Err(InvalidJob::OutOfRange { field: "timeout", value: 0, range: "at least 1 ms" })
        }
        Some(timeout) => check_wait("timeout_ms", timeout),
        None => Ok(()),
    }
}

/// Rejects start times that a store cannot keep, and waits longer than 100 years.
pub(crate) fn check_start(start: StartAt) -> Result<(), InvalidJob> {
    match start {
        StartAt::At(at) if at < Timestamp::UNIX_EPOCH => Err(InvalidJob::StartsTooEarly { start_at: at }),
        StartAt::After(delay) => check_wait("delay_ms", delay),
        _ => Ok(()),
    }
}

/// Checks the name of a queue.
///
/// # Errors
/// [`InvalidJob::Name`] with the reason.
pub fn check_queue(name: &str) -> Result<(), InvalidJob> {
    check_name("queue", name, NAME_BYTES_MAX)
}

/// Checks a name that operators choose, such as the name of a kind.
pub(crate) fn check_name(field: &'static str, value: &str, bytes_max: usize) -> Result<(), InvalidJob> {
    check_key(field, value, bytes_max)?;
    if value.contains(is_deceptive) {
        return Err(unusable(
            field,
            value,
            "it has characters that change the direction of text, or break lines",
        ));
    }
    if is_relative_segment(value) {
        return Err(unusable(field, value, "programs remove it from URLs"));
    }
    Ok(())
}

/// Checks a value that consists of application data, such as a key or an id.
pub(crate) fn check_key(field: &'static str, value: &str, bytes_max: usize) -> Result<(), InvalidJob> {
    if value.is_empty() {
        Err(unusable(field, value, "it is empty"))
    } else if value.len() > bytes_max {
        let why = format!("it is too long ({} bytes; at most {bytes_max} are allowed)", value.len());
        Err(unusable(field, value, why))
    } else if value.contains(char::is_control) {
        Err(unusable(field, value, "it has control characters"))
    } else {
        Ok(())
    }
}

fn unusable(field: &'static str, value: &str, why: impl Into<String>) -> InvalidJob {
    InvalidJob::Name { field, value: value.chars().take(60).collect(), why: why.into() }
}

/// The result of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Enqueued {
    /// The new job, or the existing one with the same key.
    pub job: JobId,
    /// Whether a job with the same key already existed.
    pub duplicate: bool,
    /// What the call did.
    pub outcome: EnqueueOutcome,
}

impl Enqueued {
    /// The result of a call that created this job.
    #[must_use]
    pub const fn created(job: JobId) -> Self {
        Self::of(job, EnqueueOutcome::Created)
    }

    /// The result of a call that found this job and changed nothing.
    #[must_use]
    pub const fn kept(job: JobId) -> Self {
        Self::of(job, EnqueueOutcome::Kept)
    }

    /// The result of a call with this outcome.
    #[must_use]
    pub const fn of(job: JobId, outcome: EnqueueOutcome) -> Self {
        Self { job, duplicate: !matches!(outcome, EnqueueOutcome::Created), outcome }
    }

    /// Returns whether the call changed anything.
    #[must_use]
    pub const fn changed(&self) -> bool {
        !matches!(self.outcome, EnqueueOutcome::Kept | EnqueueOutcome::Dropped)
    }
}

/// The existing job that has the key of a requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// Its id.
    pub job: JobId,
    /// Whether it has the same queue, group and payload as the requested job; `None` when the job was deleted by
    /// retention and only its key remains.
    pub is_same: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duration::WAIT_MAX;

    #[test]
    fn a_payload_that_is_not_json_says_where() {
        let error = NewJob::from_json("mail", "{\"to\": }".into()).unwrap_err();
        assert!(error.to_string().contains("line 1 column 8"), "{error}");
    }

    #[test]
    fn a_start_before_all_calendars_is_refused() {
        let at = |time: &str| NewJob {
            start: StartAt::At(time.parse().unwrap()),
            ..NewJob::new("mail", &()).unwrap()
        };
        assert!(at("-009998-01-01T00:00:00Z").check(10).is_err());
        assert_eq!(at("1970-01-01T00:00:00Z").check(10), Ok(()));
    }

    #[test]
    fn waits_of_more_than_a_hundred_years_are_refused() {
        let job = NewJob::new("mail", &()).unwrap();
        let too_long = WAIT_MAX + Duration::from_millis(1);
        assert!(job.clone().timeout(too_long).check(10).is_err());
        let start = StartAt::After(too_long);
        assert!(NewJob { start, ..job.clone() }.check(10).is_err());
        assert_eq!(NewJob { start: StartAt::After(WAIT_MAX), ..job }.timeout(WAIT_MAX).check(10), Ok(()));
    }

    #[test]
    fn the_highest_id_is_refused() {
        let job = NewJob { id: JobId(uuid::Uuid::max()), ..NewJob::new("mail", &()).unwrap() };
        let words = job.check(10).unwrap_err().to_string();
        assert!(words.starts_with("the id \"ffffffff-ffff-ffff-ffff-ffffffffffff\" is invalid"), "{words}");
    }

    #[test]
    fn names_are_bounded_and_printable() {
        let job = NewJob::new("mail", &()).unwrap();
        assert!(job.clone().queue("").check(10).is_err());
        assert!(job.clone().key("a\nb").check(10).is_err());
        assert!(job.clone().key("k".repeat(1001)).check(10).is_err());
        assert!(job.key("k".repeat(1000)).check(10).is_ok());
    }

    #[test]
    fn a_payload_over_the_limit_says_both_sizes() {
        let error = NewJob::new("mail", &"x".repeat(20)).unwrap().check(10).unwrap_err();
        assert_eq!(error, InvalidJob::PayloadTooLarge { bytes: 22, bytes_max: 10 });
    }
}
